"""Find the lines that two texts have in common, in bounded time.

`difflib` finds the blocks that people expect, but for texts with many equal lines it needs quadratic time or
more, and anyone can write such a text. It is therefore used for short ranges only. Longer ranges are split
at lines that occur exactly once in each text (Bram Cohen's patience diff). A long range without such a line
is one change.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from suture.project.tuning import MAX_ANCHOR_DEPTH, MAX_LINE_COMPARISONS

LineRange = tuple[int, int, int, int]
"""Start and end of the lines in the first text, and in the second text, from 0. The ends are exclusive."""


def changed_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Return where two texts differ, in order. Either side of a range may be empty.

    Args:
        old: Lines of the first text.
        new: Lines of the second text.
    """
    found: list[LineRange] = []
    left = right = 0
    for start, end, other, stop in [*common_ranges(old, new), (len(old), len(old), len(new), len(new))]:
        if left < start or right < other:
            found.append((left, start, right, other))
        left, right = end, stop
    return found


def common_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Return where two texts are equal, in order. No range is empty, and no two ranges touch.

    Args:
        old: Lines of the first text.
        new: Lines of the second text.
    """
    joined: list[LineRange] = []
    for start, end, other, stop in _Matching(old, new).within((0, len(old), 0, len(new)), 0):
        if joined and joined[-1][1] == start and joined[-1][3] == other:
            joined[-1] = (joined[-1][0], end, joined[-1][2], stop)
        else:
            joined.append((start, end, other, stop))
    return joined


class _Matching:
    """A pair of texts, and the number of comparisons that are left for them."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new
        self._comparisons_left = MAX_LINE_COMPARISONS

    def within(self, stretch: LineRange, depth: int) -> Iterator[LineRange]:
        """Yield the common ranges within a range."""
        start, end, other, stop = stretch
        work = _max_comparisons(self._old[start:end], self._new[other:stop])
        if work <= self._comparisons_left:
            self._comparisons_left -= work
            yield from self._by_difflib(stretch)
            return
        head = _count_equal(self._old[start:end], self._new[other:stop])
        if head:
            yield start, start + head, other, other + head
        start, other = start + head, other + head
        tail = _count_equal(self._old[start:end][::-1], self._new[other:stop][::-1])
        anchors = self._anchors((start, end - tail, other, stop - tail)) if depth < MAX_ANCHOR_DEPTH else []
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
        """Return pairs of lines that occur once in each text, as many as are in the same order in both."""
        start, end, other, stop = stretch
        once = {line for line, count in Counter(self._old[start:end]).items() if count == 1}
        twice = Counter(self._new[other:stop])
        places = {self._new[n]: n for n in range(other, stop) if twice[self._new[n]] == 1}
        pairs = [
            (n, places[line]) for n in range(start, end) if (line := self._old[n]) in once and line in places
        ]
        return _longest_rising(pairs)


def _max_comparisons(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the max number of comparisons of `difflib`: all pairs of equal lines for each block that it
    finds.
    """
    theirs = Counter(new)
    pairs = sum(count * theirs[line] for line, count in Counter(old).items())
    return len(old) + len(new) + pairs * min(len(old), len(new))


def _count_equal(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (one, two) in pairs if one != two), min(len(old), len(new)))


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs, sorted by their first number, in which the second number
    rises.
    """
    ends: list[int] = []  # smallest second number at the end of a subsequence of each length
    last: list[int] = []  # index of the pair that it ends with
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
