"""What a command changed in a copy of a project, read from an account that nobody has to believe."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_FILES = 500
"""Files that one command may change."""
FILE_BYTES = 2 << 20
MOST_BYTES = 16 << 20
"""Of all changed files together."""
LONGEST_PATH = 400


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a command did to a copy.

    Attributes:
        changed: Files that are new or differ, path -> content.
        deleted: Paths of files that are gone.
        left_out: Paths of changed files that were not brought back: too large, too many, or with a name that
            cannot stand in a diff.
    """

    changed: Mapping[str, bytes] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_changes(account: bytes) -> Changes:
    """Read the account of a command's changes; what makes no sense in it is no change.

    Args:
        account: As `inside_copy.changes` writes it, or anything at all.
    """
    try:
        report: Any = json.loads(account)
        listed = [(str(path), str(content)) for path, content in report["changed"][:MOST_FILES]]
        gone = [str(path) for path in report["deleted"]]
        left_out = [str(path) for path in report["left_out"]]
        contents = {path: base64.b64decode(content, validate=True) for path, content in listed}
    except (ValueError, TypeError, KeyError, RecursionError):
        return Changes()
    changed: dict[str, bytes] = {}
    room = MOST_BYTES
    for path, content in contents.items():
        if is_speakable(path) and len(content) <= min(FILE_BYTES, room):
            changed[path] = content
            room -= len(content)
        else:
            left_out.append(path)
    shown = tuple(ascii(path)[1:-1] for path in left_out[:MOST_FILES] if len(path) <= LONGEST_PATH)
    return Changes(changed=changed, deleted=tuple(filter(is_speakable, gone[:MOST_FILES])), left_out=shown)


def is_speakable(path: str) -> bool:
    """Whether a path stays in its folder and can stand in a diff, a prompt and a ledger."""
    parts = path.split("/")
    return path.isprintable() and len(path) <= LONGEST_PATH and not {"", ".", ".."} & set(parts)
