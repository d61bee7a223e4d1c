"""The `.env` file of a project: `NAME=VALUE` lines, quotes, comments, nothing that runs."""

from __future__ import annotations

import re
from collections.abc import Callable

from suture.errors import UsageError

# One assignment; a quoted value may span lines. Bounded, and with one way to match: a file of quotes or of
# spaces must not keep us busy.
_ASSIGNMENT = re.compile(
    r"""
    ^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
    (?:
        '(?P<single>[^']{0,4096})'[ \t]*(?:\#[^\n]*)?\r?$
      | "(?P<double>(?:[^"\\]|\\.){0,4096})"[ \t]*(?:\#[^\n]*)?\r?$
      | (?P<bare>[^\n]*)$
    )
    """,
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"(?<=[ \t])#")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str, wanted: Callable[[str], bool], *, source: str = ".env") -> dict[str, str]:
    """Read the variables that are ours; lines of other programs are passed over, also odd ones.

    Double quotes know a backslash before `n`, `r`, `t` and any other character; nothing is
    interpolated. The last of equal names wins.

    Args:
        text: The content of the `.env` file.
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
            values[name] = _COMMENT.split(f" {match['bare']}", maxsplit=1)[0].strip(" \t\r")
    return values
