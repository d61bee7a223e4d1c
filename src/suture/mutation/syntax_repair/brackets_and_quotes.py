"""Brackets and quotes that are missing, superfluous, or of the wrong kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import (
    PAIRS,
    PYTHON_TOKENS,
    LineRewrite,
    ParseStop,
    Token,
    get_indent,
    nearby_lines,
    rewrite_line,
    scan_line,
    strip_comment,
)

NEVER_CLOSED = re.compile(r"'([(\[{])' was never closed")
CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
MAX_BRACKET_LINES = 6


def rewrite_brackets(
    lines: list[str], stop: ParseStop, pattern: re.Pattern[str] = PYTHON_TOKENS
) -> Iterator[LineRewrite]:
    """Yield rewrites of lines near the stop whose brackets do not match.

    Args:
        lines: The lines of the source.
        stop: Where parsing stopped.
        pattern: The tokens of the language. In other languages than Python, a bracket at the end or the start
            of a line may belong to a block; `block_brackets` handles those by the layout.
    """
    opened = NEVER_CLOSED.match(stop.message)
    for number in nearby_lines(lines, stop.line - 1):
        lone, unmatched = _unbalanced_brackets(lines[number], pattern)
        is_reported = opened is not None or "parenthesis" in stop.message or "unmatched" in stop.message
        weight = 1.0 if is_reported and number == stop.line - 1 else 0.6
        if len(lone) > 1:
            closers = "".join(PAIRS[token.text] for token in reversed(lone))
            code = strip_comment(lines[number], pattern)
            end = len(code) - code.endswith(":")
            text = f"{lines[number][:end]}{closers}{lines[number][end:]}"
            yield rewrite_line(lines, number, text, f"{closers} is missing", weight)
        for token in lone:
            yield from _close_bracket(lines, number, token, weight, pattern)
        for token in unmatched:
            yield from _open_bracket(lines, number, token, weight, pattern)
    yield from _move_closer_up(lines, stop, pattern)
    if opened is not None:
        yield from _close_on_later_line(lines, stop.line - 1, opened.group(1), pattern)


def _move_closer_up(lines: list[str], stop: ParseStop, pattern: re.Pattern[str]) -> Iterator[LineRewrite]:
    """Move a superfluous closing bracket to the end of an earlier line that lacks it."""
    for number in nearby_lines(lines, stop.line - 1, back=2):
        lone, _ = _unbalanced_brackets(lines[number], pattern)
        if len(lone) != 1:
            continue
        closer, code = PAIRS[lone[0].text], strip_comment(lines[number], pattern)
        end = len(code) - code.endswith(":")
        for later in range(number + 1, min(len(lines), number + 3)):
            for token in _unbalanced_brackets(lines[later], pattern)[1]:
                if token.text == closer:
                    put = f"{lines[number][:end]}{closer}{lines[number][end:]}"
                    taken = f"{lines[later][: token.start]}{lines[later][token.end :]}"
                    note = f"lines {number + 1} and {later + 1}: {closer} ends the line before"
                    yield LineRewrite(lines={number: put, later: taken}, note=note, weight=1.0)


def _unbalanced_brackets(line: str, pattern: re.Pattern[str]) -> tuple[list[Token], list[Token]]:
    """Return the brackets of a line that nothing in it closes, and those that close nothing in it."""
    waiting: list[Token] = []
    unmatched: list[Token] = []
    for token in scan_line(line, pattern) if pattern is PYTHON_TOKENS else _inner_tokens(line, pattern):
        if token.text in PAIRS:
            waiting.append(token)
        elif token.text in CLOSERS:
            if waiting and PAIRS[waiting[-1].text] == token.text:
                waiting.pop()
            else:
                unmatched.append(token)
    return waiting, unmatched


def _inner_tokens(line: str, pattern: re.Pattern[str]) -> list[Token]:
    """Return a line's tokens without the brackets at its end and at its start."""
    tokens = [token for token in scan_line(line, pattern) if token.kind != "comment"]
    while tokens and tokens[-1].text in PAIRS:
        tokens.pop()
    while tokens and tokens[0].text in CLOSERS:
        tokens.pop(0)
    return tokens


def _close_bracket(
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
        f"{opener.text} is superfluous",
        0.5 * weight,
    )


def _open_bracket(
    lines: list[str], number: int, closer: Token, weight: float, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    line = lines[number]
    yield rewrite_line(
        lines,
        number,
        f"{line[: closer.start]}{line[closer.end :]}",
        f"{closer.text} is superfluous",
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


def _close_on_later_line(
    lines: list[str], number: int, opener: str, pattern: re.Pattern[str]
) -> Iterator[LineRewrite]:
    """Close a bracket on one of the next lines."""
    closer = PAIRS[opener]
    for later in range(number + 1, min(len(lines), number + 1 + MAX_BRACKET_LINES)):
        code = strip_comment(lines[later], pattern)
        if not code.strip():
            break
        rest = lines[later][len(code) :]
        yield rewrite_line(lines, later, f"{code}{closer}{rest}", f"{closer} is missing", 0.5)
        if code.endswith((":", ",")):
            yield rewrite_line(
                lines, later, f"{code[:-1]}{closer}{code[-1]}{rest}", f"{closer} is missing", 0.5
            )


TRIPLE_QUOTES = ('"""', "'''")
STRING_END = re.compile(r"(?=[\])},:;+%]|\s|\.\w+\(|$)")
STRING_START = re.compile(r"(?:^|(?<=[(\[{,=+:\s]))(?=\S)")
MAX_TEXT_LINES = 60


def rewrite_strings(lines: list[str], stop: ParseStop, quotes: str = "\"'") -> Iterator[LineRewrite]:
    """Yield rewrites for quotes that are missing, doubled, or of the wrong kind.

    Args:
        lines: The lines of the source.
        stop: Where parsing stopped.
        quotes: The quotes of the language.
    """
    if "triple-quoted" in stop.message:
        yield from _fix_triple_quote(lines, stop)
        return
    is_reported = "string" in stop.message or "literal" in stop.message
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        odd = [quote for quote in quotes if line.replace(f"\\{quote}", "").count(quote) % 2]
        for quote in odd if is_reported or odd else ():
            yield from _fix_quote(lines, number, line, quote, stop.column if number == stop.line - 1 else 0)
        if len(odd) == 2:
            for wrong, right in (odd, odd[::-1]):
                for match in re.finditer(wrong, line):
                    text = f"{line[: match.start()]}{right}{line[match.end() :]}"
                    yield rewrite_line(lines, number, text, f"{wrong} becomes {right}", 0.9)


def _fix_quote(lines: list[str], number: int, line: str, quote: str, column: int) -> Iterator[LineRewrite]:
    """Insert the missing quote wherever a string may end or begin, or remove the odd one."""
    opens = column if column < len(line) and line[column] in "\"'fFrRbB" else line.find(quote)
    for match in STRING_END.finditer(line, opens + 1):
        at = match.start()
        weight = 0.9 if line[at : at + 1] in ")]}:," or at == len(line.rstrip()) else 0.4
        if line[at - 1] != "\\":
            yield rewrite_line(lines, number, f"{line[:at]}{quote}{line[at:]}", f"{quote} is missing", weight)
    for match in STRING_START.finditer(line):
        at = match.start()
        yield rewrite_line(lines, number, f"{line[:at]}{quote}{line[at:]}", f"{quote} is missing", 0.5)
    for match in re.finditer(re.escape(quote), line):
        text = f"{line[: match.start()]}{line[match.end() :]}"
        yield rewrite_line(lines, number, text, f"{quote} is superfluous", 0.4)


def _fix_triple_quote(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """End an unterminated triple-quoted string, or begin one before its end."""
    number = stop.line - 1
    line = lines[number]
    for triple in TRIPLE_QUOTES:
        at = line.find(triple)
        if at < 0:
            continue
        short = re.match(rf"(.*\S.*?){triple[0]}{{1,2}}\s*$", line[at + 3 :])
        if short is not None and triple not in line[at + 3 :]:
            text = f"{line[: at + 3]}{short.group(1)}{triple}"
            yield rewrite_line(lines, number, text, f"{triple} at its end", 0.9)
        yield rewrite_line(lines, number, line.replace(triple, "", 1), f"{triple} is superfluous", 0.6)
        yield rewrite_line(lines, number, f"{line.rstrip()}{triple}", f"{triple} at its end", 0.6)
        yield rewrite_line(
            lines, number, line.replace(triple, triple[0], 1), f"{triple} becomes {triple[0]}", 0.4
        )
        indent = get_indent(line)
        for later in range(number + 1, min(len(lines), number + MAX_TEXT_LINES)):
            before = lines[later - 1]
            ends = not lines[later].strip() or len(get_indent(lines[later])) <= len(indent)
            if ends or re.match(r"\s*(def|class|if|for|while|return|import|from|@|\w+\s*=)\b", lines[later]):
                text = f"{before}\n{indent}{triple}" if later - 1 != number else f"{before}{triple}"
                yield rewrite_line(lines, later - 1, text, f"{triple} after it", 0.4)
        for other in TRIPLE_QUOTES:
            if other != triple:
                yield rewrite_line(
                    lines, number, line.replace(triple, other, 1), f"{triple} becomes {other}", 0.3
                )
        for earlier in range(number - 1, max(-1, number - MAX_TEXT_LINES), -1):
            head = lines[earlier].strip()
            if head.startswith(("def ", "class ", "async def ")) or (not head and earlier < number - 1):
                under = earlier + 1
                text = f"{indent}{triple}\n{lines[under]}"
                yield rewrite_line(lines, under, text, f"{triple} before it", 0.5)
                if head:
                    break
