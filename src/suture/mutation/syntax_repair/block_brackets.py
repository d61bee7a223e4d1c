"""Adds and removes brackets of blocks: the indentation shows where one is missing or superfluous.

A line *opens* a block if it ends with an opening bracket, such as `if (a) {`. The *end row* of the block is the next
row that is not indented deeper. A correct program closes the block at the start of its end row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suture.mutation.syntax_repair.source_lines import (
    PAIRS,
    LineRewrite,
    ParseStop,
    get_indent,
    rewrite_line,
    rewrite_span,
    strip_comment,
)
from suture.mutation.syntax_repair.token_model import Lexer, SourceToken
from suture.mutation.tuning import BALANCED, LIKELY_BRACKET, MAX_BLOCK_CHANGES, OTHER_BRACKET, UNBALANCED

OPENERS = {closer: opener for opener, closer in PAIRS.items()}
"""Closing bracket -> opening bracket."""


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """The lines of a source with their tokens.

    Attributes:
        lines: The lines, without line endings.
        rows: The rows with tokens, from 0, up to just after the stop.
        tokens: Row -> its tokens, for all rows of the source.
        counts: Text of a token -> how often the source has it.
        pattern: The tokens of the language.
    """

    lines: list[str]
    rows: Sequence[int]
    tokens: dict[int, list[SourceToken]]
    counts: Counter[str]
    pattern: re.Pattern[str]

    def depth(self, row: int) -> int:
        """Return the width of a row's indentation."""
        return len(get_indent(self.lines[row]))

    def balance_share(self, bracket: str) -> float:
        """Return how likely the source has a bracket too many, by the count of its other half."""
        other_half = PAIRS.get(bracket) or OPENERS[bracket]
        return UNBALANCED if self.counts[bracket] > self.counts[other_half] else BALANCED


def rewrite_blocks(lines: list[str], stop: ParseStop, lexer: Lexer) -> Iterator[LineRewrite]:
    """Yield rewrites for blocks that are not closed where their lines end, or not opened where they begin."""
    tokens = [token for token in lexer.tokens("\n".join(lines)) if token.kind != "end"]
    tokens_by_row: dict[int, list[SourceToken]] = {}
    for token in tokens:
        tokens_by_row.setdefault(token.row, []).append(token)
    layout = _Layout(
        lines=lines,
        rows=[row for row in tokens_by_row if row <= stop.line + 1],
        tokens=tokens_by_row,
        counts=Counter(token.text for token in tokens),
        pattern=lexer.pattern,
    )
    rewrites = [*_close_blocks(layout), *_open_blocks(layout), *_remove_brackets(layout)]
    rewrites.sort(key=lambda rewrite: -rewrite.weight)
    yield from rewrites[:MAX_BLOCK_CHANGES]


def _open_brackets(tokens: Sequence[SourceToken]) -> list[str]:
    """Return the opening brackets of a line that it does not close."""
    stack: list[str] = []
    for token in tokens:
        if token.text in PAIRS:
            stack.append(token.text)
        elif token.text in OPENERS and stack:
            stack.pop()
    return stack


def _close_blocks(layout: _Layout) -> Iterator[LineRewrite]:
    """Close the blocks that are not closed at the start of their end row."""
    for index, row in enumerate(layout.rows):
        openers = _open_brackets(layout.tokens[row])
        if not openers or layout.tokens[row][-1].text not in PAIRS:
            continue
        depth = layout.depth(row)
        end_row = next((later for later in layout.rows[index + 1 :] if layout.depth(later) <= depth), None)
        closers = "".join(PAIRS[opener] for opener in reversed(openers))
        weight = LIKELY_BRACKET * layout.balance_share(openers[-1])
        if end_row is not None and layout.depth(end_row) == depth:
            end_text = "".join(token.text for token in layout.tokens[end_row])
            if end_text.startswith(closers):
                continue
            yield from _complete_end_row(layout, end_row, closers, weight * OTHER_BRACKET)
        yield from _close_before(layout, row, end_row, closers, weight)


def _complete_end_row(layout: _Layout, end_row: int, closers: str, weight: float) -> Iterator[LineRewrite]:
    """Replace a wrong sign at the start of an end row, or add to the closing brackets that are there."""
    lines, tokens = layout.lines, layout.tokens[end_row]
    first = tokens[0]
    if first.kind == "sign" and first.text[:1] != closers[0]:
        note = f"{first.text} becomes {closers[0]}"
        yield rewrite_span(lines, end_row, (first.start, first.end), closers[0], note, weight)
    if first.text[:1] not in OPENERS:
        return
    for count in range(1, len(closers) + 1):
        missing = closers[:count]
        note = f"{missing} is missing"
        yield rewrite_span(lines, end_row, (first.start, first.start), missing, note, weight)
    present = [token for token in tokens if token.text in OPENERS]
    if len(present) >= len(closers) - 1:
        end = present[-1].end
        yield rewrite_span(lines, end_row, (end, end), closers[-1], f"{closers[-1]} is missing", weight)


def _close_before(
    layout: _Layout, row: int, end_row: int | None, closers: str, weight: float
) -> Iterator[LineRewrite]:
    """Close a block in a new line before its end row; an empty block also in its own line."""
    limit = len(layout.lines) if end_row is None else end_row
    last_row = max((other for other in layout.tokens if other < limit), default=row)
    # Several brackets, such as `})`, often end a statement.
    for closing in (closers, f"{closers};") if len(closers) > 1 else (closers,):
        if last_row == row:
            end = len(strip_comment(layout.lines[row], layout.pattern))
            yield rewrite_span(layout.lines, row, (end, end), closing, f"{closing} is missing", weight)
        text = f"{layout.lines[last_row]}\n{get_indent(layout.lines[row])}{closing}"
        yield rewrite_line(layout.lines, last_row, text, f"{closing} is missing after it", weight)


def _open_blocks(layout: _Layout) -> Iterator[LineRewrite]:
    """Add the opening bracket at the end of a line that an indented block and a closing bracket follow."""
    lines = layout.lines
    for index, row in enumerate(layout.rows[:-1]):
        depth, later_rows = layout.depth(row), layout.rows[index + 1 :]
        end_row = next((later for later in later_rows if layout.depth(later) <= depth), None)
        if layout.depth(later_rows[0]) <= depth or end_row is None or layout.depth(end_row) < depth:
            continue
        closer = layout.tokens[end_row][0].text
        if closer not in OPENERS:
            continue
        opener, openers = OPENERS[closer], _open_brackets(layout.tokens[row])
        if openers and openers[-1] == opener:
            continue
        weight = LIKELY_BRACKET * layout.balance_share(closer)
        code = strip_comment(lines[row], layout.pattern)
        space = " " if opener == "{" and not code.endswith(("(", "[")) else ""
        note = f"{opener} is missing"
        yield rewrite_span(lines, row, (len(code), len(code)), f"{space}{opener}", note, weight)
        last = layout.tokens[row][-1]
        if last.kind == "sign" and last.text not in OPENERS:
            note = f"{last.text} becomes {opener}"
            yield rewrite_span(lines, row, (last.start, last.end), opener, note, weight * OTHER_BRACKET)


def _remove_brackets(layout: _Layout) -> Iterator[LineRewrite]:
    """Remove brackets at the start or the end of a line where the source has too many of them."""
    for row in layout.rows:
        tokens = layout.tokens[row]
        for token in (tokens[0], tokens[-1]):
            if token.text not in PAIRS and token.text not in OPENERS:
                continue
            if layout.balance_share(token.text) == UNBALANCED:
                line = layout.lines[row]
                before = line[: token.start].rstrip() or line[: token.start]
                text = f"{before}{line[token.end :]}"
                weight = 0.6 * (OTHER_BRACKET * UNBALANCED)
                yield rewrite_line(layout.lines, row, text, f"{token.text} is superfluous", weight)
