"""Grading can be believed: what is right passes, what is wrong by construction is caught, in every set.

The whole sets are graded by `benchmarks/grading.py`; here is a sample of each.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import replace

import pytest

from requirements import Require
from suture.bench import Problem, grade_code, load_problems
from suture.bench.grading.wrong_solutions import FAULT_KINDS, KNOWS_EXAMPLES, make_wrong_solutions
from suture.core.settings import SandboxSettings
from suture.sandbox import Sandbox

SETTINGS = SandboxSettings(check_timeout_s=60)  # a busy machine is no failure


@pytest.fixture
def double() -> Problem:
    return Problem(
        id="made",
        dataset="made",
        kind="write",
        statement='def double(n):\n    """Twice.\n\n    >>> double(2)\n    4\n    """\n',
        entry_point="double",
        hidden="assert double(3) == 6\nassert double(2) == 4\n",
        reference="def double(n):\n    return 2 * n\n",
        licence="none",
        source="here",
    )


async def test_wrong_solutions_are_caught(double: Problem, sandbox: Sandbox) -> None:
    wrong = make_wrong_solutions(double)
    assert tuple(wrong) == FAULT_KINDS
    grades = {how: await grade_code(double, code, sandbox, SETTINGS) for how, code in wrong.items()}
    assert {how: grade.status for how, grade in grades.items()} == dict.fromkeys(FAULT_KINDS, "wrong")
    assert {grade.evidence for grade in grades.values()} == {"split"}


async def test_behaviour_that_no_test_checks_is_not_caught(double: Problem, sandbox: Sandbox) -> None:
    """The wrong solutions are no tautology: hidden tests that ask only what is visible let one through."""
    weak = {**vars(double), "hidden": "assert double(2) == 4\n"}
    known = make_wrong_solutions(double)[KNOWS_EXAMPLES]
    assert (await grade_code(Problem(**weak), known, sandbox, SETTINGS)).right


@pytest.mark.parametrize("name", ["humaneval", "mbpp", "leetcode", "suture"])
async def test_a_sample_to_write(name: str, sandbox: Sandbox, require: Require) -> None:
    problems = _sample(name, require)
    standings: Counter[str] = Counter()
    for problem in problems:
        codes = list(make_wrong_solutions(problem).values())
        right, *wrong = await asyncio.gather(
            *(grade_code(problem, code, sandbox, SETTINGS) for code in (problem.reference, *codes))
        )
        assert (right.status, right.evidence, right.reason) == ("right", "split", ""), problem.id
        standings.update(grade.status for grade in wrong)
    assert set(standings) == {"wrong"}
    assert standings["wrong"] >= len(problems) * (len(FAULT_KINDS) - 1)


@pytest.mark.parametrize("name", ["quixbugs", "humanevalfix", "suture-heal"])
async def test_a_sample_to_heal(name: str, sandbox: Sandbox, require: Require) -> None:
    problems = _sample(name, require)
    references = [await grade_code(problem, problem.solution, sandbox, SETTINGS) for problem in problems]
    assert [(grade.status, grade.reason) for grade in references] == [("right", "")] * len(problems)
    given = [await grade_code(problem, problem.given, sandbox, SETTINGS) for problem in problems]
    assert {grade.status for grade in given} == {"wrong"}


def _sample(name: str, require: Require) -> list[Problem]:
    if not name.startswith("suture"):
        require("data", "SUTURE_DATA" in os.environ, "SUTURE_DATA is not set")
    problems = [problem for problem in load_problems(name) if name != "suture" or not problem.beside]
    # QuixBugs' first, `bitcount`, never ends, which takes the whole of its time.
    return list(problems[1 :: max(1, len(problems) // 4)][:4])


async def test_cpu_time_limits_follow_the_reference(double: Problem, sandbox: Sandbox) -> None:
    reference = await grade_code(double, double.reference, sandbox, SETTINGS)
    assert reference.cpu_s is not None
    assert 0 < reference.cpu_s < reference.wall_s + 1
    reference = replace(reference, wall_s=10.0)  # a busy machine may let neither compute for a long time
    computes = double.reference + "while True: pass\n"
    waits = "import time\ntime.sleep(5.5)\n" + double.reference
    found = await asyncio.gather(
        *(grade_code(double, code, sandbox, SETTINGS, reference=reference) for code in (computes, waits))
    )
    # Both take longer than five seconds; only the first computes them.
    assert [grade.status for grade in found] == ["timeout", "right"]
    assert "computed for more than 5 s" in found[0].reason


async def test_tests_that_share_a_process_with_the_code_are_timed_by_the_clock(
    double: Problem, sandbox: Sandbox
) -> None:
    live = replace(double, hidden="import solution\nassert solution.double.__code__\n")
    grade = await grade_code(live, double.reference, sandbox, SETTINGS)
    assert (grade.status, grade.evidence, grade.cpu_s) == ("right", "nonce", None)
    slow = replace(grade, wall_s=6.0)  # else it would have to pass within five seconds
    assert (await grade_code(live, double.reference, sandbox, SETTINGS, reference=slow)).right
