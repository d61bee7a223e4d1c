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
    OPENERS,
    PAIRS,
    LineRewrite,
    ParseStop,
    Token,
    find_open_brackets,
    get_indent,
    insert_token,
    replace_token,
    rewrite_line,
    strip_comment,
)
from suture.mutation.syntax_repair.token_model import Lexer
from suture.mutation.tuning import BALANCED, LIKELY_BRACKET, MAX_BLOCK_CHANGES, OTHER_BRACKET, UNBALANCED


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """The lines of a source with their tokens.

    Attributes:
        rows: The rows with tokens, from 0, up to just after the stop.
        tokens: Row -> its tokens, for all rows of the source.
        counts: Text of a token -> how often the source has it.
    """

    lines: list[str]
    rows: Sequence[int]
    tokens: dict[int, list[Token]]
    counts: Counter[str]
    pattern: re.Pattern[str]

    def depth(self, row: int) -> int:
        """Return the width of a row's indentation."""
        return len(get_indent(self.lines[row]))

    def balance_share(self, bracket: str) -> float:
        """Return how likely the source has a bracket too many, by the count of its other half."""
        other_half = PAIRS.get(bracket) or OPENERS[bracket]
        return UNBALANCED if self.counts[bracket] > self.counts[other_half] else BALANCED

    def find_end_row(self, index: int) -> int | None:
        """Return the end row of the block that `rows[index]` opens; `None` if the source ends before."""
        depth = self.depth(self.rows[index])
        return next((later for later in self.rows[index + 1 :] if self.depth(later) <= depth), None)


def rewrite_blocks(lines: list[str], stop: ParseStop, lexer: Lexer) -> Iterator[LineRewrite]:
    """Yield rewrites for blocks that are not closed where their lines end, or not opened where they begin."""
    tokens = [token for token in lexer.tokens("\n".join(lines)) if token.kind != "end"]
    tokens_by_row: dict[int, list[Token]] = {}
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


def _close_blocks(layout: _Layout) -> Iterator[LineRewrite]:
    """Close the blocks that are not closed at the start of their end row."""
    for index, row in enumerate(layout.rows):
        openers = [token.text for token in find_open_brackets(layout.tokens[row])]
        if not openers or layout.tokens[row][-1].text not in PAIRS:
            continue
        end_row = layout.find_end_row(index)
        closers = "".join(PAIRS[opener] for opener in reversed(openers))
        weight = LIKELY_BRACKET * layout.balance_share(openers[-1])
        if end_row is not None and layout.depth(end_row) == layout.depth(row):
            end_text = "".join(token.text for token in layout.tokens[end_row])
            if end_text.startswith(closers):
                continue
            yield from _complete_end_row(layout, end_row, closers, weight * OTHER_BRACKET)
        yield from _close_before(layout, row, end_row, closers, weight)


def _complete_end_row(layout: _Layout, end_row: int, closers: str, weight: float) -> Iterator[LineRewrite]:
    """Replace a wrong sign at the start of an end row, or add to the closing brackets that are there."""
    lines, tokens = layout.lines, layout.tokens[end_row]
    first_token = tokens[0]
    if first_token.kind == "sign" and first_token.text[:1] != closers[0]:
        yield replace_token(lines, end_row, first_token, closers[0], weight)
    if first_token.text[:1] not in OPENERS:
        return
    for count in range(1, len(closers) + 1):
        yield insert_token(lines, end_row, first_token.start, closers[:count], weight)
    present_closers = [token for token in tokens if token.text in OPENERS]
    if len(present_closers) >= len(closers) - 1:
        yield insert_token(lines, end_row, present_closers[-1].end, closers[-1], weight)


def _close_before(
    layout: _Layout, row: int, end_row: int | None, closers: str, weight: float
) -> Iterator[LineRewrite]:
    """Close a block in a new line before its end row; an empty block also in its own line."""
    limit = len(layout.lines) if end_row is None else end_row
    last_row = max((other for other in layout.tokens if other < limit), default=row)
    # Several brackets, such as `})`, often end a statement.
    for closing in (closers, f"{closers};") if len(closers) > 1 else (closers,):
        if last_row == row:
            code = strip_comment(layout.lines[row], layout.pattern)
            yield insert_token(layout.lines, row, len(code), closing, weight)
        text = f"{layout.lines[last_row]}\n{get_indent(layout.lines[row])}{closing}"
        yield rewrite_line(layout.lines, last_row, text, f"{closing} is missing after it", weight)


def _open_blocks(layout: _Layout) -> Iterator[LineRewrite]:
    """Add the opening bracket at the end of a line that an indented block and a closing bracket follow."""
    lines = layout.lines
    for index, row in enumerate(layout.rows[:-1]):
        depth, next_row, end_row = layout.depth(row), layout.rows[index + 1], layout.find_end_row(index)
        if layout.depth(next_row) <= depth or end_row is None or layout.depth(end_row) < depth:
            continue
        closer = layout.tokens[end_row][0].text
        if closer not in OPENERS:
            continue
        opener, open_brackets = OPENERS[closer], find_open_brackets(layout.tokens[row])
        if open_brackets and open_brackets[-1].text == opener:
            continue
        weight = LIKELY_BRACKET * layout.balance_share(closer)
        code = strip_comment(lines[row], layout.pattern)
        space = " " if opener == "{" and not code.endswith(("(", "[")) else ""
        yield insert_token(lines, row, len(code), f"{space}{opener}", weight)
        last_token = layout.tokens[row][-1]
        if last_token.kind == "sign" and last_token.text not in OPENERS:
            yield replace_token(lines, row, last_token, opener, weight * OTHER_BRACKET)


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
