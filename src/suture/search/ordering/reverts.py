"""Changes of the past, taken back: tried first where history names the change that broke a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import Edit
from suture.project.workspace import changed_stretches

MOST_HUNKS = 40
"""Stretches of the change that broke the tests which are taken back."""
AROUND = 2
"""Lines beside a hunk that must still be there, so that it is taken back at the right place."""
UNTOUCHED = 0.2
"""A line that the change left alone, beside one that it touched: that may have shown an old fault."""
PRIOR = 0.9
"""A change that is known to have broken the tests is likelier at fault than any line of the coverage."""


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Lines that one version has where another has others.

    Attributes:
        path: The file.
        before: The earlier lines, with their ends.
        after: The later lines.
        above: A few lines above that both have.
        below: A few lines below.
    """

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    above: tuple[str, ...]
    below: tuple[str, ...]


def compute_hunks(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Hunk, ...]:
    """What differs between two versions of files; a file that only one of them has is left out.

    Args:
        before: Path -> earlier text.
        after: Path -> later text.
    """
    return tuple(
        hunk
        for path in sorted(before.keys() & after.keys())
        if before[path] != after[path]
        for hunk in _hunks(
            path, before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        )
    )[:MOST_HUNKS]


def _hunks(path: str, before: list[str], after: list[str]) -> Iterator[Hunk]:
    for start, end, other, stop in changed_stretches(before, after):
        yield Hunk(
            path=path,
            before=tuple(before[start:end]),
            after=tuple(after[other:stop]),
            above=tuple(after[max(0, other - AROUND) : other]),
            below=tuple(after[stop : stop + AROUND]),
        )


def generate_reverts(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Each hunk taken back alone, then all of a file's together.

    Args:
        hunks: What a commit changed, or what changed since one.
        texts: Path -> text now; a hunk whose lines are no longer there, or stand there twice, is left out.
    """
    singles: dict[str, list[Proposal]] = {}
    for hunk in hunks:
        edit = _placed(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            line = texts[hunk.path].encode("utf-8", "surrogatepass")[: edit.start].count(b"\n") + 1
            label = f"line {line}: as it was before"
            singles.setdefault(hunk.path, []).append(_proposal(hunk.path, (edit,), label, PRIOR))
    together = [
        _proposal(
            path,
            tuple(sorted((e for p in ones for e in p.edits), key=_start)),
            "all as it was before",
            PRIOR / 2,
        )
        for path, ones in singles.items()
        if len(ones) > 1
    ]
    return (*(proposal for ones in singles.values() for proposal in ones), *together)


def find_changed_lines(hunks: Sequence[Hunk], texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Path -> the lines of today that hunks touched: those that came, and those beside what went."""
    found: dict[str, set[int]] = {}
    for hunk in hunks:
        edit = _placed(hunk, texts[hunk.path]) if hunk.path in texts else None
        if edit is not None:
            first = texts[hunk.path].encode("utf-8", "surrogatepass")[: edit.start].count(b"\n") + 1
            last = first + len(hunk.after) - 1
            found.setdefault(hunk.path, set()).update(
                range(first, last + 1) if hunk.after else (first - 1, first)
            )
    return {path: frozenset(lines) for path, lines in found.items()}


def favour_changed_lines(
    scores: Mapping[str, Mapping[int, float]], lines: Mapping[str, frozenset[int]]
) -> dict[str, dict[int, float]]:
    """Scores of lines, those that history suspects before all others; as they are where it suspects none.

    Args:
        scores: Path -> line -> suspiciousness.
        lines: Path -> lines that the change which broke the tests touched.
    """
    touched = any(line in lines.get(path, ()) for path, own in scores.items() for line in own)
    return {
        path: {
            n: score * (UNTOUCHED if touched and n not in lines.get(path, ()) else 1.0)
            for n, score in own.items()
        }
        for path, own in scores.items()
    }


def _placed(hunk: Hunk, text: str) -> Edit | None:
    """The edit that takes a hunk back; `None` where its place is not the only one of its kind."""
    later = "".join((*hunk.above, *hunk.after, *hunk.below))
    at = text.find(later)
    if not later or at < 0 or text.find(later, at + 1) >= 0:
        return None
    start = len(text[: at + len("".join(hunk.above))].encode("utf-8", "surrogatepass"))
    gone = "".join(hunk.after).encode("utf-8", "surrogatepass")
    return Edit(start=start, end=start + len(gone), text="".join(hunk.before))


def _proposal(path: str, edits: tuple[Edit, ...], label: str, score: float) -> Proposal:
    return Proposal(path=path, edits=edits, label=label, score=score, operators=("revert",), swap=False)


def _start(edit: Edit) -> int:
    return edit.start
