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
        before: Path -> earlier source.
        after: Path -> later source.
    """
    hunks: list[Hunk] = []
    for path in sorted(before.keys() & after.keys()):
        old, new = before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        for old_start, old_end, start, end in changed_ranges(old, new):
            hunk = Hunk(
                path=path,
                before=tuple(old[old_start:old_end]),
                after=tuple(new[start:end]),
                above=tuple(new[max(0, start - CONTEXT_LINES) : start]),
                below=tuple(new[end : end + CONTEXT_LINES]),
            )
            hunks.append(hunk)
    return tuple(hunks[:MAX_HUNKS])


def generate_reverts(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Return a revert of each hunk, then one of all hunks of a file.

    Args:
        hunks: What a commit changed, or what changed since one.
        texts: Path -> present source. A hunk is skipped if its lines are missing there or occur twice.
    """
    edits_by_path: dict[str, list[Edit]] = {}
    for hunk, edit in _find_revert_edits(hunks, texts):
        edits_by_path.setdefault(hunk.path, []).append(edit)
    reverts, whole_files = [], []
    for path, edits in edits_by_path.items():
        for edit in edits:
            label = f"line {_first_line(edit, texts[path])}: reverted to the earlier version"
            reverts.append(_build_proposal(path, (edit,), label, REVERT_PRIOR))
        if len(edits) > 1:
            in_order = tuple(sorted(edits, key=lambda edit: edit.start))
            label = "all reverted to the earlier version"
            # Tried after the single hunks. The half is by judgement.
            whole_files.append(_build_proposal(path, in_order, label, REVERT_PRIOR / 2))
    return (*reverts, *whole_files)


def find_changed_lines(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Return path -> the present lines that hunks touched: added lines, and those next to deleted ones."""
    changed: dict[str, set[int]] = {}
    for hunk, edit in _find_revert_edits(hunks, texts):
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


def _find_revert_edits(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> Iterator[tuple[Hunk, Edit]]:
    """Yield `(hunk, edit that reverts it)` for hunks whose lines occur exactly once in the present source."""
    for hunk in hunks:
        text = texts.get(hunk.path, "")
        lines = "".join((*hunk.above, *hunk.after, *hunk.below))
        if lines and text.count(lines) and text.find(lines) == text.rfind(lines):
            start = len(encode_source(text[: text.find(lines) + len("".join(hunk.above))]))
            end = start + len(encode_source("".join(hunk.after)))
            yield hunk, Edit(start=start, end=end, text="".join(hunk.before))


def _first_line(edit: Edit, text: str) -> int:
    return encode_source(text)[: edit.start].count(b"\n") + 1


def _build_proposal(path: str, edits: tuple[Edit, ...], label: str, score: float) -> Proposal:
    # A hunk may change lines that run on import, which no running process can adopt.
    return Proposal(
        path=path, edits=edits, label=label, score=score, operators=("revert",), is_swappable=False
    )
