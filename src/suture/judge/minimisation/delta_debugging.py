"""The smallest part of a change that still passes: delta debugging over its parts, or over its lines.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (`ddmin`). The oracle
is the trusted suite. What the tests let go may still be right: what a person or a model wrote together is not
cut, and what changes an answer is not left out, though no test asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from suture.judge.minimisation.change_parts import (
    ChangedLines,
    ChangePart,
    diff_blocks,
    lines_of,
    split_into_parts,
)
from suture.project.python_source.parsing import parsed
from suture.project.workspace import text_of

Oracle = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Whether files (path -> text, over the project's own) pass everything that decides."""
MOST_TRIED = 2_000
"""Parts that are looked at: most of those that do not parse cost no run, but take time too."""


@dataclass(frozen=True, kw_only=True)
class MinimisedChange:
    """What is left of a change.

    Attributes:
        files: Path -> text of the files that still change.
        edits_found: Edits, counted in lines, of the change as it was.
        edits: Those that are left.
        runs: Calls of the oracle.
        is_minimal: Whether nothing of what may be left out can be spared alone.
        left_out: Names of the parts that were left out.
    """

    files: Mapping[str, str]
    edits_found: int
    edits: int
    runs: int
    is_minimal: bool
    left_out: tuple[str, ...] = ()


async def minimise(
    before: Mapping[str, bytes],
    files: Mapping[str, str],
    oracle: Oracle,
    *,
    max_runs: int,
    same: Oracle | None = None,
) -> MinimisedChange:
    """Leave out parts of a change that the tests do not need, and that change no answer.

    Args:
        before: The project, path -> content.
        files: The change, path -> text; it passes.
        oracle: Judges a smaller one.
        max_runs: The most calls of the oracle; what is smallest by then is the answer.
        same: Whether a smaller one answers as the whole does; without it only the tests are asked.
    """
    search = _Search(before=before, files=files, oracle=oracle, runs_left=max_runs)
    parts = split_into_parts(before, files)
    kept, is_minimal = await search.ddmin(parts)
    if same is not None and len(kept) < len(parts):
        kept = await _unchanged(parts, kept, search, same)
    left_out = tuple(part.name for part in parts if part not in kept)
    return MinimisedChange(
        files=search.files_with(kept) if left_out else dict(files),
        edits_found=_count(parts),
        edits=_count(kept),
        runs=max_runs - search.runs_left,
        is_minimal=is_minimal,
        left_out=left_out,
    )


async def minimise_lines(
    before: Mapping[str, bytes], files: Mapping[str, str], oracle: Oracle, *, max_runs: int
) -> MinimisedChange:
    """Make a change smaller line by line: one that a search put together, and nobody wrote as a whole.

    Args:
        before: The project, path -> content.
        files: The change, path -> text; it passes.
        oracle: Judges a smaller one.
        max_runs: The most calls of the oracle; what is smallest by then is the answer.
    """
    search = _Search(before=before, files=files, oracle=oracle, runs_left=max_runs)
    blocks = [edit for path in sorted(files) for edit in diff_blocks(path, before.get(path), files[path])]
    kept, _ = await search.ddmin([_alone(block) for block in blocks])
    lines = [_alone(line) for part in kept for block in part.edits for line in _by_line(block)]
    is_minimal = True
    if len(lines) > 1:
        lines, is_minimal = await search.ddmin(lines)
    return MinimisedChange(
        files=search.files_with(lines) if blocks else dict(files),
        edits_found=sum(len(_by_line(block)) for block in blocks),
        edits=len(lines),
        runs=max_runs - search.runs_left,
        is_minimal=is_minimal,
    )


async def _unchanged(
    parts: list[ChangePart], kept: list[ChangePart], search: _Search, same: Oracle
) -> list[ChangePart]:
    """What is left once each part that changes an answer is back."""
    if await same(search.files_with(kept)):
        return kept
    back = [
        part
        for part in parts
        if part not in kept
        and not await same(search.files_with([other for other in parts if other is not part]))
    ]
    more = [part for part in parts if part in kept or part in back]
    if len(more) == len(parts) or not back:
        return parts
    files = search.files_with(more)
    return more if await search.passes(more) and await same(files) else parts


def _alone(edit: ChangedLines) -> ChangePart:
    return ChangePart(name="", edits=(edit,))


def _count(parts: Iterable[ChangePart]) -> int:
    return sum(len(_by_line(edit)) for part in parts for edit in part.edits)


def _by_line(block: ChangedLines) -> list[ChangedLines]:
    """One edit for each line; lines that replace others go in pairs, as far as there are any."""
    pairs = min(block.end - block.start, len(block.lines))
    edits = [
        ChangedLines(path=block.path, start=block.start + n, end=block.start + n + 1, lines=(block.lines[n],))
        for n in range(pairs)
    ]
    edits += [
        ChangedLines(path=block.path, start=n, end=n + 1, lines=())
        for n in range(block.start + pairs, block.end)
    ]
    rest = block.lines[pairs:]
    return edits + [
        ChangedLines(path=block.path, start=block.end, end=block.end, lines=(line,)) for line in rest
    ]


@dataclass(kw_only=True)
class _Search:
    before: Mapping[str, bytes]
    files: Mapping[str, str]
    oracle: Oracle
    runs_left: int
    seen: dict[tuple[tuple[str, str], ...], bool] = field(default_factory=dict)

    async def ddmin(self, parts: list[ChangePart]) -> tuple[list[ChangePart], bool]:
        """The parts that are left, and whether none of them can be spared alone."""
        count = 2
        while len(parts) > 1:
            chunks = _chunks(parts, count)
            rests = [_without(parts, chunk) for chunk in chunks] if count > 2 else []
            smaller = await self._first_passing([*chunks, *rests])
            if smaller is not None:
                count = max(2, count - 1) if smaller in rests else 2
                parts = smaller
            elif self._is_over:
                return parts, False
            elif count >= len(parts):
                return parts, True
            else:
                count = min(len(parts), 2 * count)
        return parts, True

    @property
    def _is_over(self) -> bool:
        return self.runs_left <= 0 or len(self.seen) >= MOST_TRIED

    async def _first_passing(self, some: Iterable[list[ChangePart]]) -> list[ChangePart] | None:
        for parts in some:
            if await self.passes(parts):
                return parts
        return None

    async def passes(self, parts: Sequence[ChangePart]) -> bool:
        """Whether some parts of the change pass; each is judged once."""
        await asyncio.sleep(0)  # of those that do not parse there may be many in a row
        files = self.files_with(parts)
        key = tuple(files.items())
        if key not in self.seen:
            if self._is_over:
                return False
            plausible = all(self._is_plausible(path, text) for path, text in files.items())
            self.runs_left -= plausible
            self.seen[key] = plausible and await self.oracle(files)
        return self.seen[key]

    def _is_plausible(self, path: str, text: str) -> bool:
        """Half of a change rarely parses; that costs no run."""
        return not path.endswith(".py") or parsed(self.files[path]) is None or parsed(text) is not None

    def files_with(self, parts: Iterable[ChangePart]) -> dict[str, str]:
        """The files that these parts alone change."""
        by_path: dict[str, list[ChangedLines]] = {}
        for part in parts:
            for edit in part.edits:
                by_path.setdefault(edit.path, []).append(edit)
        files: dict[str, str] = {}
        for path, edits in sorted(by_path.items()):
            lines = lines_of(text_of(self.before.get(path, b"")))
            # Of two that begin at one place, the one that comes first in the change is put in last.
            for edit in reversed(sorted(edits, key=lambda edit: (edit.start, edit.end))):
                lines[edit.start : edit.end] = edit.lines
            files[path] = "".join(lines)
        return files


def _without(parts: Sequence[ChangePart], chunk: Sequence[ChangePart]) -> list[ChangePart]:
    gone = set(map(id, chunk))
    return [part for part in parts if id(part) not in gone]


def _chunks(parts: list[ChangePart], count: int) -> list[list[ChangePart]]:
    size, more = divmod(len(parts), count)
    chunks: list[list[ChangePart]] = []
    at = 0
    for number in range(count):
        end = at + size + (number < more)
        chunks.append(parts[at:end])
        at = end
    return [chunk for chunk in chunks if chunk]
