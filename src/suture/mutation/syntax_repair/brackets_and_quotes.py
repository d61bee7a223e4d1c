"""Rewrites lines whose brackets or quotes are missing, superfluous, or of the wrong kind.

Adds and removes brackets of blocks: the indentation shows where one is missing or superfluous.

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
    PYTHON_TOKENS,
    LineRewrite,
    ParseStop,
    Token,
    delete_token,
    find_open_brackets,
    get_indent,
    insert_token,
    nearby_lines,
    replace_token,
    rewrite_line,
    rewrite_span,
    scan_line,
    strip_comment,
)
from suture.mutation.syntax_repair.token_model import Lexer
from suture.mutation.tuning import BALANCED, LIKELY_BRACKET, MAX_BLOCK_CHANGES, OTHER_BRACKET, UNBALANCED

NEVER_CLOSED = re.compile(r"'([(\[{])' was never closed")
"""Matches CPython's message about an unclosed bracket, whose line is that of the bracket."""
MAX_BRACKET_LINES = 6
"""Lines after an unclosed bracket on which it may be closed. Chosen by judgement; not measured."""


def rewrite_brackets(
    lines: list[str], stop: ParseStop, pattern: re.Pattern[str] = PYTHON_TOKENS
) -> Iterator[LineRewrite]:
    """Yield rewrites of lines near the stop whose brackets do not match.

    Args:
        pattern: The tokens of the language. In languages other than Python, a bracket at the end or the start
            of a line may belong to a block. These are left to `block_brackets`.
    """
    never_closed = NEVER_CLOSED.match(stop.message)
    is_reported = never_closed is not None or "parenthesis" in stop.message or "unmatched" in stop.message
    for number in nearby_lines(lines, stop.line - 1):
        unclosed, unopened = _unbalanced_brackets(lines[number], pattern)
        weight = 1.0 if is_reported and number == stop.line - 1 else 0.6
        if len(unclosed) > 1:
            closers = "".join(PAIRS[token.text] for token in reversed(unclosed))
            yield insert_token(lines, number, _code_end(lines[number], pattern), closers, weight)
        for token in unclosed:
            yield from _close_bracket(lines, number, token, weight, pattern)
        for token in unopened:
            yield from _open_bracket(lines, number, token, weight, pattern)
    yield from _move_closer_up(lines, stop, pattern)
    if never_closed is not None:
        yield from _close_on_later_line(lines, stop.line - 1, never_closed.group(1), pattern)


def _code_end(line: str, pattern: re.Pattern[str]) -> int:
    """Return where the code of a line ends: before its comment, and before the colon of a block."""
    code = strip_comment(line, pattern)
    return len(code) - code.endswith(":")


def _move_closer_up(lines: list[str], stop: ParseStop, pattern: re.Pattern[str]) -> Iterator[LineRewrite]:
    """Move a superfluous closing bracket to the end of one of the two lines before. Two is by judgement."""
    for number in nearby_lines(lines, stop.line - 1, back=2):
        unclosed, _ = _unbalanced_brackets(lines[number], pattern)
        if len(unclosed) != 1:
            continue
        closer, end = PAIRS[unclosed[0].text], _code_end(lines[number], pattern)
        for later in range(number + 1, min(len(lines), number + 3)):
            for token in _unbalanced_brackets(lines[later], pattern)[1]:
                if token.text == closer:
                    with_closer = f"{lines[number][:end]}{closer}{lines[number][end:]}"
                    without_closer = f"{lines[later][: token.start]}{lines[later][token.end :]}"
                    note = f"lines {number + 1} and {later + 1}: {closer} ends the line before"
                    changed = {number: with_closer, later: without_closer}
                    yield LineRewrite(lines=changed, note=note, weight=1.0)


def _unbalanced_brackets(line: str, pattern: re.Pattern[str]) -> tuple[list[Token], list[Token]]:
    """Return `(unclosed, unopened)`: the brackets of a line that have no counterpart in the same line."""
    unclosed: list[Token] = []
    unopened: list[Token] = []
    for token in scan_line(line, pattern) if pattern is PYTHON_TOKENS else _inner_tokens(line, pattern):
        if token.text in PAIRS:
            unclosed.append(token)
        elif token.text in OPENERS:
            if unclosed and PAIRS[unclosed[-1].text] == token.text:
                unclosed.pop()
            else:
                unopened.append(token)
    return unclosed, unopened


def _inner_tokens(line: str, pattern: re.Pattern[str]) -> list[Token]:
    """Return a line's tokens without the opening brackets at its end and the closing ones at its start."""
    tokens = [token for token in scan_line(line, pattern) if token.kind != "comment"]
    while tokens and tokens[-1].text in PAIRS:
        tokens.pop()
    while tokens and tokens[0].text in OPENERS:
        tokens.pop(0)
    return tokens


def _close_bracket(
    lines: list[str], number: int, opener: Token, weight: float, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    """Close a bracket at the end of its line or after a later token of the line, or remove it."""
    code, closer = strip_comment(lines[number], pattern), PAIRS[opener.text]
    end = len(code[:-1].rstrip()) if code.endswith(":") else len(code)
    shares = {end: 1.0}  # column -> how likely the bracket is missing there
    for token in scan_line(code, pattern):
        if token.start > opener.start:
            shares.setdefault(token.end, 0.7 if token.kind in ("word", "string", "number") else 0.5)
    for column, share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if opener.end <= column <= len(code):
            yield insert_token(lines, number, column, closer, weight * share)
    yield delete_token(lines, number, opener, 0.5 * weight)


def _open_bracket(
    lines: list[str], number: int, closer: Token, weight: float, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    """Remove a closing bracket that nothing in its line opens, exchange it, or open it before."""
    yield delete_token(lines, number, closer, 0.9 * weight)
    opener, tokens = OPENERS[closer.text], scan_line(lines[number][: closer.start], pattern)
    open_brackets = find_open_brackets(tokens)
    if open_brackets:  # one of another kind is open: one of the two is wrong, or its own half is missing
        open_bracket = open_brackets[-1]
        expected = PAIRS[open_bracket.text]
        yield replace_token(lines, number, closer, expected, weight)
        yield replace_token(lines, number, open_bracket, opener, 0.8 * weight)
        yield insert_token(lines, number, closer.start, expected, 0.9 * weight)
    for token in tokens:
        if token.kind in ("word", "number", "string") or token.text in PAIRS:
            yield insert_token(lines, number, token.start, opener, 0.5 * weight)
            yield insert_token(lines, number, token.end, opener, 0.5 * weight)


def _close_on_later_line(
    lines: list[str], number: int, opener: str, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    """Close a bracket at the end of one of the next lines."""
    closer = PAIRS[opener]
    for later in range(number + 1, min(len(lines), number + 1 + MAX_BRACKET_LINES)):
        code = strip_comment(lines[later], pattern)
        if not code.strip():
            break
        yield insert_token(lines, later, len(code), closer, 0.5)
        if code.endswith((":", ",")):
            yield insert_token(lines, later, len(code) - 1, closer, 0.5)


CODE_START = re.compile(r"\s*(def|class|if|for|while|return|import|from|@|\w+\s*=)\b")
"""Matches a line that looks like a statement and not like prose."""
TRIPLE_QUOTES = ('"""', "'''")
STRING_END = re.compile(r"(?=[\])},:;+%]|\s|\.\w+\(|$)")
"""Matches where a string may end: before a separator, a space or a method call."""
STRING_START = re.compile(r"(?:^|(?<=[(\[{,=+:\s]))(?=\S)")
"""Matches where a string may begin."""
MAX_TEXT_LINES = 60
"""Lines that a triple-quoted string is expected to have. Chosen by judgement; not measured."""


def rewrite_strings(lines: list[str], stop: ParseStop, quotes: str = "\"'") -> Iterator[LineRewrite]:
    """Yield rewrites for quotes that are missing, doubled, or of the wrong kind."""
    if "triple-quoted" in stop.message:
        yield from _fix_triple_quote(lines, stop)
        return
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        odd_quotes = [quote for quote in quotes if line.replace(f"\\{quote}", "").count(quote) % 2]
        for quote in odd_quotes:
            yield from _fix_quote(lines, number, quote, stop.column if number == stop.line - 1 else 0)
        if len(odd_quotes) == 2:
            for wrong, right in (odd_quotes, odd_quotes[::-1]):
                for match in re.finditer(wrong, line):
                    yield rewrite_span(lines, number, match.span(), right, f"{wrong} becomes {right}", 0.9)


def _fix_quote(lines: list[str], number: int, quote: str, column: int) -> Iterator[LineRewrite]:
    """Insert a missing quote wherever a string may end or begin, or remove one of those that are there."""
    line = lines[number]
    string_start = column if column < len(line) and line[column] in "\"'fFrRbB" else line.find(quote)
    for match in STRING_END.finditer(line, string_start + 1):
        end = match.start()
        weight = 0.9 if line[end : end + 1] in ")]}:," or end == len(line.rstrip()) else 0.4
        if line[end - 1] != "\\":  # after a backslash, the quote would not end the string
            yield insert_token(lines, number, end, quote, weight)
    for match in STRING_START.finditer(line):
        yield insert_token(lines, number, match.start(), quote, 0.5)
    for match in re.finditer(re.escape(quote), line):
        yield rewrite_span(lines, number, match.span(), "", f"{quote} is superfluous", 0.4)


def _fix_triple_quote(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """End an unterminated triple-quoted string, or begin one before its end."""
    number = stop.line - 1
    line = lines[number]
    for triple in TRIPLE_QUOTES:
        if triple not in line:
            continue
        content_start = line.index(triple) + 3
        content = line[content_start:]
        short_end = re.match(rf"(.*\S.*?){triple[0]}{{1,2}}\s*$", content)
        if short_end is not None and triple not in content:
            text = f"{line[:content_start]}{short_end.group(1)}{triple}"
            yield rewrite_line(number, text, f"{triple} at its end", 0.9)
        yield rewrite_line(number, line.replace(triple, "", 1), f"{triple} is superfluous", 0.6)
        yield rewrite_line(number, f"{line.rstrip()}{triple}", f"{triple} at its end", 0.6)
        single_quoted = line.replace(triple, triple[0], 1)
        yield rewrite_line(number, single_quoted, f"{triple} becomes {triple[0]}", 0.4)
        indent = get_indent(line)
        for later in range(number + 1, min(len(lines), number + MAX_TEXT_LINES)):
            previous = lines[later - 1]
            is_paragraph_end = not lines[later].strip() or len(get_indent(lines[later])) <= len(indent)
            if is_paragraph_end or CODE_START.match(lines[later]):  # the string ends on the line before
                text = f"{previous}\n{indent}{triple}" if later - 1 != number else f"{previous}{triple}"
                yield rewrite_line(later - 1, text, f"{triple} after it", 0.4)
        for other in TRIPLE_QUOTES:
            if other != triple:
                text = line.replace(triple, other, 1)
                yield rewrite_line(number, text, f"{triple} becomes {other}", 0.3)
        for earlier in range(number - 1, max(-1, number - MAX_TEXT_LINES), -1):
            head = lines[earlier].strip()
            if head.startswith(("def ", "class ", "async def ")) or (not head and earlier < number - 1):
                text = f"{indent}{triple}\n{lines[earlier + 1]}"
                yield rewrite_line(earlier + 1, text, f"{triple} before it", 0.5)
                if head:
                    break


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
        """Return how likely a bracket of the source is superfluous, by the count of its other half."""
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
        yield rewrite_line(last_row, text, f"{closing} is missing after it", weight)


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
                yield rewrite_line(row, text, f"{token.text} is superfluous", weight)
