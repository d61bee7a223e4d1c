"""Which lines two texts have in common, in a time that their size bounds.

`difflib` finds the blocks that people expect, but needs quadratic time and more for texts of which many lines
are alike, and anyone may write such a text. So it is asked about short stretches only. Longer ones are cut at
lines that stand once in each of them (Bram Cohen's patience diff), and what has no such line is one change.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

LineRange = tuple[int, int, int, int]
"""Lines of the one text, from and to, and of the other, counted from 0."""

MOST_WORK = 3_000_000
"""Comparisons for one pair of texts, about 0.3 s of a slow core."""
DEEPEST = 40
"""Anchors within anchors; below that a stretch counts as changed as a whole, so that the time is bounded."""


def changed_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Where two texts differ, in order; either side of a stretch may be empty.

    Args:
        old: The lines of the one.
        new: The lines of the other.
    """
    found: list[LineRange] = []
    left = right = 0
    for start, end, other, stop in [*common_ranges(old, new), (len(old), len(old), len(new), len(new))]:
        if left < start or right < other:
            found.append((left, start, right, other))
        left, right = end, stop
    return found


def common_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Where two texts are alike, in order; no stretch is empty, and none begins where the one before ends.

    Args:
        old: The lines of the one.
        new: The lines of the other.
    """
    joined: list[LineRange] = []
    for start, end, other, stop in _Matching(old, new).within((0, len(old), 0, len(new)), 0):
        if joined and joined[-1][1] == start and joined[-1][3] == other:
            joined[-1] = (joined[-1][0], end, joined[-1][2], stop)
        else:
            joined.append((start, end, other, stop))
    return joined


class _Matching:
    """One pair of texts, and how much work may still be spent on them."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new
        self._left = MOST_WORK

    def within(self, stretch: LineRange, depth: int) -> Iterator[LineRange]:
        """The common parts of a stretch."""
        start, end, other, stop = stretch
        work = _work(self._old[start:end], self._new[other:stop])
        if work <= self._left:
            self._left -= work
            yield from self._by_difflib(stretch)
            return
        head = _alike(self._old[start:end], self._new[other:stop])
        if head:
            yield start, start + head, other, other + head
        start, other = start + head, other + head
        tail = _alike(self._old[start:end][::-1], self._new[other:stop][::-1])
        anchors = self._anchors((start, end - tail, other, stop - tail)) if depth < DEEPEST else []
        for line, counterpart in anchors:
            yield from self.within((start, line, other, counterpart), depth + 1)
            yield line, line + 1, counterpart, counterpart + 1
            start, other = line + 1, counterpart + 1
        if anchors:
            yield from self.within((start, end - tail, other, stop - tail), depth + 1)
        if tail:
            yield end - tail, end, stop - tail, stop

    def _by_difflib(self, stretch: LineRange) -> Iterator[LineRange]:
        start, end, other, stop = stretch
        matcher = difflib.SequenceMatcher(None, self._old[start:end], self._new[other:stop], autojunk=False)
        for one, two, size in matcher.get_matching_blocks():
            if size:
                yield start + one, start + one + size, other + two, other + two + size

    def _anchors(self, stretch: LineRange) -> list[tuple[int, int]]:
        """Pairs of lines that stand once in each, as many as are in the same order: the longest such row."""
        start, end, other, stop = stretch
        once = {line for line, count in Counter(self._old[start:end]).items() if count == 1}
        twice = Counter(self._new[other:stop])
        places = {self._new[n]: n for n in range(other, stop) if twice[self._new[n]] == 1}
        pairs = [
            (n, places[line]) for n in range(start, end) if (line := self._old[n]) in once and line in places
        ]
        return _rising(pairs)


def _work(old: Sequence[str], new: Sequence[str]) -> int:
    """The most comparisons that difflib may need: for each block that it finds, all pairs of equal lines."""
    theirs = Counter(new)
    pairs = sum(count * theirs[line] for line, count in Counter(old).items())
    return len(old) + len(new) + pairs * min(len(old), len(new))


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines are the same at the beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (one, two) in pairs if one != two), min(len(old), len(new)))


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of some pairs, ordered by their first number, in which the second rises too."""
    ends: list[int] = []  # the least second number in which a row of each length can end
    last: list[int] = []  # and the pair that it ends with
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [place]
        last[at : at + 1] = [number]
    row: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]
