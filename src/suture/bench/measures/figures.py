"""The figures of one arm, as records; `metrics` computes them and says from what.

A run is one row: one task under one seed. Counts are of runs; shares that carry an interval are means over
tasks of the mean over that task's seeds, so that a task with more seeds weighs no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.bench.measures.calibration import Calibration
from suture.bench.measures.statistics import Interval


@dataclass(frozen=True, kw_only=True)
class Count:
    """So many of so many runs."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """In [0, 1]; `None` of none."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, kw_only=True)
class Solved:
    """What an arm has solved with a cap of so many tokens.

    Attributes:
        tokens: Generated tokens that each run could spend.
        runs: Solved runs, of those whose truth is known.
        tasks: Tasks with such a run.
        share: Over tasks, with its 95% interval; `None` where there is no task.
        generated: Mean generated tokens of a run.
        prompted: Mean prompt tokens of a run.
    """

    tokens: int
    runs: Count
    tasks: int
    share: Interval | None
    generated: float
    prompted: float


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Runs that took so many rounds, and how many of them ended right."""

    rounds: int
    runs: Count


@dataclass(frozen=True, kw_only=True)
class ErrorClass:
    """Runs whose first candidate was wrong with this error, and how many of them ended right."""

    error: str
    healed: Count


@dataclass(frozen=True, kw_only=True)
class PassAt:
    """The unbiased pass@k over tasks with at least `k` seeds, each a fresh draw of the whole arm."""

    k: int
    share: float
    tasks: int


@dataclass(frozen=True, kw_only=True)
class GeneratedTests:
    """The tests that an arm wrote for itself, held against the reference.

    Attributes:
        decided: Of the tests that had a say, those that are right: the precision of trust.
        others: Likewise of the tests that only informed.
        unknown: Tests of which it could not be found out; they count nowhere else.
        calibration: Of the trust that each was given last; `None` without tests.
    """

    decided: Count
    others: Count
    unknown: int
    calibration: Calibration | None


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What all runs of an arm took, and what that makes for each solved one.

    Attributes:
        solved: Runs that ended right.
        generated: Tokens of replies, summed.
        prompted: Tokens of prompts, summed.
        calls: Calls of a model, a count.
        seconds: Wall-clock seconds, summed.
        model_s: Of it, waiting for replies; replayed ones count nothing.
        money: US dollars; `None` where a price is not known.
    """

    solved: int
    generated: int
    prompted: int
    calls: int
    seconds: float
    model_s: float
    money: float | None

    def per_solved(self, total: float | None) -> float | None:
        """A total for each solved run; `None` where it is not known or nothing was solved."""
        return None if total is None or not self.solved else total / self.solved


@dataclass(frozen=True, kw_only=True)
class ArmMetrics:
    """One arm in one cell of dataset, regime, model and cap.

    Attributes:
        arm: The name of the recipe that is measured.
        tasks: Tasks that it was run on.
        seeds: How many different seeds the rows have.
        runs: How many rows there are.
        faults: Runs without a number: the machinery failed, in the run or in grading. They count nowhere
            else.
        ungraded: Runs whose result has no grade yet; they count nowhere else either.
        solved: By the hidden checks.
        claimed: Runs that ended `healed` or `nothing_to_heal`.
        false_claims: Of the claimed runs, those that are wrong.
        forged: Of the claimed runs of which it can be told, those whose code passed the visible checks in the
            run and fails them behind another wall.
        unclaimed_right: Of the runs that claim nothing, those that are right.
        first_pass: Runs whose first proposed candidate is right; one that proposed none is not passed at
            first, unless the given code was right.
        healed: Of the other runs, those that ended right.
        harmed: Of the runs that had a right first candidate or right given code, those that ended wrong.
        rounds: By number of rounds.
        errors: By the error of a wrong first candidate, or that there was none; the most frequent first.
        outcomes: Outcome -> how many runs ended so.
        evidence: How strong the verdict on the result is -> runs.
        timeouts: Ids of tasks of which a candidate ran out of time when it was graded; it counts as wrong.
        felled: Ids of tasks of which a candidate brought the wall down, in the run or in grading; likewise.
        spent: By all runs that count.
        pass_at: By k, up to the number of seeds.
        calibration: Of the final confidence; `None` without runs.
        tests: What generated tests were worth; `None` where no run weighed one.
    """

    arm: str
    tasks: int
    seeds: int
    runs: int
    faults: int
    ungraded: int
    solved: Solved
    claimed: Count
    false_claims: Count
    forged: Count
    unclaimed_right: Count
    first_pass: Count
    healed: Count
    harmed: Count
    rounds: tuple[Rounds, ...]
    errors: tuple[ErrorClass, ...]
    outcomes: Mapping[str, int]
    evidence: Mapping[str, int]
    timeouts: tuple[str, ...]
    felled: tuple[str, ...]
    spent: Spent
    pass_at: tuple[PassAt, ...]
    calibration: Calibration | None
    tests: GeneratedTests | None

    @property
    def unknown(self) -> Count:
        """Runs that no figure counts, of all."""
        return Count(count=self.faults + self.ungraded, of=self.runs)
