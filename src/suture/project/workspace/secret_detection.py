"""Find files that may hold secrets of the user, by their names and by their contents.

The names are based on gitrob's list of sensitive files, as shhgit maintains it. Files that programs need to
run are left out, and files for keys that the manuals of frameworks and services name are added. A file that is
committed unchanged is not a secret.

A module that git ignores is searched with patterns, because source that is not valid Python may still hold a key. If in
doubt, it counts as a secret: the user can allow it by name.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project.languages import BUILT_IN_LANGUAGES
from suture.project.tuning import (
    MAX_SCANNED_MODULE_BYTES,
    MAX_SERVICE_ACCOUNT_BYTES,
    SECRET_HEAD_BYTES,
    SECRET_MATCH_STEPS_PER_CHAR,
)
from suture.project.workspace.globs import parse_globs
from suture.project.workspace.repository import hash_blob, open_repository

_SECRET_NAMES_WITHOUT_SUFFIX = (
    "credential*", "*[-_.]credentials", "secret", "secrets", "*[-_.]secret", "*[-_.]secrets", ".secret",
    ".secrets", "token", "tokens", "password", "passwords",
)  # fmt: skip
_TEXT_SUFFIXES = (
    "json", "yml", "yaml", "toml", "ini", "cfg", "conf", "txt", "csv", "xml", "properties", "env",
)  # fmt: skip
_SECRET_TEXT_FILES = [
    f"{name}.{suffix}" for name in _SECRET_NAMES_WITHOUT_SUFFIX for suffix in _TEXT_SUFFIXES
]
SECRET_FILES: tuple[str, ...] = (
    *resources.files(__package__).joinpath("secret_files.gitignore").read_text("utf-8").splitlines(),
    *_SECRET_TEXT_FILES,
)
"""Globs as in a `.gitignore`, for lower-case names."""
_CODE_FILES = [f"*{ending}" for facts in BUILT_IN_LANGUAGES.values() for ending in facts.extensions]
NOT_SECRET: tuple[str, ...] = (
    "*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.example.*", "*.sample.*", "*.template.*",
    "*.pyi", *_CODE_FILES,
)  # fmt: skip
"""Globs of files that are never secrets, whatever else their names say: examples, public keys, code."""

_SECRET_NAMES = parse_globs([*SECRET_FILES, *[f"!{glob}" for glob in NOT_SECRET]])
_COPY_SUFFIX = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save))\Z")
"""Suffixes of copies that editors and people make of a file."""


def has_secret_name(path: str, *, is_folder: bool) -> bool:
    """Return whether the name of a file or folder suggests that it holds secrets.

    Args:
        path: Path relative to the project's root.
    """
    original_name = path.lower() if is_folder else _COPY_SUFFIX.sub("", path.lower())
    for name in {path.lower(), original_name}:
        _SECRET_NAMES.steps_left = len(path) * SECRET_MATCH_STEPS_PER_CHAR
        if _SECRET_NAMES.verdict(name, is_folder=is_folder):
            return True
    return False


def is_private_key(content: bytes) -> bool:
    """Return whether a file is a private key, or a service account with one, whatever its name is."""
    head = content[:SECRET_HEAD_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    first_line = head.partition(b"\n")[0]
    if first_line.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first_line:
        return True
    if head.startswith((b"PuTTY-User-Key-File", b"openssh-key-v1")):
        return True
    is_account = head.startswith(b"{") and len(content) <= MAX_SERVICE_ACCOUNT_BYTES
    return is_account and b'"service_account"' in content and b'"private_key"' in content


def unchanged_since_commit(root: Path, files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the paths of files that are unchanged since the last commit of the project's repository."""
    try:
        repository = open_repository(root)
        committed = repository.blobs_at(repository.head(), files)
    except (PrerequisiteError, StorageError, UsageError):
        return frozenset()
    return frozenset(path for path, blob in committed.items() if blob == hash_blob(files[path], len(blob)))


PRIVATE_NAME = re.compile(
    r"secret|passw|credential|(?:^|[_-])(?:tokens?|local|private|creds?)(?:[_-]|$)|api_?key", re.IGNORECASE
)
"""Matches a word in a name that suggests a secret, or something that is only for this machine."""

_ASSIGNS_TEXT = rb"""
    \w{0,60} ["'\])\s]{0,8}                           # the rest of the name, and closing characters
    (?: :[^=\n"'{}]{0,80}= | :?= | [:,(] )            # an assignment, a dict entry or an argument
    [\s(\[\\]{0,40} (?: [\w.]{0,60}(?:decode|fromhex|unhexlify|SecretStr|bytes|str)\( \s{0,40} )?
    [bBrRuUfF]{0,2} (?: \"{3} | '{3} | ["'] )
"""
SECRET_ASSIGNED = re.compile(
    rb"(?i:secret|passw|passphrase|credential|api_?key|access_?key|account_?key|signing_?key|auth_?token)"
    + _ASSIGNS_TEXT
    + rb"""[^"'\s]""",
    re.VERBOSE,
)
"""A name that means a secret, and any string that is assigned to it."""
POSSIBLE_SECRET_ASSIGNED = re.compile(
    rb"(?i:token|pwd|auth|webhook|salt|(?<![a-z])dsn|_key|(?<![a-z])key|private)"
    + _ASSIGNS_TEXT
    + rb"""(?=[^"'\s]{0,200}\d)(?=[^"'\s]{0,200}[a-zA-Z])[^"'\s]{12,}["']""",
    re.VERBOSE,
)
"""A name that may mean a secret, and a string that nobody would write by hand."""
KEY_FORMATS = re.compile(
    rb"(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|gh[pousr]_\w{30}|github_pat_\w{30}|glpat-[\w-]{20}"
    rb"|xox[abprs]-[\w-]{10}|\bsk-[\w-]{20}|\b[rs]k_live_\w{16}|\beyJ[\w-]{10,500}\.eyJ[\w-]{10}"
    rb"|\b[a-z][a-z0-9+.-]{2,20}://[^\s/:@\"'{}]{0,100}:[^\s/@\"'{}]{3,200}@"
    rb"|PRIVATE[ ]KEY-----"
)
"""Keys in the formats of their issuers, addresses with a password, and private keys."""


def is_private_name(name: str) -> bool:
    """Return whether the name of a file or folder suggests that it is private."""
    return bool(PRIVATE_NAME.search(name))


def may_hold_secret(content: bytes) -> bool:
    """Return whether a file may hold a secret. One longer than `MAX_SCANNED_MODULE_BYTES` always may."""
    return len(content) > MAX_SCANNED_MODULE_BYTES or any(
        pattern.search(content) for pattern in (KEY_FORMATS, SECRET_ASSIGNED, POSSIBLE_SECRET_ASSIGNED)
    )


def holds_key(content: bytes) -> bool:
    """Return whether a file has a key in the format of its issuer, or assigns a string that looks generated."""
    return bool(KEY_FORMATS.search(content) or POSSIBLE_SECRET_ASSIGNED.search(content))


def assigns_secret_text(content: bytes) -> bool:
    """Return whether code assigns a string literal to a name that means a secret."""
    return bool(SECRET_ASSIGNED.search(content))


SECRET_SETTING = re.compile(
    rb"^[^\n#;]{0,80}(?i:secret|passw|passphrase|credential|token|api_?key|access_?key|private)\w{0,40}"
    rb"[ \t]{0,8}[:=][ \t]{0,8}[^\s]",
    re.MULTILINE,
)
"""A line of a settings file that assigns an unquoted value to a secret."""


def assigns_secret(content: bytes) -> bool:
    """Return whether a file that is not code has a line that assigns a value to a secret."""
    return bool(SECRET_SETTING.search(content))
