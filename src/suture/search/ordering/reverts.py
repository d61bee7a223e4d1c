"""Reverts of recent changes: tried first when the history shows which commit broke a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.judge.trials.trial_records import Proposal
from suture.mutation import Edit
from suture.mutation.edits import encode_source
from suture.project.workspace import changed_ranges
from suture.search.tuning import CONTEXT_LINES, MAX_HUNKS, REVERT_PRIOR, UNCHANGED_LINE_FACTOR


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Lines that differ between two versions of a file.

    Attributes:
        path: The file.
        before: The earlier lines, with their line endings.
        after: The later lines.
        above: A few common lines before them.
        below: A few common lines after them.
    """

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    above: tuple[str, ...]
    below: tuple[str, ...]


def compute_hunks(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Hunk, ...]:
    """Return what differs between two versions of the files that both have.

    Args:
        before: Path -> earlier text.
        after: Path -> later text.
    """
    return tuple(
        hunk
        for path in sorted(before.keys() & after.keys())
        if before[path] != after[path]
        for hunk in _hunks_of_file(
            path, before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        )
    )[:MAX_HUNKS]


def _hunks_of_file(path: str, before: list[str], after: list[str]) -> Iterator[Hunk]:
    for start, end, later_start, later_end in changed_ranges(before, after):
        yield Hunk(
            path=path,
            before=tuple(before[start:end]),
            after=tuple(after[later_start:later_end]),
            above=tuple(after[max(0, later_start - CONTEXT_LINES) : later_start]),
            below=tuple(after[later_end : later_end + CONTEXT_LINES]),
        )


def generate_reverts(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Return a revert of each hunk, then one of all hunks of a file.

    Args:
        hunks: What a commit changed, or what changed since one.
        texts: Path -> text now; a hunk whose lines are missing or occur twice, is skipped.
    """
    singles: dict[str, list[Proposal]] = {}
    for hunk in hunks:
        edit = _revert_edit(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            label = f"line {_line_of(edit, texts[hunk.path])}: reverted to the earlier version"
            singles.setdefault(hunk.path, []).append(_proposal(hunk.path, (edit,), label, REVERT_PRIOR))
    whole_files = [
        _proposal(
            path,
            tuple(sorted((edit for one in reverts for edit in one.edits), key=lambda edit: edit.start)),
            "all reverted to the earlier version",
            REVERT_PRIOR / 2,
        )
        for path, reverts in singles.items()
        if len(reverts) > 1
    ]
    return (*(revert for reverts in singles.values() for revert in reverts), *whole_files)


def find_changed_lines(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Return path -> the present lines that hunks touched: added lines, and those next to deleted ones."""
    found: dict[str, set[int]] = {}
    for hunk in hunks:
        edit = _revert_edit(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            first = _line_of(edit, texts[hunk.path])
            last = first + len(hunk.after) - 1
            lines = range(first, last + 1) if hunk.after else (first - 1, first)
            found.setdefault(hunk.path, set()).update(lines)
    return {path: frozenset(lines) for path, lines in found.items()}


def favour_changed_lines(
    scores: Mapping[str, Mapping[int, float]], lines: Mapping[str, frozenset[int]]
) -> dict[str, dict[int, float]]:
    """Return scores in which changed lines come before all others; unchanged if none of them is suspected.

    Args:
        scores: Path -> line -> suspiciousness.
        lines: Path -> lines that the breaking change touched.
    """
    is_suspected = any(line in lines.get(path, ()) for path, own in scores.items() for line in own)
    return {
        path: {
            line: score * (UNCHANGED_LINE_FACTOR if is_suspected and line not in lines.get(path, ()) else 1.0)
            for line, score in own.items()
        }
        for path, own in scores.items()
    }


def _revert_edit(hunk: Hunk, text: str) -> Edit | None:
    """Return the edit that reverts a hunk; `None` if its place is not unique."""
    later = "".join((*hunk.above, *hunk.after, *hunk.below))
    at = text.find(later)
    if not later or at < 0 or text.find(later, at + 1) >= 0:
        return None
    start = len(encode_source(text[: at + len("".join(hunk.above))]))
    removed = encode_source("".join(hunk.after))
    return Edit(start=start, end=start + len(removed), text="".join(hunk.before))


def _line_of(edit: Edit, text: str) -> int:
    return encode_source(text)[: edit.start].count(b"\n") + 1


def _proposal(path: str, edits: tuple[Edit, ...], label: str, score: float) -> Proposal:
    return Proposal(
        path=path, edits=edits, label=label, score=score, operators=("revert",), is_swappable=False
    )
