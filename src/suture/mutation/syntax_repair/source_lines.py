"""The lines of a source that does not parse: their tokens, their rewrites, and where parsing stops."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

PAIRS = {"(": ")", "[": "]", "{": "}"}
"""Opening bracket -> closing bracket."""
OPENERS = {closer: opener for opener, closer in PAIRS.items()}
"""Closing bracket -> opening bracket."""
PYTHON_TOKENS = re.compile(
    r"""(?P<comment>\#.*)|(?P<string>[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>\*\*=?|//=?|>>=?|<<=?|[-+*/%&|^@=!<>:]=|->|\.\.\.|[^\s\w])""",
)
"""Matches a token of Python, with a group for each kind (see `Token.kind`)."""


@dataclass(frozen=True, kw_only=True)
class LineRewrite:
    """New contents of some lines.

    Attributes:
        lines: Number of a line, from 0 -> its new content, which may have several lines.
        weight: How likely the change restores what the author meant, in (0, 1].
    """

    lines: Mapping[int, str]
    note: str
    weight: float


def rewrite_line(number: int, text: str, note: str, weight: float) -> LineRewrite:
    """Return the rewrite of one line."""
    return LineRewrite(lines={number: text}, note=f"line {number + 1}: {note}", weight=weight)


def rewrite_span(
    lines: list[str], number: int, span: tuple[int, int], text: str, note: str, weight: float
) -> LineRewrite:
    """Return the rewrite that replaces the characters of one line from `span[0]` to before `span[1]`."""
    line = lines[number]
    return rewrite_line(number, f"{line[: span[0]]}{text}{line[span[1] :]}", note, weight)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token of a source.

    Attributes:
        kind: `word`, `number`, `string`, `sign`, `comment` or `end`. In languages other than Python, keywords are
            signs.
        start: Where it begins in its line, in characters.
        row: Its line, from 0; the first one if it has several. Always 0 if its line was read alone.
    """

    kind: str
    text: str
    start: int
    row: int = 0

    @property
    def end(self) -> int:
        """Where it ends in its line, in characters."""
        return self.start + len(self.text)

    @property
    def span(self) -> tuple[int, int]:
        """`(start, end)`."""
        return self.start, self.end


def insert_token(lines: list[str], number: int, column: int, text: str, weight: float) -> LineRewrite:
    """Return the rewrite that inserts a missing token into a line."""
    return rewrite_span(lines, number, (column, column), text, f"{text.strip()} is missing", weight)


def replace_token(lines: list[str], number: int, token: Token, text: str, weight: float) -> LineRewrite:
    """Return the rewrite that replaces a token of a line."""
    return rewrite_span(lines, number, token.span, text, f"{token.text} becomes {text}", weight)


def delete_token(lines: list[str], number: int, token: Token, weight: float) -> LineRewrite:
    """Return the rewrite that deletes a superfluous token of a line."""
    return rewrite_span(lines, number, token.span, "", f"{token.text} is superfluous", weight)


def find_open_brackets(tokens: Iterable[Token]) -> list[Token]:
    """Return the opening brackets among some tokens that no closing bracket follows, of any kind."""
    stack: list[Token] = []
    for token in tokens:
        if token.text in PAIRS:
            stack.append(token)
        elif token.text in OPENERS and stack:
            stack.pop()
    return stack


def scan_line(line: str, pattern: re.Pattern[str] = PYTHON_TOKENS) -> list[Token]:
    """Return the tokens of one line.

    The line is read alone. So the rest of a string that began on an earlier line is split into tokens too.

    Args:
        pattern: The tokens of the language, with a group for each kind.
    """
    return [Token(kind=m.lastgroup or "", text=m.group(), start=m.start()) for m in pattern.finditer(line)]


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
    """Return one step of indentation in a source: a tab if it has any, else its smallest common width."""
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


OUTSIDE_MESSAGES = ("outside function", "outside loop", "not properly in loop", "outside async function")
"""Parts of CPython's messages about a statement that is not inside a function or loop."""
INDENTATION_MESSAGES = ("indent", "expected 'except'", *OUTSIDE_MESSAGES)
"""Parts of CPython's messages about a line that is probably indented wrongly."""


def rewrite_indentation(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Yield other indentations of the line where parsing stopped, alone and together with lines next to it."""
    number = stop.line - 1
    if "\t" in "".join(map(get_indent, lines)):
        for width in (4, 8):
            text = {n: line.expandtabs(width) if get_indent(line) else line for n, line in enumerate(lines)}
            yield LineRewrite(lines=text, note=f"tabs become {width} spaces", weight=0.9)
    is_reported = any(word in stop.message for word in INDENTATION_MESSAGES)
    if number >= len(lines) or not (is_reported or stop.message == "invalid syntax"):
        return
    weight = 1.0 if is_reported else 0.3
    previous = next(iter(nearby_lines(lines, number, back=1)[1:]), None)
    unit = indent_unit(lines)
    for target, indent_share in _target_indents(lines, number, previous, unit):
        for group, group_share in _line_groups(lines, number):
            shifted = _shift_lines(lines, group, target)
            note = f"line {number + 1}: {len(group)} line(s) at column {len(target)}"
            yield LineRewrite(lines=shifted, note=note, weight=weight * indent_share * group_share)
    if previous is not None and strip_comment(lines[previous]).endswith(":") and is_reported:
        deeper = get_indent(lines[previous]) + unit
        note = f"line {previous + 1}: its block is empty"
        yield LineRewrite(lines={previous: f"{lines[previous]}\n{deeper}pass"}, note=note, weight=0.15)
    if previous is not None and "unexpected indent" in stop.message:
        yield from _shift_earlier_lines(lines, number, previous)


def _target_indents(
    lines: list[str], number: int, previous: int | None, unit: str
) -> Iterator[tuple[str, float]]:
    """Yield `(indentation, weight)` for the indentations that a line could have."""
    current = get_indent(lines[number])
    if previous is not None and strip_comment(lines[previous]).endswith(":"):
        yield get_indent(lines[previous]) + unit, 1.0
    earlier_lines = (lines[earlier] for earlier in range(number - 1, -1, -1))
    indents = dict.fromkeys(get_indent(line) for line in earlier_lines if line.strip())
    nearest = sorted(indents, key=lambda indent: abs(len(indent) - len(current)))
    for rank, indent in enumerate(nearest[:6]):  # six is chosen by judgement
        if indent != current:
            yield indent, 0.9 - 0.1 * rank
    yield current + unit, 0.4


def _line_groups(lines: list[str], number: int) -> Iterator[tuple[list[int], float]]:
    """Yield `(line numbers, weight)` for groups of lines that may be shifted together.

    All groups begin with the line `number`. Empty lines are left out.
    """
    indent = len(get_indent(lines[number]))

    def lines_until(is_end: Callable[[str], bool]) -> list[int]:
        later = range(number + 1, len(lines))
        return [number, *takewhile(lambda other: not is_end(lines[other]), later)]

    rest_of_block = lines_until(lambda line: bool(line.strip()) and len(get_indent(line)) < indent)
    with_block = lines_until(lambda line: bool(line.strip()) and len(get_indent(line)) <= indent)
    paragraph = lines_until(lambda line: not line.strip())
    rest_of_file = lines_until(lambda line: False)
    groups = (rest_of_block, with_block, [number], paragraph, rest_of_file)
    weights: dict[tuple[int, ...], float] = {}
    for group, weight in zip(groups, (1.0, 0.9, 0.85, 0.5, 0.6), strict=True):
        weights.setdefault(tuple(other for other in group if lines[other].strip()), weight)
    for filled_lines, weight in weights.items():
        yield list(filled_lines), weight


def _shift_lines(lines: list[str], group: list[int], target: str) -> dict[int, str]:
    """Return line number -> new content, with all lines shifted as far as the first one."""
    shift = len(target) - len(get_indent(lines[group[0]])) if group else 0
    shifted = {}
    for number in group:
        indent, text = get_indent(lines[number]), lines[number].lstrip()
        if number == group[0]:
            shifted[number] = target + text
        elif shift >= 0:
            shifted[number] = (target[:1] or " ") * shift + indent + text
        else:
            shifted[number] = indent[: max(0, len(indent) + shift)] + text
    return shifted


def _shift_earlier_lines(lines: list[str], number: int, previous: int) -> Iterator[LineRewrite]:
    """Indent the preceding lines like a line, as far back as they have the same indentation."""
    target, old_indent = get_indent(lines[number]), get_indent(lines[previous])
    group = []
    for earlier in range(previous, -1, -1):
        if not lines[earlier].strip():
            continue
        if get_indent(lines[earlier]) != old_indent:
            break
        group.append(earlier)
        shifted = {other: target + lines[other].lstrip() for other in group}
        note = f"line {earlier + 1}: {len(shifted)} line(s) at column {len(target)}"
        yield LineRewrite(lines=shifted, note=note, weight=0.5)
