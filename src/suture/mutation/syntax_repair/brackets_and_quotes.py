"""Brackets that are missing, too many, or of another kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import PAIRS, PYTHON, LineRewrite, Token, strip_comment, nearby_lines, rewrite_line, scan_line
from suture.mutation.syntax_repair.stopped import ParseStop

OPENED = re.compile(r"'([(\[{])' was never closed")
CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
MOST_LINES = 6


def rewrite_brackets(lines: list[str], stop: ParseStop, pattern: re.Pattern[str] = PYTHON) -> Iterator[LineRewrite]:
    """Rewrites of each line near the stop whose own brackets do not match.

    Args:
        lines: The source's.
        stop: Where reading stopped.
        pattern: The language's tokens. Where it is not Python's, a bracket that ends a line or begins one may
            be of a block: those are told by the layout.
    """
    opened = OPENED.match(stop.message)
    for number in nearby_lines(lines, stop.line - 1):
        lone, unmatched = _unbalanced(lines[number], pattern)
        said = opened is not None or "parenthesis" in stop.message or "unmatched" in stop.message
        weight = 1.0 if said and number == stop.line - 1 else 0.6
        if len(lone) > 1:
            closers = "".join(PAIRS[token.text] for token in reversed(lone))
            code = strip_comment(lines[number], pattern)
            end = len(code) - code.endswith(":")
            text = f"{lines[number][:end]}{closers}{lines[number][end:]}"
            yield rewrite_line(lines, number, text, f"{closers} is missing", weight)
        for token in lone:
            yield from _closed(lines, number, token, weight, pattern)
        for token in unmatched:
            yield from _opened(lines, number, token, weight, pattern)
    yield from _closed_on_another_line(lines, stop, pattern)
    if opened is not None:
        yield from _closed_later(lines, stop.line - 1, opened.group(1), pattern)


def _closed_on_another_line(lines: list[str], stop: ParseStop, pattern: re.Pattern[str]) -> Iterator[LineRewrite]:
    """A bracket that lacks at the end of a line and is too much in one of the next."""
    for number in nearby_lines(lines, stop.line - 1, back=2):
        lone, _ = _unbalanced(lines[number], pattern)
        if len(lone) != 1:
            continue
        closer, code = PAIRS[lone[0].text], strip_comment(lines[number], pattern)
        end = len(code) - code.endswith(":")
        for later in range(number + 1, min(len(lines), number + 3)):
            for token in _unbalanced(lines[later], pattern)[1]:
                if token.text == closer:
                    put = f"{lines[number][:end]}{closer}{lines[number][end:]}"
                    taken = f"{lines[later][: token.start]}{lines[later][token.end :]}"
                    note = f"lines {number + 1} and {later + 1}: {closer} ends the line before"
                    yield LineRewrite(lines={number: put, later: taken}, note=note, weight=1.0)


def _unbalanced(line: str, pattern: re.Pattern[str]) -> tuple[list[Token], list[Token]]:
    """Brackets of a line that nothing in it closes, and those that close nothing in it."""
    waiting: list[Token] = []
    unmatched: list[Token] = []
    for token in scan_line(line, pattern) if pattern is PYTHON else _inner(line, pattern):
        if token.text in PAIRS:
            waiting.append(token)
        elif token.text in CLOSERS:
            if waiting and PAIRS[waiting[-1].text] == token.text:
                waiting.pop()
            else:
                unmatched.append(token)
    return waiting, unmatched


def _inner(line: str, pattern: re.Pattern[str]) -> list[Token]:
    """A line's tokens without the brackets that end it or begin it."""
    tokens = [token for token in scan_line(line, pattern) if token.kind != "comment"]
    while tokens and tokens[-1].text in PAIRS:
        tokens.pop()
    while tokens and tokens[0].text in CLOSERS:
        tokens.pop(0)
    return tokens


def _closed(
    lines: list[str], number: int, opener: Token, weight: float, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    line, code = lines[number], strip_comment(lines[number], pattern)
    closer = PAIRS[opener.text]
    end = len(code[:-1].rstrip()) if code.endswith(":") else len(code)
    places = {end: 1.0}
    for token in scan_line(code, pattern):
        if token.start > opener.start:
            places.setdefault(token.end, 0.7 if token.kind in ("word", "string", "number") else 0.5)
    for at, share in sorted(places.items(), key=lambda place: (-place[1], place[0])):
        if opener.end <= at <= len(code):
            text = f"{line[:at]}{closer}{line[at:]}"
            yield rewrite_line(lines, number, text, f"{closer} is missing", weight * share)
    yield rewrite_line(
        lines,
        number,
        f"{line[: opener.start]}{line[opener.end :]}",
        f"{opener.text} is too much",
        0.5 * weight,
    )


def _opened(
    lines: list[str], number: int, closer: Token, weight: float, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    line = lines[number]
    yield rewrite_line(
        lines,
        number,
        f"{line[: closer.start]}{line[closer.end :]}",
        f"{closer.text} is too much",
        0.9 * weight,
    )
    waiting: list[Token] = []
    for token in scan_line(line[: closer.start], pattern):
        if token.text in PAIRS:
            waiting.append(token)
        elif token.text in CLOSERS and waiting:
            waiting.pop()
    if waiting:
        last = waiting[-1]
        right = PAIRS[last.text]
        text = f"{line[: closer.start]}{right}{line[closer.end :]}"
        yield rewrite_line(lines, number, text, f"{closer.text} becomes {right}", weight)
        text = f"{line[: last.start]}{CLOSERS[closer.text]}{line[last.end :]}"
        yield rewrite_line(lines, number, text, f"{last.text} becomes {CLOSERS[closer.text]}", 0.8 * weight)
        text = f"{line[: closer.start]}{right}{line[closer.start :]}"
        yield rewrite_line(lines, number, text, f"{right} is missing", 0.9 * weight)
    opener = CLOSERS[closer.text]
    for token in scan_line(line[: closer.start], pattern):
        if token.kind in ("word", "number", "string") or token.text in PAIRS:
            for at in (token.start, token.end):
                text = f"{line[:at]}{opener}{line[at:]}"
                yield rewrite_line(lines, number, text, f"{opener} is missing", 0.5 * weight)


def _closed_later(lines: list[str], number: int, opener: str, pattern: re.Pattern[str]) -> Iterator[LineRewrite]:
    """The end of a bracket of several lines."""
    closer = PAIRS[opener]
    for later in range(number + 1, min(len(lines), number + 1 + MOST_LINES)):
        code = strip_comment(lines[later], pattern)
        if not code.strip():
            break
        rest = lines[later][len(code) :]
        yield rewrite_line(lines, later, f"{code}{closer}{rest}", f"{closer} is missing", 0.5)
        if code.endswith((":", ",")):
            yield rewrite_line(lines, later, f"{code[:-1]}{closer}{code[-1]}{rest}", f"{closer} is missing", 0.5)
