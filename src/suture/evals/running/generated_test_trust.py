"""How far the tests that a run wrote for itself deserved their trust: each is tried on the reference.

Only after the run has ended, and behind a wall that the run did not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suture.evals.grading.hidden import Grade, grade_code
from suture.evals.problem import Problem
from suture.evals.rows import WeighedTest
from suture.ledger import Event, RunFolder, first_of, those_of
from suture.ledger.kinds import RunStarted, TestsAssessed
from suture.sandbox import Sandbox
from suture.settings import SandboxSettings


async def weighed_tests(
    problem: Problem, folder: RunFolder, events: Sequence[Event], judge: Sandbox, settings: SandboxSettings
) -> tuple[WeighedTest, ...]:
    """Every generated test that a run gave a trust, in the order in which it first did.

    Args:
        problem: The task, with its reference.
        folder: The run's folder.
        events: Its ledger.
        judge: A wall that the run did not use.
        settings: The group `sandbox`: time and memory for each program.

    Raises:
        StorageError: The run's settings cannot be read.
    """
    trusts: dict[str, list[float]] = {}
    for _, assessed in those_of(events, TestsAssessed):
        for assessment in assessed.tests:
            trusts.setdefault(assessment.test, []).append(assessment.trust)
    started = first_of(events, RunStarted)
    if not trusts or started is None:
        return ()
    threshold: float = folder.get_json(started.settings)["loop"]["trust_threshold"]
    return tuple(
        [
            WeighedTest(
                trust=earned[-1],
                decided=max(earned) >= threshold,
                right=_right(
                    await grade_code(replace(problem, hidden=source), problem.solution, judge, settings)
                ),
            )
            for source, earned in trusts.items()
        ]
    )


def _right(grade: Grade) -> bool | None:
    return {"right": True, "wrong": False}.get(grade.standing)
