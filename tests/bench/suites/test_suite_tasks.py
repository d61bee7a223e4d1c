"""Suture's own suite: references pass, while given code and wrong solutions fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import pytest

from suture.bench import build_task, grade_code, load_problems
from suture.bench.problem import MODULE, Problem
from suture.bench.suites import load_suite_tasks
from suture.bench.suites.suite_tasks import SuiteTask
from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import Sandbox

T = TypeVar("T")
TASKS = load_suite_tasks()
pytestmark = pytest.mark.timeout(600)  # some tests grade a hundred programs
SETTINGS = SandboxSettings(check_timeout_s=60)  # a busy machine is no failure
WRITE_PROBLEMS = {problem.entry_point: problem for problem in load_problems("suture")}
HEAL_PROBLEMS = {problem.entry_point: problem for problem in load_problems("suture-heal")}
CATEGORIES = [
    "boundaries",
    "intervals",
    "logs",
    "machines",
    "normalising",
    "projects",
    "text",
    "transforming",
]


def test_the_suite_has_its_documented_size() -> None:
    assert len(WRITE_PROBLEMS) == len(HEAL_PROBLEMS) == len(TASKS) >= 24
    assert sorted(Counter(task.category for task in TASKS).items()) == [(name, 3) for name in CATEGORIES]
    assert {task.category for task in TASKS[:8]} == set(CATEGORIES)
    assert {task.difficulty for task in TASKS} == {1, 2, 3}
    assert all(len(task.wrong) >= 2 for task in TASKS)


@pytest.mark.parametrize(
    "problem", [*WRITE_PROBLEMS.values(), *HEAL_PROBLEMS.values()], ids=lambda problem: problem.id
)
def test_hidden_checks_are_not_shown(problem: Problem) -> None:
    task = build_task(problem)
    assert len(task.checks) >= (3 if problem.kind == "heal" else 2)

    visible_text = task.statement + "".join(check.source for check in task.checks)
    files = {path: text.decode() for path, text in task.files.items()}
    assert not all(files.get(path) == text for path, text in problem.solution.items())
    assert problem.reference not in visible_text

    visible_text += "".join(files.values())
    graded_lines = [line for line in problem.hidden.splitlines() if line.startswith("assert ")]
    assert (
        sum(line in visible_text for line in graded_lines) <= 1 < len(graded_lines)
    )  # at most the check that reports the bug


async def test_references_pass_and_wrong_solutions_fail(sandbox: Sandbox) -> None:
    async def grade_solutions(task: SuiteTask) -> dict[str, tuple[str, str]]:
        changes = (task.bug, *task.wrong)
        codes = {"": task.solution, **{change.why: change.apply_to(task.solution) for change in changes}}
        problem = WRITE_PROBLEMS[task.entry_point]
        grades = {
            fault_kind: await grade_code(problem, code, sandbox, SETTINGS)
            for fault_kind, code in codes.items()
        }
        return {fault_kind: (grade.status, grade.evidence) for fault_kind, grade in grades.items()}

    def expected_grades(task: SuiteTask) -> dict[str, tuple[str, str]]:
        wrong = (change.why for change in (task.bug, *task.wrong))
        return {"": ("right", "split"), **dict.fromkeys(wrong, ("wrong", "split"))}

    actual_grades = await run_four_at_a_time(grade_solutions(task) for task in TASKS)

    assert actual_grades == [expected_grades(task) for task in TASKS]


async def test_code_to_heal_fails_visible_tests_and_its_solution_passes(sandbox: Sandbox) -> None:
    async def check_heal_task(task: SuiteTask) -> tuple[str, bool, bool, bool, bool]:
        problem = HEAL_PROBLEMS[task.entry_point]
        suite = await prepare_suite(build_task(problem), sandbox, SETTINGS)
        given_verdict = await check_candidate(Candidate(files=problem.given_files, origin="user"), suite)
        healed_verdict = await check_candidate(Candidate(files=problem.solution, origin="repair"), suite)
        untouched_grade = await grade_code(problem, {}, sandbox, SETTINGS)
        fixed_grade = await grade_code(problem, problem.solution, sandbox, SETTINGS)
        realistic = bool(given_verdict.passed and given_verdict.failed)
        return task.name, realistic, healed_verdict.all_passed, not untouched_grade.right, fixed_grade.right

    actual_grades = await run_four_at_a_time(check_heal_task(task) for task in TASKS)

    assert actual_grades == [(task.name, True, True, True, True) for task in TASKS]


async def run_four_at_a_time(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines, at most four at a time, and return their results in order."""
    semaphore = asyncio.Semaphore(4)

    async def run(coroutine: Coroutine[Any, Any, T]) -> T:
        async with semaphore:
            return await coroutine

    return list(await asyncio.gather(*map(run, coroutines)))


async def test_a_writing_task_can_use_files_of_its_project(sandbox: Sandbox) -> None:
    problem = WRITE_PROBLEMS["checkout"]
    assert "def percent_off(total, percent):" in problem.statement
    assert build_task(problem).files.keys() == {"prices.py"}

    without_helpers = await grade_code(
        problem, {MODULE: problem.reference, "prices.py": ""}, sandbox, SETTINGS
    )
    assert without_helpers.status == "wrong"
    assert (await grade_code(problem, problem.reference, sandbox, SETTINGS)).right
