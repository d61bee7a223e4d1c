"""Tests that a run wrote for itself are tried on the reference once it has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scenario.scripted_roles import ScriptedRoles
from scenario.test_recipes import HELPFUL
from scenario.test_runs_with_generated_tests import GOOD_TESTS, RIGHT, TASK, fence_code
from suture.bench import Problem
from suture.bench.grading.hidden_checks import Grade
from suture.bench.reports import build_report, render_markdown_report
from suture.bench.rows import BenchmarkRow
from suture.bench.running.evaluation import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.sandbox import Sandbox

REFERENCE = "def largest(items):\n    return max(items)\n"


async def row_of(tests: str, sandbox: Sandbox, home: Path) -> BenchmarkRow:
    settings = Settings()
    paths = settings.paths.model_copy(update={"home": home})
    job = EvaluationJob(
        problem=Problem(
            id="made/1",
            dataset="made",
            kind="write",
            statement=TASK,
            entry_point="largest",
            hidden="assert largest([-5, -2]) == -2\n",
            reference=REFERENCE,
            licence="none",
            source="here",
        ),
        arm="dual_oracle",
        model="scripted:it",
        seed=0,
        cap=100_000,
        regime="visible",
        reference=Grade(status="right"),
    )
    model = ScriptedRoles({**HELPFUL, "coder": RIGHT, "spec_tester": [tests], "adversarial_tester": [tests]})
    return await evaluate(
        job,
        model=model,
        settings=settings.model_copy(update={"paths": paths}),
        sandbox=sandbox,
        judge=sandbox,
    )


async def test_tests_that_decided_and_are_right(tmp_path: Path, sandbox: Sandbox) -> None:
    made = await row_of(GOOD_TESTS, sandbox, tmp_path)
    assert made.fault == ""
    assert {test.right for test in made.tests} == {True}
    assert any(test.decided for test in made.tests)
    report = render_markdown_report(build_report([made, replace(made, arm="greedy", tests=())]))
    assert "Generated tests against the reference" in report
    assert "| greedy | not measured |" in report


async def test_a_wrong_test_is_told_from_right_ones(tmp_path: Path, sandbox: Sandbox) -> None:
    mixed = fence_code(["assert largest([4, 9]) == 9", "assert largest([4, 8]) == 4"])
    made = await row_of(mixed, sandbox, tmp_path)
    assert sorted(str(test.right) for test in made.tests) == ["False", "True"]
    (wrong,) = (test for test in made.tests if test.right is False)
    assert not wrong.decided
