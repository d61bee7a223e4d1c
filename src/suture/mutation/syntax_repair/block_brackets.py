"""Brackets of blocks: how lines are indented tells where one is missing or too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from suture.mutation.syntax_repair.source_lines import PAIRS, LineRewrite, strip_comment, get_indent, rewrite_line
from suture.mutation.syntax_repair.stopped import ParseStop
from suture.mutation.syntax_repair.lexer import Lexer, SourceToken

CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
SURE, UNSURE = 1.0, 0.4
"""Where the source has more of one half than of the other, and where it has not."""
LIKELY, OTHER = 0.9, 0.5
MOST_PLACES = 12


def rewrite_blocks(lines: list[str], stop: ParseStop, lexis: Lexer) -> Iterator[LineRewrite]:
    """Blocks that are not closed where their lines end, not opened where they begin, or neither.

    Args:
        lines: The source's.
        stop: Where reading stopped.
        lexis: The language's tokens.
    """
    tokens = [token for token in lexis.tokens("\n".join(lines)) if token.kind != "end"]
    counts = Counter(token.text for token in tokens)
    by_row: dict[int, list[SourceToken]] = {}
    for token in tokens:
        by_row.setdefault(token.row, []).append(token)
    rows = [row for row in by_row if row <= stop.line + 1]
    made = [
        *_not_closed(lines, rows, by_row, counts, lexis),
        *_not_opened(lines, rows, by_row, counts, lexis),
        *_closed_twice(lines, rows, by_row, counts),
    ]
    made.sort(key=lambda rewrite: -rewrite.weight)
    yield from made[: 4 * MOST_PLACES]


def _share(opener: str, counts: Counter[str], *, more: bool) -> float:
    closer = PAIRS[opener]
    short = counts[opener] > counts[closer] if more else counts[opener] < counts[closer]
    return SURE if short else UNSURE


def _waiting(tokens: Sequence[SourceToken]) -> list[str]:
    """Openers of a line that it leaves open."""
    waiting: list[str] = []
    for token in tokens:
        if token.text in PAIRS:
            waiting.append(token.text)
        elif token.text in CLOSERS and waiting:
            waiting.pop()
    return waiting


def _not_closed(
    lines: list[str],
    rows: Sequence[int],
    by_row: dict[int, list[SourceToken]],
    counts: Counter[str],
    lexis: Lexer,
) -> Iterator[LineRewrite]:
    """What a line opens at its end must be closed by the first line that is no deeper."""
    for place, row in enumerate(rows):
        waiting = _waiting(by_row[row])
        if not waiting or by_row[row][-1].text not in PAIRS:
            continue
        depth = len(get_indent(lines[row]))
        until = next((later for later in rows[place + 1 :] if len(get_indent(lines[later])) <= depth), None)
        wanted = "".join(PAIRS[opener] for opener in reversed(waiting))
        begins = "".join(token.text for token in by_row[until])[: len(wanted)] if until is not None else ""
        level = until is not None and len(get_indent(lines[until])) == depth
        if begins == wanted and level:
            continue
        share = LIKELY * _share(waiting[-1], counts, more=True)
        own = get_indent(lines[row])
        at = len(lines) if until is None else until
        before = max((r for r in by_row if r < at), default=row)
        if level and until is not None and by_row[until][0].kind == "sign" and begins[:1] != wanted[0]:
            other = by_row[until][0]
            text = f"{lines[until][: other.start]}{wanted[0]}{lines[until][other.end :]}"
            yield rewrite_line(lines, until, text, f"{other.text} becomes {wanted[0]}", share * OTHER)
        if level and begins[:1] in CLOSERS and until is not None:
            start = by_row[until][0].start
            for count in range(1, len(wanted) + 1):
                closed = wanted[:count]
                text = f"{lines[until][:start]}{closed}{lines[until][start:]}"
                yield rewrite_line(lines, until, text, f"{closed} is missing", share * OTHER)
            same = [token for token in by_row[until] if token.text in CLOSERS]
            if len(same) >= len(waiting) - 1:
                at_end = same[-1].end
                text = f"{lines[until][:at_end]}{wanted[-1]}{lines[until][at_end:]}"
                yield rewrite_line(lines, until, text, f"{wanted[-1]} is missing", share * OTHER)
        ends = dict.fromkeys((wanted, f"{wanted};" if len(wanted) > 1 else wanted))
        for closed in ends:
            if before == row:
                code = strip_comment(lines[row], lexis.pattern)
                text = f"{code}{closed}{lines[row][len(code) :]}"
                yield rewrite_line(lines, row, text, f"{closed} is missing", share)
            text = f"{lines[before]}\n{own}{closed}"
            yield rewrite_line(lines, before, text, f"{closed} is missing behind it", share)


def _not_opened(
    lines: list[str],
    rows: Sequence[int],
    by_row: dict[int, list[SourceToken]],
    counts: Counter[str],
    lexis: Lexer,
) -> Iterator[LineRewrite]:
    """A line that deeper ones follow, and then a closer, has the opener at its end."""
    for place, row in enumerate(rows[:-1]):
        own = len(get_indent(lines[row]))
        waiting = _waiting(by_row[row])
        deeper = len(get_indent(lines[rows[place + 1]])) > own
        last = next((r for r in rows[place + 1 :] if len(get_indent(lines[r])) <= own), None)
        if not deeper or last is None or by_row[last][0].text not in CLOSERS:
            continue
        if len(get_indent(lines[last])) < own:
            continue
        wanted = CLOSERS[by_row[last][0].text]
        if waiting and waiting[-1] == wanted:
            continue
        share = LIKELY * _share(wanted, counts, more=False)
        code = strip_comment(lines[row], lexis.pattern)
        space = " " if wanted == "{" and not code.endswith(("(", "[")) else ""
        text = f"{code}{space}{wanted}{lines[row][len(code) :]}"
        yield rewrite_line(lines, row, text, f"{wanted} is missing", share)
        last_of = by_row[row][-1]
        if last_of.kind == "sign" and last_of.text not in CLOSERS:
            text = f"{lines[row][: last_of.start]}{wanted}{lines[row][last_of.end :]}"
            yield rewrite_line(lines, row, text, f"{last_of.text} becomes {wanted}", share * OTHER)


def _closed_twice(
    lines: list[str], rows: Sequence[int], by_row: dict[int, list[SourceToken]], counts: Counter[str]
) -> Iterator[LineRewrite]:
    """Closers and openers of a line that are too many, where it begins or ends with them."""
    for row in rows:
        tokens = by_row[row]
        for token in (tokens[0], tokens[-1]):
            opener = CLOSERS.get(token.text, token.text)
            if opener not in PAIRS:
                continue
            share = OTHER * _share(opener, counts, more=token.text == opener)
            if share < OTHER:
                continue
            left = lines[row][: token.start].rstrip() or lines[row][: token.start]
            text = f"{left}{lines[row][token.end :]}"
            yield rewrite_line(lines, row, text, f"{token.text} is too much", 0.6 * share)
