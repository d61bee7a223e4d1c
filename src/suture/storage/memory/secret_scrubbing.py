"""Secrets out of texts before they are stored: what is kept across runs may be shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from suture.project.workspace.secret_detection import SHAPES

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin


GONE = "<secret>"
LEAST_CHARS = 4
"""A shorter text is no secret, and would be found everywhere."""
MOST_LINE_CHARS = 4000
"""Of a line that is looked through; the rest of a longer one is left out."""
_LEFT_OUT = ("KeywordDetector", "IPPublicDetector")
"""Not asked: the first takes code such as `token = next()` for a secret, the second any address."""
_KEY_BLOCK = re.compile(
    r"-----BEGIN [^-\n]{0,60}PRIVATE KEY[^-\n]{0,20}-----.*?(?:-----END [^-\n]{0,60}-----|\Z)", re.DOTALL
)
_SHAPED = re.compile(rb"(?:" + SHAPES.pattern + rb")[\w.~+/=-]*")
"""What begins like a secret, to its end."""
_AUTHORIZATION = re.compile(
    r"(?i)\b(?P<how>bearer|basic|token|apikey|api-key)(?P<gap>[ :=]+)(?P<key>[\w.~+/-]{12,}=*)"
)
_ASSIGNED = re.compile(
    r"""(?ix)\b(?P<name>[\w.-]{0,40}
        (?:passw(?:or)?d|passphrase|pwd|secret|credential|api[_-]?key|access[_-]?key|auth[_-]?token
          |private[_-]?key|client[_-]?key|_token|\btoken)\w{0,20})
        (?P<gap>["']?\s{0,4}(?::=|[:=])\s{0,4}[bruf]{0,2})
        (?P<quote>["']?)(?P<value>[^\s"',;)}\]]{4,400})(?P=quote)"""
)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|(?:None|True|False|str|int|bytes|float|bool|Any|Optional)\b")
"""What is given to a name in code, and is no text: a call, a part, a type."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")


def scrub(text: str) -> str:
    """A text with every secret that is found in it replaced by `<secret>`.

    What finds them: the detectors of `detect-secrets`, the forms that services give their keys, key blocks,
    addresses with a password, and whatever is given to a name that says it is a secret. In doubt it goes.
    """
    text = _KEY_BLOCK.sub(GONE, text)
    text = _SHAPED.sub(GONE.encode(), text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    text = _AUTHORIZATION.sub(lambda found: f"{found['how']}{found['gap']}{GONE}", text)
    text = _ASSIGNED.sub(_without_value, text)
    return "\n".join(_scrubbed(line[:MOST_LINE_CHARS]) for line in text.split("\n"))


def _scrubbed(line: str) -> str:
    for secret in sorted(_detected(line), key=len, reverse=True):
        line = line.replace(secret, GONE)
    return line


def _without_value(found: re.Match[str]) -> str:
    value = found["value"]
    is_code = not found["quote"] and (
        _CODE.match(value) or (_NAME.match(value) and not found["name"].isupper())
    )
    if GONE in value or is_code:
        return found.group()
    return f"{found['name']}{found['gap']}{found['quote']}{GONE}{found['quote']}"


def _detected(line: str) -> Iterator[str]:
    if len(line.strip()) < LEAST_CHARS:
        return
    for detector in _detectors():
        for found in detector.analyze_line(filename="", line=line, line_number=1):
            value = found.secret_value
            if value and len(value) >= LEAST_CHARS and value not in GONE:
                yield value


@cache
def _detectors() -> tuple[BasePlugin, ...]:
    """Every detector of the library that knows a form; names that give a secret away are looked for here."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    wanted: Iterable[type[BasePlugin]] = get_mapping_from_secret_type_to_class().values()
    return tuple(one() for one in wanted if one.__name__ not in _LEFT_OUT)
