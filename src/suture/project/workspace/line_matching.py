"""Find the lines that two files have in common, in bounded time.

`difflib` finds the blocks that people expect, but for files with many equal lines it needs quadratic time or more, and
anyone can write such a file. It is therefore used for short ranges only. Longer ranges are split at lines that occur
exactly once in each file (Bram Cohen's patience diff). A long range without such a line is one change.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from suture.project.tuning import MAX_ANCHOR_DEPTH, MAX_LINE_COMPARISONS

LineRange = tuple[int, int, int, int]
"""Start and end of the lines in the first file, and in the second file, from 0. The ends are exclusive."""


def changed_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Return where two files differ, in order. Either side of a range may be empty.

    Args:
        old: Lines of the first file.
        new: Lines of the second file.
    """
    changes: list[LineRange] = []
    old_done = new_done = 0
    end_of_texts = (len(old), len(old), len(new), len(new))
    for old_start, old_end, new_start, new_end in (*common_ranges(old, new), end_of_texts):
        if old_done < old_start or new_done < new_start:
            changes.append((old_done, old_start, new_done, new_start))
        old_done, new_done = old_end, new_end
    return changes


def common_ranges(old: Sequence[str], new: Sequence[str]) -> list[LineRange]:
    """Return where two files are equal, in order. No range is empty, and adjacent ranges are joined."""
    joined: list[LineRange] = []
    for old_start, old_end, new_start, new_end in _Matching(old, new).within((0, len(old), 0, len(new)), 0):
        if joined and joined[-1][1] == old_start and joined[-1][3] == new_start:
            joined[-1] = (joined[-1][0], old_end, joined[-1][2], new_end)
        else:
            joined.append((old_start, old_end, new_start, new_end))
    return joined


class _Matching:
    """Matches the lines of a pair of files, and counts the comparisons that may still be spent on them."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new
        self._comparisons_left = MAX_LINE_COMPARISONS

    def within(self, bounds: LineRange, depth: int) -> Iterator[LineRange]:
        """Yield the common ranges within a range, in order."""
        old_start, old_end, new_start, new_end = bounds
        work = _max_comparisons(self._old[old_start:old_end], self._new[new_start:new_end])
        if work <= self._comparisons_left:
            self._comparisons_left -= work
            yield from self._by_difflib(bounds)
            return
        head = _count_equal(self._old[old_start:old_end], self._new[new_start:new_end])
        if head:
            yield old_start, old_start + head, new_start, new_start + head
        old_start, new_start = old_start + head, new_start + head
        tail = _count_equal(self._old[old_start:old_end][::-1], self._new[new_start:new_end][::-1])
        old_end, new_end = old_end - tail, new_end - tail
        middle = (old_start, old_end, new_start, new_end)
        anchors = self._anchors(middle) if depth < MAX_ANCHOR_DEPTH else []
        for line, counterpart in anchors:
            yield from self.within((old_start, line, new_start, counterpart), depth + 1)
            yield line, line + 1, counterpart, counterpart + 1
            old_start, new_start = line + 1, counterpart + 1
        if anchors:
            yield from self.within((old_start, old_end, new_start, new_end), depth + 1)
        if tail:
            yield old_end, old_end + tail, new_end, new_end + tail

    def _by_difflib(self, bounds: LineRange) -> Iterator[LineRange]:
        old_start, old_end, new_start, new_end = bounds
        old_lines, new_lines = self._old[old_start:old_end], self._new[new_start:new_end]
        matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
        for old_offset, new_offset, size in matcher.get_matching_blocks():
            old_block, new_block = old_start + old_offset, new_start + new_offset
            if size:
                yield old_block, old_block + size, new_block, new_block + size

    def _anchors(self, bounds: LineRange) -> list[tuple[int, int]]:
        """Return the longest list of pairs of lines that occur once in each file, in the same order in both."""
        old_start, old_end, new_start, new_end = bounds
        old_counts = Counter(self._old[old_start:old_end])
        new_counts = Counter(self._new[new_start:new_end])
        new_positions = {self._new[n]: n for n in range(new_start, new_end) if new_counts[self._new[n]] == 1}
        pairs = [
            (n, new_positions[line])
            for n, line in enumerate(self._old[old_start:old_end], old_start)
            if old_counts[line] == 1 and line in new_positions
        ]
        return _longest_rising(pairs)


def _max_comparisons(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the max number of comparisons of `difflib`.

    For each block that it finds, it may compare all pairs of equal lines.
    """
    new_counts = Counter(new)
    pairs = sum(count * new_counts[line] for line, count in Counter(old).items())
    return len(old) + len(new) + pairs * min(len(old), len(new))


def _count_equal(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (old_line, new_line) in pairs if old_line != new_line), min(len(old), len(new)))


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs in which the second number rises."""
    # Patience sorting. For each length: the smallest second number at the end of a subsequence, and the index
    # of the pair that has it. For each pair: the index of the pair before it, or -1.
    smallest_ends: list[int] = []
    end_indices: list[int] = []
    predecessors: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(smallest_ends, second)
        predecessors.append(end_indices[length - 1] if length else -1)
        smallest_ends[length : length + 1] = [second]
        end_indices[length : length + 1] = [index]
    sequence: list[tuple[int, int]] = []
    index = end_indices[-1] if end_indices else -1
    while index >= 0:
        sequence.append(pairs[index])
        index = predecessors[index]
    return sequence[::-1]
