"""The smallest part of a change that still passes: delta debugging over its edits.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (`ddmin`). The oracle
is the trusted suite. First over the stretches that differ, then over the lines in those that are left.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from suture.checks.parsing import parsed
from suture.workspace import text_of

__all__ = ["Minimised", "minimise"]

Oracle = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Whether files (path -> text, over the project's own) pass everything that decides."""


@dataclass(frozen=True, kw_only=True, eq=False)  # two equal lines may be put in at one place
class Edit:
    """Lines `start` to `end` (from 0) of a file give way to others; a file that is new is one edit."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Minimised:
    """What is left of a change.

    Attributes:
        files: Path -> text of the files that still change.
        edits_found: Edits, counted in lines, of the change as it was.
        edits: Those that are left.
        runs: Calls of the oracle.
        is_minimal: Whether no edit that is left can be spared alone.
    """

    files: Mapping[str, str]
    edits_found: int
    edits: int
    runs: int
    is_minimal: bool


async def minimise(
    before: Mapping[str, bytes], files: Mapping[str, str], oracle: Oracle, *, max_runs: int
) -> Minimised:
    """Make a change smaller while it passes.

    Args:
        before: The project, path -> content.
        files: The change, path -> text; it passes.
        oracle: Judges a smaller one.
        max_runs: The most calls of the oracle; what is smallest by then is the answer.
    """
    search = _Search(before=before, files=files, oracle=oracle, runs_left=max_runs)
    blocks = [edit for path in sorted(files) for edit in _blocks(path, before.get(path), files[path])]
    found = [line for block in blocks for line in _by_line(block)]
    kept, _ = await search.ddmin(blocks)
    lines = [line for block in kept for line in _by_line(block)]
    is_minimal = True
    if len(lines) > 1:
        lines, is_minimal = await search.ddmin(lines)
    return Minimised(
        files=search.files_with(lines) if found else dict(files),
        edits_found=len(found),
        edits=len(lines),
        runs=max_runs - search.runs_left,
        is_minimal=is_minimal,
    )


def _blocks(path: str, before: bytes | None, text: str) -> list[Edit]:
    if before is None:
        return [Edit(path=path, start=0, end=0, lines=tuple(_lines(text)))]
    old, new = _lines(text_of(before)), _lines(text)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        Edit(path=path, start=i, end=j, lines=tuple(new[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]


def _by_line(block: Edit) -> list[Edit]:
    """One edit for each line; lines that replace others go in pairs, as far as there are any."""
    pairs = min(block.end - block.start, len(block.lines))
    edits = [
        Edit(path=block.path, start=block.start + n, end=block.start + n + 1, lines=(block.lines[n],))
        for n in range(pairs)
    ]
    edits += [
        Edit(path=block.path, start=n, end=n + 1, lines=()) for n in range(block.start + pairs, block.end)
    ]
    rest = block.lines[pairs:]
    return edits + [Edit(path=block.path, start=block.end, end=block.end, lines=(line,)) for line in rest]


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


@dataclass(kw_only=True)
class _Search:
    before: Mapping[str, bytes]
    files: Mapping[str, str]
    oracle: Oracle
    runs_left: int
    seen: dict[tuple[tuple[str, str], ...], bool] = field(default_factory=dict)

    async def ddmin(self, edits: list[Edit]) -> tuple[list[Edit], bool]:
        """The edits that are left, and whether none of them can be spared alone."""
        count = 2
        while len(edits) > 1:
            chunks = _chunks(edits, count)
            rests = [[edit for edit in edits if edit not in chunk] for chunk in chunks] if count > 2 else []
            smaller = await self._first_passing([*chunks, *rests])
            if smaller is not None:
                count = max(2, count - 1) if smaller in rests else 2
                edits = smaller
            elif self.runs_left <= 0:
                return edits, False
            elif count >= len(edits):
                return edits, True
            else:
                count = min(len(edits), 2 * count)
        return edits, True

    async def _first_passing(self, parts: Iterable[list[Edit]]) -> list[Edit] | None:
        for part in parts:
            if await self._passes(part):
                return part
        return None

    async def _passes(self, edits: Sequence[Edit]) -> bool:
        files = self.files_with(edits)
        key = tuple(files.items())
        if key not in self.seen:
            if self.runs_left <= 0:
                return False
            plausible = all(self._is_plausible(path, text) for path, text in files.items())
            self.runs_left -= plausible
            self.seen[key] = plausible and await self.oracle(files)
        return self.seen[key]

    def _is_plausible(self, path: str, text: str) -> bool:
        """Half of a change rarely parses; that costs no run."""
        return not path.endswith(".py") or parsed(self.files[path]) is None or parsed(text) is not None

    def files_with(self, edits: Sequence[Edit]) -> dict[str, str]:
        """The files that these edits alone change."""
        files: dict[str, str] = {}
        for path in sorted({edit.path for edit in edits}):
            lines = _lines(text_of(self.before.get(path, b"")))
            for edit in reversed([edit for edit in edits if edit.path == path]):
                lines[edit.start : edit.end] = edit.lines
            files[path] = "".join(lines)
        return files


def _chunks(edits: list[Edit], count: int) -> list[list[Edit]]:
    size, more = divmod(len(edits), count)
    chunks: list[list[Edit]] = []
    at = 0
    for number in range(count):
        end = at + size + (number < more)
        chunks.append(edits[at:end])
        at = end
    return [chunk for chunk in chunks if chunk]
