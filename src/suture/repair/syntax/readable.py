"""A search for changes with which a source compiles: the best few at each depth go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from suture.repair.syntax import brackets, indentation, quotes, tokens, words
from suture.repair.syntax.lines import Rewrite
from suture.repair.syntax.stopped import Stop, stop_of

Family = Callable[[list[str], Stop], Iterator[Rewrite]]
FAMILIES: tuple[Family, ...] = (
    words.foreign,
    words.keywords,
    words.colons,
    words.assignments,
    quotes.strings,
    brackets.brackets,
    indentation.indentation,
    tokens.around_the_stop,
)


def proposals(lines: list[str], stop: Stop) -> Iterator[Rewrite]:
    """Rewrites near the place where reading stopped, of each text the first.

    Args:
        lines: The source's lines, without their ends.
        stop: Where reading stopped.
    """
    seen: set[tuple[tuple[int, str], ...]] = set()
    for family in FAMILIES:
        for rewrite in family(lines, stop):
            key = tuple(sorted(rewrite.lines.items()))
            if key not in seen and any(lines[number] != text for number, text in rewrite.lines.items()):
                seen.add(key)
                yield rewrite


BEAM = 14
"""Texts of each depth that go on."""
MOST_DEPTH = 8
"""Faults in one source."""
MOST_COMPILED = 6000
ENOUGH = 60
FEW = 8
"""Texts with which another round is spared."""
ALIKE = 4
"""Texts that go on of those that stop at one place with one word."""
OF_TOKENS = (
    "unterminated",
    "invalid decimal",
    "unmatched",
    "closing",
    "'",
    "unindent",
    "inconsistent",
    "invalid non",
)
"""What is said before any statement is read: a source without it may yet stop anywhere."""
EACH = 0.5
"""What each further change leaves of a score."""


@dataclass(frozen=True, kw_only=True)
class Readable:
    """A text that compiles.

    Attributes:
        text: The text.
        label: How it came out of the one that does not.
        score: How likely that is meant; in (0, 1].
    """

    text: str
    label: str
    score: float


@dataclass(frozen=True, kw_only=True)
class _State:
    lines: tuple[str, ...]
    stop: Stop
    notes: tuple[str, ...]
    score: float


def readable_texts(text: str, *, seconds: float = 5.0) -> list[Readable]:
    """Texts that compile and differ little from one that does not, the likeliest first.

    Args:
        text: The source; where it compiles there is nothing to do.
        seconds: Wall-clock seconds, after which what was found must do.
    """
    end_s = time.monotonic() + seconds
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = tuple(text.replace("\r\n", "\n").split("\n"))
    stop = stop_of("\n".join(lines))
    if stop is None:
        return []
    beam = [_State(lines=lines, stop=stop, notes=(), score=1.0)]
    found: dict[str, Readable] = {}
    seen: set[str] = set()
    compiled, last = 0, False
    for _ in range(MOST_DEPTH):
        onward: list[_State] = []
        for state in beam:
            for rewrite in sorted(proposals(list(state.lines), state.stop), key=lambda r: -r.weight):
                changed = list(state.lines)
                for number, new in rewrite.lines.items():
                    changed[number] = new
                whole = "\n".join(changed)
                if whole in seen:
                    continue
                seen.add(whole)
                compiled += 1
                score = state.score * rewrite.weight
                notes = (*state.notes, rewrite.note)
                after = stop_of(whole)
                if after is None:
                    found[whole] = Readable(
                        text=whole.replace("\n", newline), label="; ".join(notes), score=score
                    )
                elif _gets_further(state.stop, after):
                    lines_now = tuple(whole.split("\n"))
                    onward.append(_State(lines=lines_now, stop=after, notes=notes, score=score * EACH))
                if compiled >= MOST_COMPILED or time.monotonic() > end_s:
                    return _best(found)
        if found and (len(found) >= FEW or last):
            break  # fewer changes are likelier meant
        last = bool(found)
        beam = _varied(onward)
    return _best(found)


def _gets_further(before: Stop, after: Stop) -> bool:
    return (after.line, after.column) > (before.line, before.column) or after.message != before.message


def _varied(states: list[_State]) -> list[_State]:
    """The states that get furthest, the likeliest few of each place: what is said of tokens comes first."""
    states.sort(key=lambda s: (s.stop.message.startswith(OF_TOKENS), -s.stop.line, -s.score))
    counts: Counter[tuple[int, str]] = Counter()
    kept = []
    for state in states:
        place = (state.stop.line, state.stop.message)
        counts[place] += 1
        if counts[place] <= ALIKE:
            kept.append(state)
    return kept[:BEAM]


def _best(found: dict[str, Readable]) -> list[Readable]:
    return sorted(found.values(), key=lambda readable: -round(readable.score, 6))[:ENOUGH]
