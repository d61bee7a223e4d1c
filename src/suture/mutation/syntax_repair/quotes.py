"""Strings that do not end, or begin where none is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import LineRewrite, get_indent, nearby_lines, rewrite_line
from suture.mutation.syntax_repair.stopped import ParseStop

TRIPLES = ('"""', "'''")
ENDS = re.compile(r"(?=[\])},:;+%]|\s|\.\w+\(|$)")
STARTS = re.compile(r"(?:^|(?<=[(\[{,=+:\s]))(?=\S)")
MOST_LINES = 60


def rewrite_strings(lines: list[str], stop: ParseStop, quotes: str = "\"'") -> Iterator[LineRewrite]:
    """Quotes that are missing, doubled, or of the wrong kind.

    Args:
        lines: The source's.
        stop: Where reading stopped.
        quotes: What strings begin and end with.
    """
    if "triple-quoted" in stop.message:
        yield from _triple(lines, stop)
        return
    is_said = "string" in stop.message or "literal" in stop.message
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        odd = [quote for quote in quotes if line.replace(f"\\{quote}", "").count(quote) % 2]
        for quote in odd if is_said or odd else ():
            yield from _closed(lines, number, line, quote, stop.column if number == stop.line - 1 else 0)
        if len(odd) == 2:
            for wrong, right in (odd, odd[::-1]):
                for match in re.finditer(wrong, line):
                    text = f"{line[: match.start()]}{right}{line[match.end() :]}"
                    yield rewrite_line(lines, number, text, f"{wrong} becomes {right}", 0.9)


def _closed(lines: list[str], number: int, line: str, quote: str, column: int) -> Iterator[LineRewrite]:
    """The missing quote put in at each place where a string may end or begin, or the odd one taken out."""
    opens = column if column < len(line) and line[column] in "\"'fFrRbB" else line.find(quote)
    for match in ENDS.finditer(line, opens + 1):
        at = match.start()
        weight = 0.9 if line[at : at + 1] in ")]}:," or at == len(line.rstrip()) else 0.4
        if line[at - 1] != "\\":
            yield rewrite_line(lines, number, f"{line[:at]}{quote}{line[at:]}", f"{quote} is missing", weight)
    for match in STARTS.finditer(line):
        at = match.start()
        yield rewrite_line(lines, number, f"{line[:at]}{quote}{line[at:]}", f"{quote} is missing", 0.5)
    for match in re.finditer(re.escape(quote), line):
        text = f"{line[: match.start()]}{line[match.end() :]}"
        yield rewrite_line(lines, number, text, f"{quote} is too much", 0.4)


def _triple(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """A block of text without its end, or an end without its beginning."""
    number = stop.line - 1
    line = lines[number]
    for triple in TRIPLES:
        at = line.find(triple)
        if at < 0:
            continue
        short = re.match(rf"(.*\S.*?){triple[0]}{{1,2}}\s*$", line[at + 3 :])
        if short is not None and triple not in line[at + 3 :]:
            text = f"{line[: at + 3]}{short.group(1)}{triple}"
            yield rewrite_line(lines, number, text, f"{triple} at its end", 0.9)
        yield rewrite_line(lines, number, line.replace(triple, "", 1), f"{triple} is too much", 0.6)
        yield rewrite_line(lines, number, f"{line.rstrip()}{triple}", f"{triple} at its end", 0.6)
        yield rewrite_line(lines, number, line.replace(triple, triple[0], 1), f"{triple} is one {triple[0]}", 0.4)
        indent = get_indent(line)
        for later in range(number + 1, min(len(lines), number + MOST_LINES)):
            before = lines[later - 1]
            ends = not lines[later].strip() or len(get_indent(lines[later])) <= len(indent)
            if ends or re.match(r"\s*(def|class|if|for|while|return|import|from|@|\w+\s*=)\b", lines[later]):
                text = f"{before}\n{indent}{triple}" if later - 1 != number else f"{before}{triple}"
                yield rewrite_line(lines, later - 1, text, f"{triple} behind it", 0.4)
        for other in TRIPLES:
            if other != triple:
                yield rewrite_line(lines, number, line.replace(triple, other, 1), f"{triple} becomes {other}", 0.3)
        for earlier in range(number - 1, max(-1, number - MOST_LINES), -1):
            head = lines[earlier].strip()
            if head.startswith(("def ", "class ", "async def ")) or (not head and earlier < number - 1):
                under = earlier + 1
                text = f"{indent}{triple}\n{lines[under]}"
                yield rewrite_line(lines, under, text, f"{triple} before it", 0.5)
                if head:
                    break
