"""What the rows of one arm add up to. Computed after the runs, without a model or a sandbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean

from suture.bench.grading.hidden_checks import Standing
from suture.bench.measures.calibration import calibration_of
from suture.bench.measures.figures import (
    ArmMetrics,
    Count,
    ErrorClass,
    GeneratedTests,
    PassAt,
    Rounds,
    Solved,
    Spent,
)
from suture.bench.measures.statistics import Interval, bootstrap_difference, exact_interval, pass_at_k
from suture.bench.rows import Row, Step

NO_VISIBLE_FAILURE = "none seen"
"""The error class of a first candidate that is wrong although no visible check says so."""
NO_CANDIDATE = "no candidate"
"""The error class of a run that proposed none, such as one whose replies held no code."""


def measure(arm: str, rows: Sequence[Row]) -> ArmMetrics:
    """All metrics of one arm.

    Args:
        arm: The name of the recipe that is measured.
        rows: Its rows, at least one, of one dataset, regime, model and cap.
    """
    known = [row for row in rows if row.solved() is not None]
    right = [row for row in known if row.solved()]
    said = [row for row in known if claims(row)]
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
        claimed=Count(count=len(said), of=len(known)),
        false_claims=_count(not row.solved() for row in said),
        forged=_count(row.forged for row in said if row.forged is not None),
        unclaimed_right=_count(bool(row.solved()) for row in known if not claims(row)),
        first_pass=_count(passed for _, passed in first),
        healed=_count(bool(row.solved()) for row in failed),
        harmed=_count(not row.solved() for row in known if _right_at_first(row)),
        rounds=_rounds(known),
        errors=_errors(failed),
        outcomes=_tally(row.outcome for row in known),
        evidence=_tally(end.grade.evidence for row in known if (end := row.leader()) and end.grade),
        timeouts=tuple(sorted({row.problem for row in rows if _graded_as(row, "timeout")})),
        felled=tuple(sorted({row.problem for row in rows if row.felled or _graded_as(row, "broke_sandbox")})),
        spent=_spent(known, len(right)),
        pass_at=_pass_at(known),
        calibration=calibration_of([(r.confidence, bool(r.solved())) for r in known]) if known else None,
        tests=_tests(known),
    )


def claims(row: Row) -> bool:
    """Whether the user was told that it is right."""
    return row.outcome in ("healed", "nothing_to_heal")


def by_task(rows: Iterable[Row]) -> dict[str, dict[int, float]]:
    """Task -> seed -> 1 where it was solved, 0 where not; runs whose truth is not known are left out.

    Args:
        rows: Of one arm and cap.
    """
    scores: dict[str, dict[int, float]] = {}
    for row in rows:
        solved = row.solved()
        if solved is not None:
            scores.setdefault(row.problem, {})[row.seed] = float(solved)
    return scores


def share_of_tasks(scores: Sequence[Sequence[float]]) -> Interval | None:
    """A share over tasks with its 95% interval; `None` of no task.

    Exact (Clopper and Pearson) with one seed for each task, else a bootstrap over tasks and seeds; exact over
    tasks again where all scores are equal, because a bootstrap of those has no width.

    Args:
        scores: Of each task its scores, one for each seed.
    """
    if not scores:
        return None
    values = {score for task in scores for score in task}
    if len(values) == 1 or all(len(task) == 1 for task in scores):
        return exact_interval(sum(task[0] == 1 for task in scores), len(scores))
    return bootstrap_difference([[0.0]] * len(scores), scores)


def _solved(rows: Sequence[Row]) -> Solved:
    scores = [list(seeds.values()) for seeds in by_task(rows).values()]
    flat = [score for task in scores for score in task]
    known = [row for row in rows if row.solved() is not None]
    return Solved(
        tokens=rows[0].cap,
        runs=Count(count=int(sum(flat)), of=len(flat)),
        tasks=len(scores),
        share=share_of_tasks(scores),
        generated=mean(row.generated for row in known) if known else 0.0,
        prompted=mean(row.prompted for row in known) if known else 0.0,
    )


def _is_right(step: Step) -> bool | None:
    """Whether it passes the hidden checks; `None` where that is not known."""
    return None if step.grade is None or step.grade.standing == "infra" else step.grade.right


def _passed_at_first(row: Row) -> bool | None:
    """Whether the first candidate is right. A run that proposed none stands as it ended: right only where the
    given code needed none.
    """
    first = row.first_proposed()
    return bool(row.solved()) if first is None else _is_right(first)


def _right_at_first(row: Row) -> bool:
    first = row.first_proposed()
    given = (step for step in row.steps if step.origin == "user")
    return any(_is_right(step) for step in (*given, *([first] if first else [])))


def _faulty(row: Row) -> bool:
    end = row.leader()
    return bool(row.fault) or bool(end and end.grade and end.grade.standing == "infra")


def _graded_as(row: Row, standing: Standing) -> bool:
    return any(step.grade is not None and step.grade.standing == standing for step in row.steps)


def _rounds(rows: Sequence[Row]) -> tuple[Rounds, ...]:
    took: dict[int, list[bool]] = {}
    for row in rows:
        rounds = max((step.round + 1 for step in row.steps), default=0)
        took.setdefault(rounds, []).append(bool(row.solved()))
    return tuple(Rounds(rounds=n, runs=_count(took[n])) for n in sorted(took))


def _errors(failed: Sequence[Row]) -> tuple[ErrorClass, ...]:
    seen: dict[str, list[bool]] = {}
    for row in failed:
        first = row.first_proposed()
        error = NO_CANDIDATE if first is None else first.error or NO_VISIBLE_FAILURE
        seen.setdefault(error, []).append(bool(row.solved()))
    found = (ErrorClass(error=error, healed=_count(ends)) for error, ends in seen.items())
    return tuple(sorted(found, key=lambda one: (-one.healed.of, one.error)))


def _spent(rows: Sequence[Row], solved: int) -> Spent:
    priced = [row.money for row in rows if row.money is not None]
    return Spent(
        solved=solved,
        generated=sum(row.generated for row in rows),
        prompted=sum(row.prompted for row in rows),
        calls=sum(row.calls for row in rows),
        seconds=sum(row.seconds for row in rows),
        model_s=sum(row.model_s for row in rows),
        money=sum(priced) if len(priced) == len(rows) else None,
    )


def _tests(rows: Sequence[Row]) -> GeneratedTests | None:
    written = [test for row in rows for test in row.tests]
    known = [(test, test.right) for test in written if test.right is not None]
    if not written:
        return None
    return GeneratedTests(
        decided=_count(right for test, right in known if test.decided),
        others=_count(right for test, right in known if not test.decided),
        unknown=len(written) - len(known),
        calibration=calibration_of([(test.trust, right) for test, right in known]) if known else None,
    )


def _pass_at(rows: Sequence[Row]) -> tuple[PassAt, ...]:
    draws = [list(seeds.values()) for seeds in by_task(rows).values()]
    found = []
    for k in range(1, max(map(len, draws), default=0) + 1):
        enough = [d for d in draws if len(d) >= k]
        share = mean(pass_at_k(len(d), int(sum(d)), k) for d in enough)
        found.append(PassAt(k=k, share=share, tasks=len(enough)))
    return tuple(found)


def _count(holds: Iterable[bool]) -> Count:
    found = list(holds)
    return Count(count=sum(found), of=len(found))


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())
