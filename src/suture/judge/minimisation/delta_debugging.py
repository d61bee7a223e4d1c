"""Find the smallest part of a change that still passes, by delta debugging over its parts or its lines.

The algorithm is `ddmin` (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002). A
smaller change passes if the trusted suite passes with it. Code that no test needs may still be right. So code that a
person or a model wrote as a unit is not cut, and code that changes an answer stays.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from suture.judge.minimisation.change_parts import ChangedLines, ChangePart, diff_blocks, split_into_parts
from suture.judge.tuning import MAX_RESTORED_BLOCKS, MAX_TRIED_PARTS
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text
from suture.project.workspace.diffs import split_lines

CODE_LINE = re.compile(r"^\s*(?!#|//|/?\*|import\b|from\b)[^\n]*\w")
"""Matches a line that is neither a comment nor an import."""
PartT = TypeVar("PartT")
ChangePredicate = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Returns whether files (path -> text, over the project's own) pass every check that decides."""


@dataclass(frozen=True, kw_only=True)
class MinimisationSummary:
    """How a change was minimised.

    Attributes:
        edits_found: Edits of the original change, one for each line.
        edits: Edits that remain.
        runs: Runs of the trusted suite.
        is_minimal: Whether every remaining part is needed; false if the limit of runs was reached first.
        left_out: Names of the parts that were left out: files, and functions in them.
    """

    edits_found: int = 0
    edits: int = 0
    runs: int = 0
    is_minimal: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MinimisedChange:
    """The remaining part of a change.

    Attributes:
        files: Path -> text of the files that still change.
    """

    files: Mapping[str, str]
    summary: MinimisationSummary


async def minimise(
    before: Mapping[str, bytes],
    files: Mapping[str, str],
    still_passes: ChangePredicate,
    *,
    max_runs: int,
    is_equivalent: ChangePredicate | None = None,
) -> MinimisedChange:
    """Leave out the parts of a change that the tests do not need and that change no answer.

    Args:
        files: The change, path -> text; it passes.
        max_runs: Maximum runs of the trusted suite; the smallest change that was found by then is the result.
        is_equivalent: Returns whether a smaller change answers like the whole one; by default only the tests
            decide.
    """
    search = _Search(before=before, files=files, still_passes=still_passes, runs_left=max_runs)
    parts = split_into_parts(before, files)
    remaining, is_minimal = await search.ddmin(parts)
    if is_equivalent is not None and len(remaining) < len(parts):
        remaining = await _restore_behaviour(parts, remaining, search, is_equivalent)
    left_out = tuple(part.name for part in parts if part not in remaining)
    summary = MinimisationSummary(
        edits_found=_count_line_edits(parts),
        edits=_count_line_edits(remaining),
        runs=max_runs - search.runs_left,
        is_minimal=is_minimal,
        left_out=left_out,
    )
    return MinimisedChange(files=search.apply_parts(remaining) if left_out else dict(files), summary=summary)


async def minimise_lines(
    before: Mapping[str, bytes], files: Mapping[str, str], still_passes: ChangePredicate, *, max_runs: int
) -> MinimisedChange:
    """Make a change smaller line by line. Only changes that a search assembled may be cut in this way."""
    search = _Search(before=before, files=files, still_passes=still_passes, runs_left=max_runs)
    blocks = [edit for path in sorted(files) for edit in diff_blocks(path, before.get(path), files[path])]
    remaining, _ = await search.ddmin([ChangePart(name="", edits=(block,)) for block in blocks])
    lines = [
        ChangePart(name="", edits=(line,))
        for part in remaining
        for block in part.edits
        for line in _split_by_line(block)
    ]
    lines, is_minimal = await search.ddmin(lines)
    summary = MinimisationSummary(
        edits_found=sum(len(_split_by_line(block)) for block in blocks),
        edits=len(lines),
        runs=max_runs - search.runs_left,
        is_minimal=is_minimal,
    )
    return MinimisedChange(files=search.apply_parts(lines) if blocks else dict(files), summary=summary)


async def find_unneeded_removals(
    before: Mapping[str, bytes], files: Mapping[str, str], still_passes: ChangePredicate
) -> list[tuple[str, int]]:
    """Return (path, line before the change) of code that a change only removes, and without whose removal it passes.

    Imports, comments, and what the change adds elsewhere do not count.
    """
    search = _Search(before=before, files=files, still_passes=still_passes, runs_left=MAX_RESTORED_BLOCKS)
    blocks = [edit for path in sorted(files) for edit in diff_blocks(path, before.get(path), files[path])]
    parts = [ChangePart(name="", edits=(block,)) for block in blocks]
    added = {line.strip() for block in blocks for line in block.lines}
    removals = []
    for part in parts:
        (block,) = part.edits
        lines = split_lines(decode_text(before.get(block.path, b"")))[block.start : block.end]
        has_code = any(CODE_LINE.search(line) and line.strip() not in added for line in lines)
        if len(parts) > 1 and has_code and not any(map(str.strip, block.lines)):
            removals += (
                [(block.path, block.start + 1)] if await search.passes(_without(parts, [part])) else []
            )
    return removals


async def _restore_behaviour(
    parts: list[ChangePart], remaining: list[ChangePart], search: _Search, is_equivalent: ChangePredicate
) -> list[ChangePart]:
    """Return the remaining parts, together with each dropped part that changes an answer."""
    if await is_equivalent(search.apply_parts(remaining)):
        return remaining
    needed = [
        part
        for part in parts
        if part not in remaining and not await is_equivalent(search.apply_parts(_without(parts, [part])))
    ]
    restored = [part for part in parts if part in remaining or part in needed]
    if len(restored) == len(parts) or not needed:
        return parts
    files = search.apply_parts(restored)
    return restored if await search.passes(restored) and await is_equivalent(files) else parts


def _count_line_edits(parts: Iterable[ChangePart]) -> int:
    return sum(len(_split_by_line(edit)) for part in parts for edit in part.edits)


def _split_by_line(block: ChangedLines) -> list[ChangedLines]:
    """Return one edit for each line. A new line replaces an old one as long as there are old ones."""
    edits: list[ChangedLines] = []
    for number in range(max(block.end - block.start, len(block.lines))):
        start = min(block.start + number, block.end)
        end = min(start + 1, block.end)
        lines = block.lines[number : number + 1]
        edits.append(ChangedLines(path=block.path, start=start, end=end, lines=lines))
    return edits


async def ddmin(
    parts: list[PartT], passes: Callable[[list[PartT]], Awaitable[bool]], is_over: Callable[[], bool]
) -> tuple[list[PartT], bool]:
    """Return the remaining parts of a whole that passes, and whether each of them is needed.

    Args:
        passes: Returns whether some of the parts, in their order, pass.
        is_over: Returns whether no more may be tried.
    """
    count = 2
    while len(parts) > 1:
        chunks = _split_evenly(parts, count)
        # The complement of one of two halves is the other half.
        complements = [_without(parts, chunk) for chunk in chunks] if count > 2 else []
        smaller = await _find_passing([*chunks, *complements], passes)
        if smaller is not None:
            count = max(2, count - 1) if smaller in complements else 2
            parts = smaller
        elif is_over():
            return parts, False
        elif count >= len(parts):
            return parts, True
        else:
            count = min(len(parts), 2 * count)
    return parts, True


async def _find_passing(
    subsets: Iterable[list[PartT]], passes: Callable[[list[PartT]], Awaitable[bool]]
) -> list[PartT] | None:
    for parts in subsets:
        if await passes(parts):
            return parts
    return None


@dataclass(kw_only=True)
class _Search:
    """The delta debugging of one change: its files, and which parts of it pass, as far as they were judged."""

    before: Mapping[str, bytes]
    files: Mapping[str, str]
    still_passes: ChangePredicate
    runs_left: int
    judged: dict[tuple[tuple[str, str], ...], bool] = field(default_factory=dict)

    async def ddmin(self, parts: list[ChangePart]) -> tuple[list[ChangePart], bool]:
        """Return the remaining parts, and whether each of them is needed."""
        return await ddmin(parts, self.passes, lambda: self._is_over)

    @property
    def _is_over(self) -> bool:
        return self.runs_left <= 0 or len(self.judged) >= MAX_TRIED_PARTS

    async def passes(self, parts: Sequence[ChangePart]) -> bool:
        """Return whether some parts of the change pass; equal files are judged once."""
        await asyncio.sleep(0)  # many subsets in a row may not parse, and the event loop must not be blocked
        files = self.apply_parts(parts)
        key = tuple(files.items())
        if key not in self.judged:
            if self._is_over:
                return False
            parses = all(self._parses(path, text) for path, text in files.items())
            self.runs_left -= parses  # what does not parse is not run
            self.judged[key] = parses and await self.still_passes(files)
        return self.judged[key]

    def _parses(self, path: str, text: str) -> bool:
        """Return whether a file parses, if the file with the whole change does. Half a change rarely does."""
        return (
            not path.endswith(".py")
            or parse_module(self.files[path]) is None
            or parse_module(text) is not None
        )

    def apply_parts(self, parts: Iterable[ChangePart]) -> dict[str, str]:
        """Return the files with these parts of the change applied."""
        by_path: dict[str, list[ChangedLines]] = {}
        for part in parts:
            for edit in part.edits:
                by_path.setdefault(edit.path, []).append(edit)
        files: dict[str, str] = {}
        for path, edits in sorted(by_path.items()):
            lines = split_lines(decode_text(self.before.get(path, b"")))
            # Edits are applied from the end, so of two at the same place the first one is applied last.
            for edit in reversed(sorted(edits, key=lambda edit: (edit.start, edit.end))):
                lines[edit.start : edit.end] = edit.lines
            files[path] = "".join(lines)
        return files


def _without(parts: Sequence[PartT], chunk: Sequence[PartT]) -> list[PartT]:
    return [part for part in parts if part not in chunk]


def _split_evenly(parts: list[PartT], count: int) -> list[list[PartT]]:
    size, remainder = divmod(len(parts), count)
    bounds = [number * size + min(number, remainder) for number in range(count + 1)]
    return [parts[start:end] for start, end in pairwise(bounds) if start < end]
