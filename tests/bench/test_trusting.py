"""After a run, the tests that it generated are checked against the reference."""

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


async def evaluate_with_tests(tests: str, sandbox: Sandbox, home: Path) -> BenchmarkRow:
    """Evaluate a run whose model generates these tests."""
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


async def test_right_generated_tests_are_recorded_as_right(tmp_path: Path, sandbox: Sandbox) -> None:
    row = await evaluate_with_tests(GOOD_TESTS, sandbox, tmp_path)
    assert row.fault == ""
    assert {test.right for test in row.tests} == {True}
    assert any(test.decided for test in row.tests)

    report = render_markdown_report(build_report([row, replace(row, arm="greedy", tests=())]))
    assert "Generated tests against the reference" in report
    assert "| greedy | not measured |" in report


async def test_a_wrong_generated_test_is_recorded_as_wrong(tmp_path: Path, sandbox: Sandbox) -> None:
    right_and_wrong_tests = fence_code(["assert largest([4, 9]) == 9", "assert largest([4, 8]) == 4"])
    row = await evaluate_with_tests(right_and_wrong_tests, sandbox, tmp_path)
    assert sorted(str(test.right) for test in row.tests) == ["False", "True"]
    (wrong,) = (test for test in row.tests if test.right is False)
    assert not wrong.decided
