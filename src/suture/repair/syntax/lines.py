"""Lines of a source that may not be Python: where reading stops, what is code in them, a change of some."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

PAIRS = {"(": ")", "[": "]", "{": "}"}
TOKEN = re.compile(
    r"""(?P<comment>\#.*)|(?P<string>[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>\*\*=?|//=?|>>=?|<<=?|[-+*/%&|^@=!<>:]=|->|\.\.\.|[^\s\w])""",
)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The first place at which a source is no Python.

    Attributes:
        line: From 1; the last line at most.
        column: From 0, in characters.
        message: What CPython says.
    """

    line: int
    column: int
    message: str


def stop_of(text: str) -> Stop | None:
    """Where a source stops being Python; `None` where it does not.

    Args:
        text: With a line feed at the end of its lines.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "source", "exec", dont_inherit=True)
    except SyntaxError as fault:
        last = text.count("\n") + 1
        line = min(max(1, fault.lineno or 1), last)
        return Stop(line=line, column=max(0, (fault.offset or 1) - 1), message=fault.msg or "")
    except (ValueError, RecursionError, MemoryError) as fault:
        return Stop(line=1, column=0, message=str(fault))
    return None


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """Other text for some lines.

    Attributes:
        lines: Number of a line, from 0 -> its text, which may be of several lines.
        note: The same in a few words.
        weight: How likely it is meant, in (0, 1].
    """

    lines: Mapping[int, str]
    note: str
    weight: float


def one(lines: list[str], number: int, text: str, note: str, weight: float) -> Rewrite:
    """A rewrite of one line."""
    return Rewrite(lines={number: text}, note=f"line {number + 1}: {note}", weight=weight)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A stretch of one line: kind is `word`, `number`, `string`, `sign` or `comment`."""

    kind: str
    text: str
    start: int
    end: int


def scan(line: str) -> list[Token]:
    """The tokens of one line, as far as one line can tell."""
    return [
        Token(kind=m.lastgroup or "", text=m.group(), start=m.start(), end=m.end())
        for m in TOKEN.finditer(line)
    ]


def code_of(line: str) -> str:
    """A line without its comment and the space behind its code."""
    tokens = scan(line)
    if tokens and tokens[-1].kind == "comment":
        return line[: tokens[-1].start].rstrip()
    return line.rstrip()


def indent_of(line: str) -> str:
    """What stands before a line's first character."""
    return line[: len(line) - len(line.lstrip())]


def near(lines: list[str], number: int, *, back: int = 1) -> list[int]:
    """A line and the last lines before it that hold something, the nearest first; numbers from 0."""
    found = [number] if number < len(lines) else []
    before = min(number, len(lines)) - 1
    while before >= 0 and len(found) <= back:
        if lines[before].strip():
            found.append(before)
        before -= 1
    return found


def unit_of(lines: list[str]) -> str:
    """One step of indentation in a source."""
    indents = [indent_of(line) for line in lines if line.strip()]
    if any("\t" in indent for indent in indents):
        return "\t"
    widths = sorted(len(indent) for indent in indents if indent)
    return " " * (widths[0] if widths and widths[0] in (2, 3, 4, 8) else 4)
