"""Code under which the sandbox fails repeatedly is wrong; a sandbox that fails by itself gives no result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from suture.bench import Problem, grade_code
from suture.bench.grading.hidden_checks import Grade, is_forged_pass
from suture.bench.problem import MODULE
from suture.bench.rows import BenchmarkRow
from suture.bench.running.evaluation import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.errors import SandboxBroken
from suture.models import ScriptedModel
from suture.sandbox import Capabilities, Channel, RunRequest, RunResult, Sandbox

FELLS = "# fells the wall"
RIGHT = "def double(n):\n    return 2 * n\n"
WHY = "something behind the wall still lives after SIGKILL"


class FragileSandbox:
    """A real wall that falls when a program's files hold a mark, so many times; or whatever they hold."""

    name = "fragile"

    def __init__(self, inner: Sandbox, *, falls: int = 10**6, whatever: bool = False) -> None:
        self._inner = inner
        self._falls = falls
        self._whatever = whatever

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        self._may_fall(request)
        return await self._inner.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        self._may_fall(request)
        async with self._inner.open(request) as channel:
            yield channel

    async def close(self) -> None:
        """The inner one is closed by who opened it."""

    def _may_fall(self, request: RunRequest) -> None:
        marked = any(FELLS.encode() in content for content in request.files.values())
        if self._falls and (marked or self._whatever):
            self._falls -= 1
            raise SandboxBroken(WHY)


class BreakingSandbox(FragileSandbox):
    """One that falls under the mark, and the second time for good."""

    def _may_fall(self, request: RunRequest) -> None:
        try:
            super()._may_fall(request)
        except SandboxBroken:
            self._whatever = self._falls < 10**6 - 1
            raise


@pytest.fixture
def problem() -> Problem:
    return Problem(
        id="made/1",
        dataset="made",
        kind="write",
        statement='def double(n):\n    """Twice.\n\n    >>> double(2)\n    4\n    """\n',
        entry_point="double",
        hidden="assert double(3) == 6\nassert double(2) == 4\n",
        reference=RIGHT,
        licence="none",
        source="here",
    )


async def graded(problem: Problem, code: str, sandbox: Sandbox) -> Grade:
    return await grade_code(problem, code, sandbox, Settings().sandbox)


async def test_code_that_breaks_the_sandbox_twice_is_wrong(problem: Problem, sandbox: Sandbox) -> None:
    grade = await graded(problem, RIGHT + FELLS, FragileSandbox(sandbox))
    assert (grade.status, grade.right) == ("broke_sandbox", False)
    assert WHY in grade.reason


async def test_code_under_which_the_sandbox_failed_once_is_graded(problem: Problem, sandbox: Sandbox) -> None:
    assert (await graded(problem, RIGHT + FELLS, FragileSandbox(sandbox, falls=1))).status == "right"
    wrong = RIGHT.replace("2", "3") + FELLS
    assert (await graded(problem, wrong, FragileSandbox(sandbox, falls=1))).status == "wrong"


async def test_a_sandbox_that_fails_for_the_reference_gives_no_grade(
    problem: Problem, sandbox: Sandbox
) -> None:
    assert (await graded(problem, RIGHT, FragileSandbox(sandbox, whatever=True))).status == "infra"


async def test_a_sandbox_that_fails_for_good_gives_no_grade(problem: Problem, sandbox: Sandbox) -> None:
    assert (await graded(problem, RIGHT + FELLS, BreakingSandbox(sandbox))).status == "infra"


async def test_half_a_surrogate_pair_is_graded_as_it_was_judged(problem: Problem, sandbox: Sandbox) -> None:
    assert (await graded(problem, RIGHT + "# \ud83d\n", sandbox)).status == "right"


async def row_of(
    problem: Problem, reply: str, sandbox_requirement: Sandbox, judge: Sandbox, home: Path
) -> BenchmarkRow:
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
    problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    said = RIGHT.replace("2", "3"), RIGHT
    found = [
        await is_forged_pass(problem, "visible", {MODULE: code}, sandbox, Settings().sandbox) for code in said
    ]
    assert found == [True, False]
    assert await is_forged_pass(problem, "self", {MODULE: RIGHT}, sandbox, Settings().sandbox) is None
    rows = [await row_of(problem, code, sandbox, sandbox, tmp_path) for code in said]
    assert [row.forged for row in rows] == [None, False]  # the first claims nothing


async def test_a_run_whose_code_breaks_the_sandbox_twice_counts_as_wrong(
    problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await row_of(problem, RIGHT + FELLS, FragileSandbox(sandbox), sandbox, tmp_path)
    assert (row.fault, row.outcome) == ("", "infra_error")
    assert WHY in row.sandbox_failure
    assert row.solved() is False
    assert row.calls == 1
    assert replace(row, sandbox_failure="", fault="no wall").solved() is None


async def test_a_run_in_which_the_sandbox_failed_once_is_repeated(
    problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await row_of(problem, RIGHT + FELLS, FragileSandbox(sandbox, falls=1), sandbox, tmp_path)
    assert (row.fault, row.sandbox_failure, row.solved()) == ("", "", True)


async def test_a_run_whose_sandbox_fails_for_good_has_no_result(
    problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await row_of(problem, RIGHT + FELLS, BreakingSandbox(sandbox), sandbox, tmp_path)
    assert WHY in row.fault
    assert (row.sandbox_failure, row.solved()) == ("", None)


async def test_a_run_in_a_sandbox_that_always_fails_has_no_result(
    problem: Problem, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = await row_of(problem, RIGHT, FragileSandbox(sandbox, whatever=True), sandbox, tmp_path)
    assert WHY in row.fault
    assert (row.sandbox_failure, row.solved()) == ("", None)
