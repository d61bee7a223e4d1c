"""Two changes that need each other: the second is looked for where the first leaves the failing tests.

A first change is worth going on from where some failing test passes with it, or gets further: to a later
line, or past an exception that hid the next fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suture.judge.trials.trial_records import Mark, Proposal, Spectrum, Trial
from suture.mutation.edits import edits_overlap
from suture.mutation.python.python_tree import PythonTree, parse_python_tree
from suture.search.localisation.exception_clues import find_clues
from suture.search.ordering.candidate_order import order_single_changes

LineScores = Mapping[str, Mapping[int, float]]
PARTNERS, PARTNERS_OF = 250, 15_000
"""Second changes of each, and those of the most suspicious lines of which they are the likeliest."""
UNKNOWN = ("NameError", "UnboundLocalError", "AttributeError", "ModuleNotFoundError", "ImportError")
"""Faults that are there whatever the values are: where one is gone, something was mended."""
FURTHER = 0.5
"""A first change with which no test passes yet, beside one with which all but one do."""


def has_progressed(before: Mark, now: Mark) -> bool:
    """Whether a test that still fails came further than before a change."""
    file = before.test.partition("::")[0]
    old, new = before.reached, now.reached
    if now.test != before.test or not old or not new or not now.fault:
        return False
    if before.fault.startswith(UNKNOWN) and not now.fault.startswith((*UNKNOWN, "TypeError")):
        return True  # in a loop, what comes behind such a line may fail further up
    for one, other in zip(old, new, strict=False):
        if one != other:
            return one[0] == other[0] and other[1] > one[1]
    # the same way down, as far as one of them goes: the call that raised returns now, to the test's own check
    return len(new) < len(old) and new[-1][0] == file and old[-1][0] != file


def remaining_spectrum(spectrum: Spectrum, trial: Trial, texts: Mapping[str, str]) -> Spectrum:
    """What is left of a spectrum behind a first change: the tests that still fail, and where they fail now.

    Those that it mends speak for the lines that they run. Where those were not noted with the change, what
    stands behind the place of an exception may run too. Of failing tests that a candidate does not run
    nothing is known now.

    Args:
        spectrum: Of the code as it is.
        trial: What the first change showed.
        texts: Path -> text of the files that may change.
    """
    tests, marks = [], {mark.test: mark for mark in trial.marks}
    for test in spectrum.tests:
        mark, traced = marks.get(test.id), trial.lines.get(test.id)
        if traced:
            test = replace(test, lines=traced)
        if test.id in trial.passed:
            test = replace(test, outcome="passed")
        elif test.failed and spectrum.guiding and test.id not in spectrum.guiding:
            continue
        if mark is not None and mark.reached:
            frames = tuple(place for place in mark.reached if place[0] in texts)
            lines = {path: set(own) for path, own in test.lines.items()}
            for path, line in () if traced else frames:
                lines.setdefault(path, set()).update(_lines_around(parse_python_tree(texts[path]), line))
            seen = {path: frozenset(own) for path, own in lines.items()}
            test = replace(test, frames=frames, fault=mark.fault, reached=mark.reached, lines=seen)
        tests.append(test)
    known = spectrum.known - trial.passed
    return replace(spectrum, tests=tuple(tests), known=known)


def _lines_around(view: PythonTree | None, line: int) -> range:
    """The lines of the function around one: behind an exception that is gone, they may run."""
    holders = [] if view is None else view.functions_in_order
    around = [n for n in holders if n.lineno <= line <= (n.end_lineno or n.lineno)]
    if not around:
        return range(line, line + 1)
    innermost = max(around, key=lambda node: node.lineno)
    return range(innermost.body[0].lineno, (innermost.end_lineno or innermost.lineno) + 1)


async def pair_changes(
    start: Proposal, left: Spectrum, scores: LineScores, texts: Mapping[str, str], seed: int
) -> list[Proposal]:
    """Pairs of changes in one file: a partial repair, and a likely change for what it leaves.

    Args:
        start: The partial repair.
        left: What is left of the spectrum behind it.
        scores: Path -> line -> suspiciousness, by that.
        texts: Path -> text.
        seed: Decides between equals.
    """
    partners = await order_single_changes(
        scores,
        {start.path: texts[start.path]},
        left.imported,
        seed=seed,
        most=PARTNERS,
        clues=find_clues(left),
        looked_at=PARTNERS_OF,
    )
    best = best_score(partners)
    apart = (other for other in partners if not edits_overlap(start.edits, other.edits))
    return [combine_changes(start, other, other.score / best) for other in apart]


def best_score(made: Sequence[Proposal]) -> float:
    """The score of the likeliest."""
    return max((one.score for one in made), default=1.0) or 1.0


def passing_share(trial: Trial, spectrum: Spectrum) -> float:
    """Of the failing tests, those that pass with a change: what it weighs as a start."""
    run = max(trial.passing + trial.failing, len(spectrum.guiding), 1)
    return max(trial.passing, FURTHER) / run


def combine_changes(start: Proposal, other: Proposal, score: float) -> Proposal:
    """Two changes that lie apart, as one."""
    return Proposal(
        path=start.path,
        edits=tuple(sorted((*start.edits, *other.edits), key=lambda e: (e.start, e.end))),
        label=f"{start.label}; {other.label}",
        score=score,
        operators=(*start.operators, *other.operators),
        swap=start.swap and other.swap,
    )
