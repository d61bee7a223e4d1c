"""The lines of a source that does not parse: their tokens, their rewrites, and where parsing stops."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

PAIRS = {"(": ")", "[": "]", "{": "}"}
PYTHON_TOKENS = re.compile(
    r"""(?P<comment>\#.*)|(?P<string>[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>\*\*=?|//=?|>>=?|<<=?|[-+*/%&|^@=!<>:]=|->|\.\.\.|[^\s\w])""",
)


@dataclass(frozen=True, kw_only=True)
class LineRewrite:
    """New text for some lines.

    Attributes:
        lines: Number of a line, from 0 -> its new text, which may have several lines.
        note: The change in a few words.
        weight: How likely the change restores what the author meant, in (0, 1].
    """

    lines: Mapping[int, str]
    note: str
    weight: float


def rewrite_line(lines: list[str], number: int, text: str, note: str, weight: float) -> LineRewrite:
    """Return the rewrite of one line."""
    return LineRewrite(lines={number: text}, note=f"line {number + 1}: {note}", weight=weight)


def rewrite_span(
    lines: list[str], number: int, span: tuple[int, int], text: str, note: str, weight: float
) -> LineRewrite:
    """Return the rewrite that replaces the characters of one line from `span[0]` to before `span[1]`."""
    line = lines[number]
    return rewrite_line(lines, number, f"{line[: span[0]]}{text}{line[span[1] :]}", note, weight)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token of one line.

    Attributes:
        kind: `word`, `number`, `string`, `sign` or `comment`.
        text: The token.
        start: Where it begins in the line, in characters.
        end: Where it ends.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        """`(start, end)`."""
        return self.start, self.end


def scan_line(line: str, pattern: re.Pattern[str] = PYTHON_TOKENS) -> list[Token]:
    """Return the tokens of one line.

    The line is read alone. So the text of a string that began on an earlier line is split into tokens too.

    Args:
        pattern: The tokens of the language, with a group for each kind.
    """
    return [
        Token(kind=m.lastgroup or "", text=m.group(), start=m.start(), end=m.end())
        for m in pattern.finditer(line)
    ]


def strip_comment(line: str, pattern: re.Pattern[str] = PYTHON_TOKENS) -> str:
    """Return a line without its comment and trailing blanks."""
    tokens = scan_line(line, pattern)
    if tokens and tokens[-1].kind == "comment":
        return line[: tokens[-1].start].rstrip()
    return line.rstrip()


def get_indent(line: str) -> str:
    """Return the indentation of a line."""
    return line[: len(line) - len(line.lstrip())]


def nearby_lines(lines: list[str], number: int, *, back: int = 1) -> list[int]:
    """Return the number of a line, then those of the non-empty lines before it, the nearest first.

    Args:
        number: Number of the line, from 0. It is left out if the source has no such line.
        back: How many of the lines before it to return.
    """
    numbers = [number] if number < len(lines) else []
    earlier = min(number, len(lines)) - 1
    while earlier >= 0 and len(numbers) <= back:
        if lines[earlier].strip():
            numbers.append(earlier)
        earlier -= 1
    return numbers


def indent_unit(lines: list[str]) -> str:
    """Return one step of indentation in a source."""
    indents = [get_indent(line) for line in lines if line.strip()]
    if any("\t" in indent for indent in indents):
        return "\t"
    widths = sorted(len(indent) for indent in indents if indent)
    return " " * (widths[0] if widths and widths[0] in (2, 3, 4, 8) else 4)


@dataclass(frozen=True, kw_only=True)
class ParseStop:
    """The first position at which a source does not parse.

    Attributes:
        line: From 1, at most the last line.
        column: From 0, in characters.
        message: CPython's message, or the types of tree-sitter's error node and of its parent.
    """

    line: int
    column: int
    message: str


def find_python_stop(text: str) -> ParseStop | None:
    """Return where a source stops being Python; `None` if it parses.

    Args:
        text: The source, with line feeds as line endings.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "source", "exec", dont_inherit=True)
    except SyntaxError as fault:
        last_line = text.count("\n") + 1
        line = min(max(1, fault.lineno or 1), last_line)
        return ParseStop(line=line, column=max(0, (fault.offset or 1) - 1), message=fault.msg or "")
    except (ValueError, RecursionError, MemoryError) as fault:
        return ParseStop(line=1, column=0, message=str(fault))
    return None
