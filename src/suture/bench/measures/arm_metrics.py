"""The metrics of one arm, computed from its rows without a model or a sandbox.

A run is one row: one task under one seed. Counts are of runs. Shares with an interval are means over tasks of
the mean over the task's seeds, so that a task with more seeds weighs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from suture.bench.grading.hidden_checks import GradeStatus
from suture.bench.measures.calibration import Calibration, compute_calibration
from suture.bench.measures.paired_statistics import Interval, bootstrap_difference, exact_interval, pass_at_k
from suture.bench.rows import BenchmarkRow, CandidateStep


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A count of a total, such as solved runs of all runs."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share in [0, 1]; `None` if the total is 0."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, kw_only=True)
class SolvedShare:
    """What an arm solved with a cap.

    Attributes:
        tokens: Reply tokens that each run could spend.
        runs: Solved runs, of the runs with a result.
        tasks: Number of tasks with such a run.
        share: Share of tasks with its 95% interval; `None` without tasks.
        completion_tokens: Mean generated tokens of a run.
        prompt_tokens: Mean prompt tokens of a run.
    """

    tokens: int
    runs: Ratio
    tasks: int
    share: Interval | None
    completion_tokens: float
    prompt_tokens: float


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Runs with a number of rounds, and how many of them ended right."""

    rounds: int
    runs: Ratio


@dataclass(frozen=True, kw_only=True)
class ErrorClass:
    """Runs whose first candidate was wrong with this error, and how many of them ended right."""

    error: str
    healed: Ratio


@dataclass(frozen=True, kw_only=True)
class PassAt:
    """The unbiased pass@k over tasks with at least `k` seeds, each a fresh draw of the whole arm."""

    k: int
    share: float
    tasks: int


@dataclass(frozen=True, kw_only=True)
class GeneratedTests:
    """The tests that an arm wrote for itself, compared with the reference.

    Attributes:
        decided: Right tests of those that decided, which is the precision of the trust.
        others: Right tests of those that only informed.
        unknown: Tests whose correctness could not be determined; they count nowhere else.
        calibration: Calibration of the last trust of each test; `None` without tests.
    """

    decided: Ratio
    others: Ratio
    unknown: int
    calibration: Calibration | None


@dataclass(frozen=True, kw_only=True)
class RunSpending:
    """What all runs of an arm spent.

    Attributes:
        solved: Number of runs that ended right.
        completion_tokens: Tokens of replies, summed.
        prompt_tokens: Tokens of prompts, summed.
        model_s: Seconds of waiting for replies; replayed ones count 0.
        cost_usd: US dollars; `None` if a price is not known.
    """

    solved: int
    completion_tokens: int
    prompt_tokens: int
    calls: int
    seconds: float
    model_s: float
    cost_usd: float | None

    def per_solved(self, total: float | None) -> float | None:
        """Return a total divided by the solved runs; `None` if it is not known or nothing was solved."""
        return None if total is None or not self.solved else total / self.solved


@dataclass(frozen=True, kw_only=True)
class ArmMetrics:
    """The metrics of one arm in one cell of data set, regime, model and cap.

    Attributes:
        arm: Name of the measured recipe.
        runs: Number of rows.
        faults: Runs without a result, because the machinery failed in the run or in grading. They count
            nowhere else.
        ungraded: Runs whose result has no grade yet; they count nowhere else.
        solved: What the arm solved by the hidden checks.
        claimed: Runs that ended `healed` or `nothing_to_heal`.
        false_claims: Claimed runs that are wrong.
        forged: Claimed runs whose code passed the visible checks in the run and fails them in another
            sandbox, of those for which this is known.
        unclaimed_right: Right runs, of those that claim nothing.
        first_pass: Runs whose first candidate is right. A run without a candidate counts only if the given
            code was right.
        healed: Runs that ended right, of the other runs.
        harmed: Runs that ended wrong, of those with a right first candidate or right given code.
        rounds: Runs by number of rounds.
        errors: Runs by the error of a wrong first candidate, the most frequent first.
        outcomes: Outcome -> number of runs.
        evidence: Kind of evidence of the last verdict -> number of runs.
        timeouts: Ids of tasks whose candidate timed out in grading; it counts as wrong.
        sandbox_breakers: Ids of tasks whose candidate broke the sandbox, in the run or in grading; it counts as wrong.
        spent: What all counted runs spent.
        pass_at: pass@k, up to the number of seeds.
        calibration: Calibration of the final confidence; `None` without runs.
        tests: Correctness of generated tests; `None` if no run assessed one.
    """

    arm: str
    tasks: int
    seeds: int
    runs: int
    faults: int
    ungraded: int
    solved: SolvedShare
    claimed: Ratio
    false_claims: Ratio
    forged: Ratio
    unclaimed_right: Ratio
    first_pass: Ratio
    healed: Ratio
    harmed: Ratio
    rounds: tuple[Rounds, ...]
    errors: tuple[ErrorClass, ...]
    outcomes: Mapping[str, int]
    evidence: Mapping[str, int]
    timeouts: tuple[str, ...]
    sandbox_breakers: tuple[str, ...]
    spent: RunSpending
    pass_at: tuple[PassAt, ...]
    calibration: Calibration | None
    tests: GeneratedTests | None

    @property
    def unknown(self) -> Ratio:
        """Runs that no metric counts, of all runs."""
        return Ratio(count=self.faults + self.ungraded, of=self.runs)


NO_VISIBLE_FAILURE = "none seen"
"""The error class of a first candidate that is wrong although no visible check says so."""
NO_CANDIDATE = "no candidate"
"""The error class of a run that proposed none, such as one whose replies held no code."""


def compute_arm_metrics(arm: str, rows: Sequence[BenchmarkRow]) -> ArmMetrics:
    """Compute all metrics of one arm."""
    known = [row for row in rows if row.solved() is not None]
    right = [row for row in known if row.solved()]
    said = [row for row in known if claims_success(row)]
    first = [(row, passed) for row in known if (passed := _passed_at_first(row)) is not None]
    failed = [row for row, passed in first if not passed]
    faults = sum(_faulty(row) for row in rows)
    return ArmMetrics(
        arm=arm,
        tasks=len({row.problem for row in rows}),
        seeds=len({row.seed for row in rows}),
        runs=len(rows),
        faults=faults,
        ungraded=len(rows) - len(known) - faults,
        solved=_solved(rows),
        claimed=Ratio(count=len(said), of=len(known)),
        false_claims=_count(not row.solved() for row in said),
        forged=_count(row.forged for row in said if row.forged is not None),
        unclaimed_right=_count(bool(row.solved()) for row in known if not claims_success(row)),
        first_pass=_count(passed for _, passed in first),
        healed=_count(bool(row.solved()) for row in failed),
        harmed=_count(not row.solved() for row in known if _right_at_first(row)),
        rounds=_rounds(known),
        errors=_errors(failed),
        outcomes=_tally(row.outcome for row in known),
        evidence=_tally(end.grade.evidence for row in known if (end := row.leader()) and end.grade),
        timeouts=tuple(sorted({row.problem for row in rows if _graded_as(row, "timeout")})),
        sandbox_breakers=tuple(
            sorted({row.problem for row in rows if row.sandbox_failure or _graded_as(row, "broke_sandbox")})
        ),
        spent=_spent(known, len(right)),
        pass_at=_pass_at(known),
        calibration=compute_calibration([(r.confidence, bool(r.solved())) for r in known]) if known else None,
        tests=_tests(known),
    )


def claims_success(row: BenchmarkRow) -> bool:
    """Return whether the run told the user that the result is right."""
    return row.outcome in ("healed", "nothing_to_heal")


def scores_by_task(rows: Iterable[BenchmarkRow]) -> dict[str, dict[int, float]]:
    """Return task -> seed -> 1 if it was solved, else 0; runs without a result are left out."""
    scores: dict[str, dict[int, float]] = {}
    for row in rows:
        solved = row.solved()
        if solved is not None:
            scores.setdefault(row.problem, {})[row.seed] = float(solved)
    return scores


def estimate_task_share(scores: Sequence[Sequence[float]]) -> Interval | None:
    """Return a share of tasks with its 95% interval; `None` without tasks.

    The interval is exact (Clopper and Pearson) with one seed per task, and otherwise a bootstrap over tasks
    and seeds. If all scores are equal it is exact too, because a bootstrap would have no width.
    """
    if not scores:
        return None
    values = {score for task in scores for score in task}
    if len(values) == 1 or all(len(task) == 1 for task in scores):
        return exact_interval(sum(task[0] == 1 for task in scores), len(scores))
    return bootstrap_difference([[0.0]] * len(scores), scores)


def _solved(rows: Sequence[BenchmarkRow]) -> SolvedShare:
    scores = [list(seeds.values()) for seeds in scores_by_task(rows).values()]
    flat = [score for task in scores for score in task]
    known = [row for row in rows if row.solved() is not None]
    return SolvedShare(
        tokens=rows[0].cap,
        runs=Ratio(count=int(sum(flat)), of=len(flat)),
        tasks=len(scores),
        share=estimate_task_share(scores),
        completion_tokens=mean(row.completion_tokens for row in known) if known else 0.0,
        prompt_tokens=mean(row.prompt_tokens for row in known) if known else 0.0,
    )


def _is_right(step: CandidateStep) -> bool | None:
    """Return whether a candidate passes the hidden checks; `None` if that is not known."""
    return None if step.grade is None or step.grade.status == "infra" else step.grade.right


def _passed_at_first(row: BenchmarkRow) -> bool | None:
    """Return whether the first candidate is right; without candidates, whether the given code was."""
    first = row.first_proposed()
    return bool(row.solved()) if first is None else _is_right(first)


def _right_at_first(row: BenchmarkRow) -> bool:
    first = row.first_proposed()
    given = (step for step in row.steps if step.origin == "user")
    return any(_is_right(step) for step in (*given, *([first] if first else [])))


def _faulty(row: BenchmarkRow) -> bool:
    end = row.leader()
    return bool(row.fault) or bool(end and end.grade and end.grade.status == "infra")


def _graded_as(row: BenchmarkRow, status: GradeStatus) -> bool:
    return any(step.grade is not None and step.grade.status == status for step in row.steps)


def _rounds(rows: Sequence[BenchmarkRow]) -> tuple[Rounds, ...]:
    took: dict[int, list[bool]] = {}
    for row in rows:
        rounds = max((step.round + 1 for step in row.steps), default=0)
        took.setdefault(rounds, []).append(bool(row.solved()))
    return tuple(Rounds(rounds=n, runs=_count(took[n])) for n in sorted(took))


def _errors(failed: Sequence[BenchmarkRow]) -> tuple[ErrorClass, ...]:
    seen: dict[str, list[bool]] = {}
    for row in failed:
        first = row.first_proposed()
        error = NO_CANDIDATE if first is None else first.error or NO_VISIBLE_FAILURE
        seen.setdefault(error, []).append(bool(row.solved()))
    found = (ErrorClass(error=error, healed=_count(ends)) for error, ends in seen.items())
    return tuple(sorted(found, key=lambda one: (-one.healed.of, one.error)))


def _spent(rows: Sequence[BenchmarkRow], solved: int) -> RunSpending:
    priced = [row.cost_usd for row in rows if row.cost_usd is not None]
    return RunSpending(
        solved=solved,
        completion_tokens=sum(row.completion_tokens for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        calls=sum(row.calls for row in rows),
        seconds=sum(row.seconds for row in rows),
        model_s=sum(row.model_s for row in rows),
        cost_usd=sum(priced) if len(priced) == len(rows) else None,
    )


def _tests(rows: Sequence[BenchmarkRow]) -> GeneratedTests | None:
    written = [test for row in rows for test in row.tests]
    known = [(test, test.right) for test in written if test.right is not None]
    if not written:
        return None
    return GeneratedTests(
        decided=_count(right for test, right in known if test.decided),
        others=_count(right for test, right in known if not test.decided),
        unknown=len(written) - len(known),
        calibration=compute_calibration([(test.trust, right) for test, right in known]) if known else None,
    )


def _pass_at(rows: Sequence[BenchmarkRow]) -> tuple[PassAt, ...]:
    draws = [list(seeds.values()) for seeds in scores_by_task(rows).values()]
    found = []
    for k in range(1, max(map(len, draws), default=0) + 1):
        enough = [d for d in draws if len(d) >= k]
        share = mean(pass_at_k(len(d), int(sum(d)), k) for d in enough)
        found.append(PassAt(k=k, share=share, tasks=len(enough)))
    return tuple(found)


def _count(holds: Iterable[bool]) -> Ratio:
    found = list(holds)
    return Ratio(count=sum(found), of=len(found))


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())
