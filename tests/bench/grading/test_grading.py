"""Grading accepts right solutions and rejects solutions that are wrong by construction, in every set.

These tests grade a sample of each set; `benchmarks/grading.py` grades the whole sets.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.bench import Problem, grade_code, load_problems
from suture.core.settings import SandboxSettings
from suture.sandbox import Sandbox

SETTINGS = SandboxSettings(check_timeout_s=60)  # a busy machine is no failure
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def wrong_solutions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that makes wrong solutions; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("wrong_solutions")


async def test_wrong_solutions_are_caught(
    double_problem: Problem, sandbox: Sandbox, wrong_solutions: Any
) -> None:
    wrong = wrong_solutions.make_wrong_solutions(double_problem)
    assert tuple(wrong) == wrong_solutions.FAULT_KINDS

    grades = {
        fault_kind: await grade_code(double_problem, code, sandbox, SETTINGS)
        for fault_kind, code in wrong.items()
    }
    assert {fault_kind: grade.status for fault_kind, grade in grades.items()} == dict.fromkeys(wrong, "wrong")
    assert {grade.evidence for grade in grades.values()} == {"split"}


async def test_behaviour_that_no_test_checks_is_not_caught(
    double_problem: Problem, sandbox: Sandbox, wrong_solutions: Any
) -> None:
    """Hidden tests that only repeat the visible example accept one of the wrong solutions."""
    weak_fields = {**vars(double_problem), "hidden": "assert double(2) == 4\n"}
    wrong_code = wrong_solutions.make_wrong_solutions(double_problem)[wrong_solutions.KNOWS_EXAMPLES]
    assert (await grade_code(Problem(**weak_fields), wrong_code, sandbox, SETTINGS)).right


@pytest.mark.parametrize("name", ["humaneval", "mbpp", "leetcode", "suture"])
async def test_references_of_writing_tasks_pass_and_wrong_solutions_fail(
    name: str, sandbox: Sandbox, require: Require, wrong_solutions: Any
) -> None:
    problems = load_sample(name, require)
    statuses: Counter[str] = Counter()

    for problem in problems:
        codes = list(wrong_solutions.make_wrong_solutions(problem).values())
        right, *wrong = await asyncio.gather(
            *(grade_code(problem, code, sandbox, SETTINGS) for code in (problem.reference, *codes))
        )
        assert (right.status, right.evidence, right.reason) == ("right", "split", ""), problem.id
        statuses.update(grade.status for grade in wrong)

    assert set(statuses) == {"wrong"}
    assert statuses["wrong"] >= len(problems) * (len(wrong_solutions.FAULT_KINDS) - 1)


@pytest.mark.parametrize("name", ["quixbugs", "humanevalfix", "suture-heal"])
async def test_references_of_healing_tasks_pass_and_given_code_fails(
    name: str, sandbox: Sandbox, require: Require
) -> None:
    problems = load_sample(name, require)
    references = [await grade_code(problem, problem.solution, sandbox, SETTINGS) for problem in problems]
    assert [(grade.status, grade.reason) for grade in references] == [("right", "")] * len(problems)
    given_grades = [await grade_code(problem, problem.given, sandbox, SETTINGS) for problem in problems]
    assert {grade.status for grade in given_grades} == {"wrong"}


def load_sample(name: str, require: Require) -> list[Problem]:
    """Return up to four problems of a data set."""
    if not name.startswith("suture"):
        require("data", "SUTURE_DATA" in os.environ, "SUTURE_DATA is not set")
    problems = [problem for problem in load_problems(name) if name != "suture" or not problem.beside]
    # The first task of QuixBugs, `bitcount`, never ends and would use its whole time limit.
    return list(problems[1 :: max(1, len(problems) // 4)][:4])


async def test_cpu_time_limits_follow_the_reference(double_problem: Problem, sandbox: Sandbox) -> None:
    reference = await grade_code(double_problem, double_problem.reference, sandbox, SETTINGS)
    assert reference.cpu_s is not None
    assert 0 < reference.cpu_s < reference.wall_s + 1

    reference = replace(reference, wall_s=10.0)  # a busy machine may delay both programs for long
    computing_code = double_problem.reference + "while True: pass\n"
    waiting_code = "import time\ntime.sleep(5.5)\n" + double_problem.reference
    both_grades = await asyncio.gather(
        *(
            grade_code(double_problem, code, sandbox, SETTINGS, reference=reference)
            for code in (computing_code, waiting_code)
        )
    )
    # Both programs take longer than five seconds, but only the first uses CPU time.
    assert [grade.status for grade in both_grades] == ["timeout", "right"]
    assert "computed for more than 5 s" in both_grades[0].reason


async def test_tests_that_share_a_process_with_the_code_are_timed_by_the_clock(
    double_problem: Problem, sandbox: Sandbox
) -> None:
    problem_in_process = replace(double_problem, hidden="import solution\nassert solution.double.__code__\n")
    grade = await grade_code(problem_in_process, double_problem.reference, sandbox, SETTINGS)
    assert (grade.status, grade.evidence, grade.cpu_s) == ("right", "nonce", None)

    slow_reference = replace(grade, wall_s=6.0)  # otherwise the code would have to pass within five seconds
    assert (
        await grade_code(
            problem_in_process, double_problem.reference, sandbox, SETTINGS, reference=slow_reference
        )
    ).right
