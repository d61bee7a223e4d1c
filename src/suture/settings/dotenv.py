"""The `.env` file of a project: `NAME=VALUE` lines, quotes, comments, nothing that runs."""

from __future__ import annotations

import re
from collections.abc import Callable

from suture.errors import UsageError

__all__ = ["parse_dotenv"]

# One assignment; a quoted value may span lines, a bare one ends at ` #` or at the end of the line.
_ASSIGNMENT = re.compile(
    r"""
    ^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
    (?:
        '(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | (?P<bare>[^\n]*?)
    )
    [ \t]*(?:(?<=[ \t'"=])\#[^\n]*)?\r?$
    """,
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str, wanted: Callable[[str], bool], *, source: str = ".env") -> dict[str, str]:
    """Read the variables that are ours; lines of other programs are passed over, also odd ones.

    Double quotes know a backslash before `n`, `r`, `t` and any other character; nothing is
    interpolated. The last of equal names wins.

    Args:
        text: The file.
        wanted: Whether a name is ours.
        source: What to call the file in an error.

    Raises:
        UsageError: A value of ours has an opening quote and no closing one.
    """
    values: dict[str, str] = {}
    for match in _ASSIGNMENT.finditer(text):
        name = match["name"]
        if not wanted(name):
            continue
        if match["double"] is not None:
            values[name] = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), match["double"])
        elif match["single"] is not None:
            values[name] = match["single"]
        elif match["bare"].startswith(("'", '"')):
            raise UsageError(f"{source}: the value of {name} has an opening quote and no closing one")
        else:
            values[name] = match["bare"]
    return values
