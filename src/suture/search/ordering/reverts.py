"""Reverts of recent changes, which are tried first when the history shows which commit broke a test."""

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
    """Lines that differ between two versions of a file. All lines include their line endings.

    Attributes:
        path: The file.
        before: The lines in the earlier version; empty if they were added.
        after: The lines in the later version; empty if they were deleted.
        above: A few lines before them, in the later version.
        below: A few lines after them, in the later version.
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
        texts: Path -> present text. A hunk is skipped if its lines are missing there or occur twice.
    """
    reverts_by_path: dict[str, list[Proposal]] = {}
    for hunk in hunks:
        edit = _revert_edit(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            label = f"line {_first_line(edit, texts[hunk.path])}: reverted to the earlier version"
            revert = _build_proposal(hunk.path, (edit,), label, REVERT_PRIOR)
            reverts_by_path.setdefault(hunk.path, []).append(revert)
    whole_files = []
    for path, reverts in reverts_by_path.items():
        if len(reverts) > 1:
            edits = sorted((edit for revert in reverts for edit in revert.edits), key=lambda edit: edit.start)
            label = "all reverted to the earlier version"
            whole_files.append(_build_proposal(path, tuple(edits), label, REVERT_PRIOR / 2))
    return (*(revert for reverts in reverts_by_path.values() for revert in reverts), *whole_files)


def find_changed_lines(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Return path -> the present lines that hunks touched: added lines, and those next to deleted ones."""
    changed: dict[str, set[int]] = {}
    for hunk in hunks:
        edit = _revert_edit(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            first = _first_line(edit, texts[hunk.path])
            lines = range(first, first + len(hunk.after)) if hunk.after else (first - 1, first)
            changed.setdefault(hunk.path, set()).update(lines)
    return {path: frozenset(lines) for path, lines in changed.items()}


def favour_changed_lines(
    scores: Mapping[str, Mapping[int, float]], lines: Mapping[str, frozenset[int]]
) -> dict[str, dict[int, float]]:
    """Return scores in which changed lines come before all others; unchanged if none of them is suspected.

    Args:
        lines: Path -> lines that the breaking change touched.
    """
    is_suspected = any(
        line in lines.get(path, ()) for path, line_scores in scores.items() for line in line_scores
    )
    factor = UNCHANGED_LINE_FACTOR if is_suspected else 1.0
    return {
        path: {
            line: score if line in lines.get(path, ()) else factor * score
            for line, score in line_scores.items()
        }
        for path, line_scores in scores.items()
    }


def _revert_edit(hunk: Hunk, text: str) -> Edit | None:
    """Return the edit that reverts a hunk; `None` if its lines are missing or occur twice."""
    later = "".join((*hunk.above, *hunk.after, *hunk.below))
    index = text.find(later)
    if not later or index < 0 or text.find(later, index + 1) >= 0:
        return None
    start = len(encode_source(text[: index + len("".join(hunk.above))]))
    removed = encode_source("".join(hunk.after))
    return Edit(start=start, end=start + len(removed), text="".join(hunk.before))


def _first_line(edit: Edit, text: str) -> int:
    return encode_source(text)[: edit.start].count(b"\n") + 1


def _build_proposal(path: str, edits: tuple[Edit, ...], label: str, score: float) -> Proposal:
    return Proposal(
        path=path, edits=edits, label=label, score=score, operators=("revert",), is_swappable=False
    )
