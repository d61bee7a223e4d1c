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
        tokens: The cap: reply tokens that each run could spend.
        runs: Solved runs, of the runs with a result.
        share: Share of tasks with its 95% interval; `None` without tasks.
        completion_tokens: Mean reply tokens of the runs with a result.
        prompt_tokens: Mean prompt tokens of the runs with a result.
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
class PassAt:
    """The unbiased pass@k over the tasks with at least `k` seeds; each seed is a fresh run of the whole arm."""

    k: int
    share: float
    tasks: int


@dataclass(frozen=True, kw_only=True)
class RunSpending:
    """What all runs of an arm spent in total, and how many of them ended right.

    Attributes:
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
        faults: Runs without a result, because the machinery failed in the run or in grading. They count
            nowhere else.
        ungraded: Runs whose result has no grade yet; they count nowhere else.
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
        evidence: Kind of evidence of the final candidate's grade -> number of runs.
        timeouts: Ids of tasks whose candidate timed out in grading; it counts as wrong.
        sandbox_breakers: Ids of tasks whose candidate broke the sandbox, in the run or in grading; it counts as wrong.
        pass_at: pass@k, up to the number of seeds.
        calibration: Calibration of the final confidence; `None` without runs.
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
    evidence: Mapping[str, int]
    timeouts: tuple[str, ...]
    sandbox_breakers: tuple[str, ...]
    spent: RunSpending
    pass_at: tuple[PassAt, ...]
    calibration: Calibration | None

    @property
    def unknown(self) -> Ratio:
        """Runs that no metric counts, of all runs."""
        return Ratio(count=self.faults + self.ungraded, of=self.runs)


def compute_arm_metrics(arm: str, rows: Sequence[BenchmarkRow]) -> ArmMetrics:
    """Compute all metrics of one arm from its rows in one cell, of which there is at least one."""
    counted = [row for row in rows if row.solved() is not None]
    claiming = [row for row in counted if claims_success(row)]
    first_passes = [(row, passed) for row in counted if (passed := _passed_at_first(row)) is not None]
    first_failed = [row for row, passed in first_passes if not passed]
    faults = sum(_has_fault(row) for row in rows)
    timeouts = {row.problem for row in rows if _has_grade(row, "timeout")}
    sandbox_breakers = {
        row.problem for row in rows if row.sandbox_failure or _has_grade(row, "broke_sandbox")
    }
    answers = [(row.confidence, bool(row.solved())) for row in counted]
    return ArmMetrics(
        arm=arm,
        tasks=len({row.problem for row in rows}),
        seeds=len({row.seed for row in rows}),
        runs=len(rows),
        faults=faults,
        ungraded=len(rows) - len(counted) - faults,
        solved=_solved(rows),
        claimed=Ratio(count=len(claiming), of=len(counted)),
        false_claims=_count_true(not row.solved() for row in claiming),
        forged=_count_true(row.forged for row in claiming if row.forged is not None),
        unclaimed_right=_count_true(bool(row.solved()) for row in counted if not claims_success(row)),
        first_pass=_count_true(passed for _, passed in first_passes),
        healed=_count_true(bool(row.solved()) for row in first_failed),
        harmed=_count_true(not row.solved() for row in counted if _was_right_before(row)),
        rounds=_rounds(counted),
        evidence=dict(
            Counter(step.grade.evidence for row in counted if (step := row.best_step()) and step.grade)
        ),
        timeouts=tuple(sorted(timeouts)),
        sandbox_breakers=tuple(sorted(sandbox_breakers)),
        spent=_spent(counted),
        pass_at=_pass_at(counted),
        calibration=compute_calibration(answers) if answers else None,
    )


def claims_success(row: BenchmarkRow) -> bool:
    """Return whether the run told the user that the result is right."""
    return row.outcome in ("healed", "nothing_to_heal")


def scores_by_task(rows: Iterable[BenchmarkRow]) -> dict[str, dict[int, float]]:
    """Return task -> seed -> 1 if it was solved, else 0, for rows of one arm and cap with a result."""
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
    # The share is the difference to an arm that solves nothing.
    return bootstrap_difference([[0.0]] * len(scores), scores)


def _solved(rows: Sequence[BenchmarkRow]) -> SolvedShare:
    scores = [list(seeds.values()) for seeds in scores_by_task(rows).values()]
    run_scores = [score for task in scores for score in task]
    counted = [row for row in rows if row.solved() is not None]
    return SolvedShare(
        tokens=rows[0].cap,  # the same in all rows of a cell
        runs=Ratio(count=int(sum(run_scores)), of=len(run_scores)),
        tasks=len(scores),
        share=estimate_task_share(scores),
        completion_tokens=mean(row.completion_tokens for row in counted) if counted else 0.0,
        prompt_tokens=mean(row.prompt_tokens for row in counted) if counted else 0.0,
    )


def _is_right(step: CandidateStep) -> bool | None:
    """Return whether a candidate passes the hidden checks; `None` if that is not known."""
    return None if step.grade is None or step.grade.status == "infra" else step.grade.right


def _passed_at_first(row: BenchmarkRow) -> bool | None:
    """Return whether the first candidate is right; without one, whether the given code was graded as right."""
    first_step = row.first_proposed()
    return bool(row.solved()) if first_step is None else _is_right(first_step)


def _was_right_before(row: BenchmarkRow) -> bool:
    """Return whether the given code or the first candidate is right."""
    first_step = row.first_proposed()
    return any(_is_right(step) for step in row.steps if step.origin == "user" or step is first_step)


def _has_fault(row: BenchmarkRow) -> bool:
    step = row.best_step()
    return bool(row.fault) or bool(step and step.grade and step.grade.status == "infra")


def _has_grade(row: BenchmarkRow, status: GradeStatus) -> bool:
    return any(step.grade is not None and step.grade.status == status for step in row.steps)


def _rounds(rows: Sequence[BenchmarkRow]) -> tuple[Rounds, ...]:
    solved_by_rounds: dict[int, list[bool]] = {}
    for row in rows:
        # Rounds count from 0, and given code has the round -1.
        rounds = max((step.round + 1 for step in row.steps), default=0)
        solved_by_rounds.setdefault(rounds, []).append(bool(row.solved()))
    return tuple(
        Rounds(rounds=rounds, runs=_count_true(solved)) for rounds, solved in sorted(solved_by_rounds.items())
    )


def _spent(rows: Sequence[BenchmarkRow]) -> RunSpending:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return RunSpending(
        solved=sum(bool(row.solved()) for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        calls=sum(row.calls for row in rows),
        seconds=sum(row.seconds for row in rows),
        model_s=sum(row.model_s for row in rows),
        cost_usd=sum(costs) if len(costs) == len(rows) else None,
    )


def _pass_at(rows: Sequence[BenchmarkRow]) -> tuple[PassAt, ...]:
    scores = [list(seeds.values()) for seeds in scores_by_task(rows).values()]
    results = []
    for k in range(1, max(map(len, scores), default=0) + 1):
        sampled = [draws for draws in scores if len(draws) >= k]
        share = mean(pass_at_k(len(draws), int(sum(draws)), k) for draws in sampled)
        results.append(PassAt(k=k, share=share, tasks=len(sampled)))
    return tuple(results)


def _count_true(values: Iterable[bool]) -> Ratio:
    listed = list(values)
    return Ratio(count=sum(listed), of=len(listed))


BINS = 10
"""As in the literature, so that values of the ECE can be compared."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How well the confidences of some answers agree with the truth.

    Attributes:
        brier: Mean squared error of the confidence; 0 is perfect, 0.25 results from always saying 0.5.
        ece: Expected calibration error: the mean gap of confidence and accuracy over the bins.
        selective: (coverage, accuracy) as the least confident answers are dropped one after the other,
            equally confident ones together.
    """

    brier: float
    ece: float
    selective: tuple[tuple[float, float], ...]


def compute_calibration(answers: Sequence[tuple[float, bool]]) -> Calibration:
    """Compare confidences with the truth, given (confidence in [0, 1], whether it was right) of each answer."""
    if not answers or not all(0 <= confidence <= 1 for confidence, _ in answers):
        raise ValueError("at least one confidence in [0, 1] is needed")
    total = len(answers)
    answers_by_bin: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in answers:
        answers_by_bin[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    most_confident = sorted(answers, key=lambda answer: -answer[0])
    return Calibration(
        brier=mean((confidence - right) ** 2 for confidence, right in answers),
        ece=sum(abs(sum(confidence - right for confidence, right in members)) for members in answers_by_bin)
        / total,
        selective=tuple(
            (count / total, mean(right for _, right in most_confident[:count]))
            for count in range(total, 0, -1)
            if count == total or most_confident[count][0] < most_confident[count - 1][0]
        ),
    )
