"""Removal of secrets from texts before they are stored, because memories may be shown to other people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from suture.project.workspace.secret_detection import KEY_FORMATS
from suture.storage.tuning import MAX_SCRUBBED_LINE_CHARS, MIN_SECRET_CHARS

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin


PLACEHOLDER = "<secret>"
_UNUSED_DETECTORS = ("KeywordDetector", "IPPublicDetector")
"""The first takes code such as `token = next()` for a secret, the second any IP address."""
_KEY_BLOCK = re.compile(
    r"-----BEGIN [^-\n]{0,60}PRIVATE KEY[^-\n]{0,20}-----.*?(?:-----END [^-\n]{0,60}-----|\Z)", re.DOTALL
)
_KNOWN_KEY_FORMAT = re.compile(rb"(?:" + KEY_FORMATS.pattern + rb")[\w.~+/=-]*")
"""A string that starts with the prefix of a known kind of secret."""
_AUTHORIZATION_HEADER = re.compile(
    r"(?i)\b(?P<scheme>bearer|basic|token|apikey|api-key)(?P<separator>[ :=]+)(?P<key>[\w.~+/-]{12,}=*)"
)
_ASSIGNMENT = re.compile(
    r"""(?ix)\b(?P<name>[\w.-]{0,40}
        (?:passw(?:or)?d|passphrase|pwd|secret|credential|api[_-]?key|access[_-]?key|auth[_-]?token
          |private[_-]?key|client[_-]?key|_token|\btoken)\w{0,20})
        (?P<separator>["']?\s{0,4}(?::=|[:=])\s{0,4}[bruf]{0,2})
        (?P<quote>["']?)(?P<value>[^\s"',;)}\]]{4,400})(?P=quote)"""
)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|(?:None|True|False|str|int|bytes|float|bool|Any|Optional)\b")
"""An assigned value that is code and not a string: a call, a subscript, a type."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
"""An assigned value that may be the name of a variable."""


def scrub_secrets(text: str) -> str:
    """Return a string with every detected secret replaced by `<secret>`.

    Secrets are found by the detectors of `detect-secrets`, the formats of well-known services, key blocks,
    URLs with a password, and assignments to names that announce a secret. If in doubt, a value is replaced.
    """
    text = _KEY_BLOCK.sub(PLACEHOLDER, text)
    content = _KNOWN_KEY_FORMAT.sub(PLACEHOLDER.encode(), text.encode("utf-8", "surrogatepass"))
    text = content.decode("utf-8", "surrogatepass")
    text = _AUTHORIZATION_HEADER.sub(
        lambda match: f"{match['scheme']}{match['separator']}{PLACEHOLDER}", text
    )
    text = _ASSIGNMENT.sub(_replace_value, text)
    return "\n".join(_scrub_line(line[:MAX_SCRUBBED_LINE_CHARS]) for line in text.split("\n"))


def _scrub_line(line: str) -> str:
    if len(line.strip()) < MIN_SECRET_CHARS:
        return line
    secrets = [
        secret.secret_value
        for detector in _detectors()
        for secret in detector.analyze_line(filename="", line=line, line_number=1)
        if secret.secret_value and len(secret.secret_value) >= MIN_SECRET_CHARS
    ]
    for secret in sorted(secrets, key=len, reverse=True):  # a secret may contain another
        if secret not in PLACEHOLDER:  # otherwise placeholders in the line would be replaced
            line = line.replace(secret, PLACEHOLDER)
    return line


def _replace_value(match: re.Match[str]) -> str:
    value = match["value"]
    # In a file of variables, such as `API_KEY=abc`, names are in capitals and no value is the name of a variable.
    is_code = not match["quote"] and (
        _CODE.match(value) or (_NAME.match(value) and not match["name"].isupper())
    )
    if PLACEHOLDER in value or is_code:
        return match.group()
    return f"{match['name']}{match['separator']}{match['quote']}{PLACEHOLDER}{match['quote']}"


@cache
def _detectors() -> tuple[BasePlugin, ...]:
    """Return the library's detectors of known formats; names that announce a secret are matched by `_ASSIGNMENT`."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Iterable[type[BasePlugin]] = get_mapping_from_secret_type_to_class().values()
    return tuple(cls() for cls in classes if cls.__name__ not in _UNUSED_DETECTORS)
