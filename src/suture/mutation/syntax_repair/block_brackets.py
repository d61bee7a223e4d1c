"""Brackets of blocks: the indentation shows where one is missing or superfluous."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from suture.mutation.syntax_repair.source_lines import (
    PAIRS,
    LineRewrite,
    ParseStop,
    get_indent,
    rewrite_line,
    strip_comment,
)
from suture.mutation.syntax_repair.token_model import Lexer, SourceToken
from suture.mutation.tuning import BALANCED, LIKELY_BRACKET, MAX_BLOCK_CHANGES, OTHER_BRACKET, UNBALANCED

CLOSERS = {closer: opener for opener, closer in PAIRS.items()}


def rewrite_blocks(lines: list[str], stop: ParseStop, lexer: Lexer) -> Iterator[LineRewrite]:
    """Yield rewrites for blocks that are not closed where their lines end, or not opened where they begin.

    Args:
        lines: The lines of the source.
        stop: Where parsing stopped.
        lexer: The tokens of the language.
    """
    tokens = [token for token in lexer.tokens("\n".join(lines)) if token.kind != "end"]
    counts = Counter(token.text for token in tokens)
    by_row: dict[int, list[SourceToken]] = {}
    for token in tokens:
        by_row.setdefault(token.row, []).append(token)
    rows = [row for row in by_row if row <= stop.line + 1]
    rewrites = [
        *_close_blocks(lines, rows, by_row, counts, lexer),
        *_open_blocks(lines, rows, by_row, counts, lexer),
        *_remove_brackets(lines, rows, by_row, counts),
    ]
    rewrites.sort(key=lambda rewrite: -rewrite.weight)
    yield from rewrites[:MAX_BLOCK_CHANGES]


def _balance_share(opener: str, counts: Counter[str], *, more: bool) -> float:
    closer = PAIRS[opener]
    short = counts[opener] > counts[closer] if more else counts[opener] < counts[closer]
    return UNBALANCED if short else BALANCED


def _open_brackets(tokens: Sequence[SourceToken]) -> list[str]:
    """Return the opening brackets of a line that it does not close."""
    waiting: list[str] = []
    for token in tokens:
        if token.text in PAIRS:
            waiting.append(token.text)
        elif token.text in CLOSERS and waiting:
            waiting.pop()
    return waiting


def _close_blocks(
    lines: list[str],
    rows: Sequence[int],
    by_row: dict[int, list[SourceToken]],
    counts: Counter[str],
    lexer: Lexer,
) -> Iterator[LineRewrite]:
    """Close what a line opens at its end on the first later line that is not indented deeper."""
    for place, row in enumerate(rows):
        waiting = _open_brackets(by_row[row])
        if not waiting or by_row[row][-1].text not in PAIRS:
            continue
        depth = len(get_indent(lines[row]))
        until = next((later for later in rows[place + 1 :] if len(get_indent(lines[later])) <= depth), None)
        expected = "".join(PAIRS[opener] for opener in reversed(waiting))
        begins = "".join(token.text for token in by_row[until])[: len(expected)] if until is not None else ""
        level = until is not None and len(get_indent(lines[until])) == depth
        if begins == expected and level:
            continue
        share = LIKELY_BRACKET * _balance_share(waiting[-1], counts, more=True)
        own = get_indent(lines[row])
        at = len(lines) if until is None else until
        before = max((r for r in by_row if r < at), default=row)
        if level and until is not None and by_row[until][0].kind == "sign" and begins[:1] != expected[0]:
            other = by_row[until][0]
            text = f"{lines[until][: other.start]}{expected[0]}{lines[until][other.end :]}"
            yield rewrite_line(
                lines, until, text, f"{other.text} becomes {expected[0]}", share * OTHER_BRACKET
            )
        if level and begins[:1] in CLOSERS and until is not None:
            start = by_row[until][0].start
            for count in range(1, len(expected) + 1):
                closed = expected[:count]
                text = f"{lines[until][:start]}{closed}{lines[until][start:]}"
                yield rewrite_line(lines, until, text, f"{closed} is missing", share * OTHER_BRACKET)
            same = [token for token in by_row[until] if token.text in CLOSERS]
            if len(same) >= len(waiting) - 1:
                at_end = same[-1].end
                text = f"{lines[until][:at_end]}{expected[-1]}{lines[until][at_end:]}"
                yield rewrite_line(lines, until, text, f"{expected[-1]} is missing", share * OTHER_BRACKET)
        ends = dict.fromkeys((expected, f"{expected};" if len(expected) > 1 else expected))
        for closed in ends:
            if before == row:
                code = strip_comment(lines[row], lexer.pattern)
                text = f"{code}{closed}{lines[row][len(code) :]}"
                yield rewrite_line(lines, row, text, f"{closed} is missing", share)
            text = f"{lines[before]}\n{own}{closed}"
            yield rewrite_line(lines, before, text, f"{closed} is missing after it", share)


def _open_blocks(
    lines: list[str],
    rows: Sequence[int],
    by_row: dict[int, list[SourceToken]],
    counts: Counter[str],
    lexer: Lexer,
) -> Iterator[LineRewrite]:
    """Add the opening bracket at the end of a line that an indented block and a closing bracket follow."""
    for place, row in enumerate(rows[:-1]):
        own = len(get_indent(lines[row]))
        waiting = _open_brackets(by_row[row])
        deeper = len(get_indent(lines[rows[place + 1]])) > own
        last = next((r for r in rows[place + 1 :] if len(get_indent(lines[r])) <= own), None)
        if not deeper or last is None or by_row[last][0].text not in CLOSERS:
            continue
        if len(get_indent(lines[last])) < own:
            continue
        expected = CLOSERS[by_row[last][0].text]
        if waiting and waiting[-1] == expected:
            continue
        share = LIKELY_BRACKET * _balance_share(expected, counts, more=False)
        code = strip_comment(lines[row], lexer.pattern)
        space = " " if expected == "{" and not code.endswith(("(", "[")) else ""
        text = f"{code}{space}{expected}{lines[row][len(code) :]}"
        yield rewrite_line(lines, row, text, f"{expected} is missing", share)
        last_payload = by_row[row][-1]
        if last_payload.kind == "sign" and last_payload.text not in CLOSERS:
            text = f"{lines[row][: last_payload.start]}{expected}{lines[row][last_payload.end :]}"
            yield rewrite_line(
                lines, row, text, f"{last_payload.text} becomes {expected}", share * OTHER_BRACKET
            )


def _remove_brackets(
    lines: list[str], rows: Sequence[int], by_row: dict[int, list[SourceToken]], counts: Counter[str]
) -> Iterator[LineRewrite]:
    """Remove brackets at the start or the end of a line where the source has too many of them."""
    for row in rows:
        tokens = by_row[row]
        for token in (tokens[0], tokens[-1]):
            opener = CLOSERS.get(token.text, token.text)
            if opener not in PAIRS:
                continue
            share = OTHER_BRACKET * _balance_share(opener, counts, more=token.text == opener)
            if share < OTHER_BRACKET:
                continue
            left = lines[row][: token.start].rstrip() or lines[row][: token.start]
            text = f"{left}{lines[row][token.end :]}"
            yield rewrite_line(lines, row, text, f"{token.text} is superfluous", 0.6 * share)
