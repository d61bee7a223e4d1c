"""Lines of a source that cannot be read: what is code in them, and a change of some of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PAIRS = {"(": ")", "[": "]", "{": "}"}
PYTHON = re.compile(
    r"""(?P<comment>\#.*)|(?P<string>[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>\*\*=?|//=?|>>=?|<<=?|[-+*/%&|^@=!<>:]=|->|\.\.\.|[^\s\w])""",
)


@dataclass(frozen=True, kw_only=True)
class LineRewrite:
    """Other text for some lines.

    Attributes:
        lines: Number of a line, from 0 -> its text, which may be of several lines.
        note: The same in a few words.
        weight: How likely it is meant, in (0, 1].
    """

    lines: Mapping[int, str]
    note: str
    weight: float


def rewrite_line(lines: list[str], number: int, text: str, note: str, weight: float) -> LineRewrite:
    """A rewrite of one line."""
    return LineRewrite(lines={number: text}, note=f"line {number + 1}: {note}", weight=weight)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A stretch of one line: kind is `word`, `number`, `string`, `sign` or `comment`."""

    kind: str
    text: str
    start: int
    end: int


def scan_line(line: str, pattern: re.Pattern[str] = PYTHON) -> list[Token]:
    """The tokens of one line, as far as one line can tell.

    Args:
        line: Without its end.
        pattern: The language's tokens, each kind a group.
    """
    return [
        Token(kind=m.lastgroup or "", text=m.group(), start=m.start(), end=m.end())
        for m in pattern.finditer(line)
    ]


def strip_comment(line: str, pattern: re.Pattern[str] = PYTHON) -> str:
    """A line without its comment and the space behind its code."""
    tokens = scan_line(line, pattern)
    if tokens and tokens[-1].kind == "comment":
        return line[: tokens[-1].start].rstrip()
    return line.rstrip()


def get_indent(line: str) -> str:
    """What stands before a line's first character."""
    return line[: len(line) - len(line.lstrip())]


def nearby_lines(lines: list[str], number: int, *, back: int = 1) -> list[int]:
    """A line and the last lines before it that hold something, the nearest first; numbers from 0."""
    found = [number] if number < len(lines) else []
    before = min(number, len(lines)) - 1
    while before >= 0 and len(found) <= back:
        if lines[before].strip():
            found.append(before)
        before -= 1
    return found


def indent_unit(lines: list[str]) -> str:
    """One step of indentation in a source."""
    indents = [get_indent(line) for line in lines if line.strip()]
    if any("\t" in indent for indent in indents):
        return "\t"
    widths = sorted(len(indent) for indent in indents if indent)
    return " " * (widths[0] if widths and widths[0] in (2, 3, 4, 8) else 4)
