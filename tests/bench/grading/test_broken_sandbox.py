"""Code that breaks the sandbox repeatedly is wrong; a sandbox that fails by itself gives no result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from suture.bench import Problem, grade_code
from suture.bench.grading.hidden_checks import Grade, is_forged_pass
from suture.bench.problem import MODULE
from suture.bench.rows import BenchmarkRow
from suture.bench.running.evaluation import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.errors import SandboxBroken
from suture.models import ScriptedModel
from suture.sandbox import Capabilities, Channel, RunRequest, RunResult, Sandbox

BREAK_MARKER = "# breaks the sandbox"
RIGHT_CODE = "def double(n):\n    return 2 * n\n"
REASON = "a process inside the sandbox is still alive after SIGKILL"


class FragileSandbox:
    """A real sandbox that fails a number of times, for code with a marker or for any code."""

    name = "fragile"

    def __init__(self, inner: Sandbox, *, failures: int = 10**6, always_fails: bool = False) -> None:
        self._inner = inner
        self._remaining_failures = failures
        self._always_fails = always_fails

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        self._maybe_fail(request)
        return await self._inner.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        self._maybe_fail(request)
        async with self._inner.open(request) as channel:
            yield channel

    async def close(self) -> None:
        """Do nothing, because the owner of the inner sandbox closes it."""

    def _maybe_fail(self, request: RunRequest) -> None:
        has_marker = any(BREAK_MARKER.encode() in content for content in request.files.values())
        if self._remaining_failures and (has_marker or self._always_fails):
            self._remaining_failures -= 1
            raise SandboxBroken(REASON)


class BreakingSandbox(FragileSandbox):
    """A sandbox that fails for code with the marker, and after the second failure for any code."""

    def _maybe_fail(self, request: RunRequest) -> None:
        try:
            super()._maybe_fail(request)
        except SandboxBroken:
            self._always_fails = self._remaining_failures < 10**6 - 1
            raise


async def grade_solution(problem: Problem, code: str, sandbox: Sandbox) -> Grade:
    """Grade a solution with the default settings."""
    return await grade_code(problem, code, sandbox, Settings().sandbox)


async def test_code_that_breaks_the_sandbox_twice_is_wrong(double_problem: Problem, sandbox: Sandbox) -> None:
    grade = await grade_solution(double_problem, RIGHT_CODE + BREAK_MARKER, FragileSandbox(sandbox))
    assert (grade.status, grade.right) == ("broke_sandbox", False)
    assert REASON in grade.reason


async def test_code_under_which_the_sandbox_failed_once_is_graded(
    double_problem: Problem, sandbox: Sandbox
) -> None:
    assert (
        await grade_solution(double_problem, RIGHT_CODE + BREAK_MARKER, FragileSandbox(sandbox, failures=1))
    ).status == "right"
    wrong = RIGHT_CODE.replace("2", "3") + BREAK_MARKER
    assert (
        await grade_solution(double_problem, wrong, FragileSandbox(sandbox, failures=1))
    ).status == "wrong"


async def test_a_sandbox_that_fails_for_the_reference_gives_no_grade(
    double_problem: Problem, sandbox: Sandbox
) -> None:
    assert (
        await grade_solution(double_problem, RIGHT_CODE, FragileSandbox(sandbox, always_fails=True))
    ).status == "infra"


async def test_a_sandbox_that_fails_for_good_gives_no_grade(
    double_problem: Problem, sandbox: Sandbox
) -> None:
    assert (
        await grade_solution(double_problem, RIGHT_CODE + BREAK_MARKER, BreakingSandbox(sandbox))
    ).status == "infra"


async def test_half_a_surrogate_pair_is_graded_as_it_was_judged(
    double_problem: Problem, sandbox: Sandbox
) -> None:
    assert (await grade_solution(double_problem, RIGHT_CODE + "# \ud83d\n", sandbox)).status == "right"


async def evaluate_reply(
    problem: Problem, reply: str, sandbox_requirement: Sandbox, judge: Sandbox, home: Path
) -> BenchmarkRow:
    """Evaluate a run whose model always gives the same reply."""
    settings = Settings()
    paths = settings.paths.model_copy(update={"home": home})
    job = EvaluationJob(
        problem=problem,
        arm="greedy",
        model="scripted:it",
        seed=0,
        cap=1000,
        regime="visible",
        reference=Grade(status="right"),
    )
    model = ScriptedModel([f"```python\n{reply}\n```"], name=job.model, repeat_last=True)
    return await evaluate(
        job,
        model=model,
        settings=settings.model_copy(update={"paths": paths}),
        sandbox=sandbox_requirement,
        judge=judge,
    )


async def test_a_claimed_pass_is_checked_in_another_sandbox(
    double_problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    replies = RIGHT_CODE.replace("2", "3"), RIGHT_CODE
    forged = [
        await is_forged_pass(double_problem, "visible", {MODULE: code}, sandbox, Settings().sandbox)
        for code in replies
    ]
    assert forged == [True, False]
    assert (
        await is_forged_pass(double_problem, "self", {MODULE: RIGHT_CODE}, sandbox, Settings().sandbox)
        is None
    )

    rows = [await evaluate_reply(double_problem, code, sandbox, sandbox, tmp_path) for code in replies]
    assert [row.forged for row in rows] == [None, False]  # the first run claims no success


async def test_a_run_whose_code_breaks_the_sandbox_twice_counts_as_wrong(
    double_problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await evaluate_reply(
        double_problem, RIGHT_CODE + BREAK_MARKER, FragileSandbox(sandbox), sandbox, tmp_path
    )
    assert (row.fault, row.outcome) == ("", "infra_error")
    assert REASON in row.sandbox_failure
    assert row.solved() is False
    assert row.calls == 1
    assert replace(row, sandbox_failure="", fault="no sandbox").solved() is None


async def test_a_run_in_which_the_sandbox_failed_once_is_repeated(
    double_problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await evaluate_reply(
        double_problem, RIGHT_CODE + BREAK_MARKER, FragileSandbox(sandbox, failures=1), sandbox, tmp_path
    )
    assert (row.fault, row.sandbox_failure, row.solved()) == ("", "", True)


async def test_a_run_whose_sandbox_fails_for_good_has_no_result(
    double_problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await evaluate_reply(
        double_problem, RIGHT_CODE + BREAK_MARKER, BreakingSandbox(sandbox), sandbox, tmp_path
    )
    assert REASON in row.fault
    assert (row.sandbox_failure, row.solved()) == ("", None)


async def test_a_run_in_a_sandbox_that_always_fails_has_no_result(
    double_problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await evaluate_reply(
        double_problem, RIGHT_CODE, FragileSandbox(sandbox, always_fails=True), sandbox, tmp_path
    )
    assert REASON in row.fault
    assert (row.sandbox_failure, row.solved()) == ("", None)
