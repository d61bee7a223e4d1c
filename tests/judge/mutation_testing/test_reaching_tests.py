"""Which tests can notice a mutant, because they run the changed function."""

from __future__ import annotations

import shlex

import pytest

from judge.conftest import PYTEST, PYTHON, Prepare
from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.judge.coverage.coverage_run import find_functions_around, find_reaching_tests
from suture.judge.mutation_testing import mutant_runs
from suture.sandbox import Sandbox

CODE = """LIMIT = 5

@cache
def clip(value):
    return min(value, LIMIT)

class Price:
    def label(self):
        def show(value):
            return str(value)
        return show(clip(7))
"""
TESTS = """import subprocess, sys
import prices

def test_clip(): assert prices.clip(7) == 5
def test_label(): assert prices.Price().label() == "5"
def test_limit(): assert prices.LIMIT == 5
def test_failing(): assert prices.clip(7) == 7
def test_program(): subprocess.run([sys.executable, "-c", "import prices"], check=True)
"""


@pytest.mark.parametrize(
    ("line", "functions"),
    [(5, {3}), (10, {9}), (11, {8}), (9, {8})],
)
def test_the_innermost_function_around_a_statement_counts(line: int, functions: set[int]) -> None:
    assert find_functions_around(CODE, [range(line, line + 1)]) == frozenset(functions)


@pytest.mark.parametrize("line", [1, 3, 8])
def test_a_statement_that_an_import_runs_is_in_no_function(line: int) -> None:
    assert find_functions_around(CODE, [range(5, 6), range(line, line + 1)]) is None


async def test_only_tests_that_run_the_changed_function_or_a_program_can_notice(prepare: Prepare) -> None:
    code = "def cache(function):\n    return function\n" + CODE
    suite = await prepare({"prices.py": code, "test_prices.py": TESTS})
    change = {"prices.py": code.replace("min(value, LIMIT)", "min(LIMIT, value)")}
    verdict = await check_candidate(Candidate(files=change, origin="sample"), suite)

    tests = await find_reaching_tests(suite, change, verdict)

    assert tests is not None
    assert {test.partition("::")[2] for test in tests} == {"test_clip", "test_label", "test_program"}


async def test_only_the_projects_files_and_shared_fixtures_are_recorded(prepare: Prepare) -> None:
    tests = """import os, pytest, prices

@pytest.fixture(scope="module")
def label(): return prices.Price().label()

def test_first(label): assert label == "5"
def test_second(label): assert os.path.join(label, label) == "5/5"
"""
    code = "def cache(function):\n    return function\n" + CODE
    suite = await prepare({"prices.py": code, "test_prices.py": tests})
    assert suite.command is not None

    reach = await suite.command.record_reach(suite.task.files)

    assert {path for path, _ in reach.tests_by_place} == {"prices.py", "test_prices.py"}
    assert reach.tests_by_place["prices.py", 5] == {
        "test_prices.py::test_first",
        "test_prices.py::test_second",
    }


async def test_a_check_beside_a_large_suite_notices_mutants(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutant_runs, "MAX_WHOLE_SUITE_TESTS", 0)
    code = "def clip(value):\n    return min(value, 5)\n"
    tests = "import solution\n\ndef test_clip(): assert solution.clip(1) == 1\n"
    task = Task(
        statement="",
        kind="heal",
        files={"solution.py": code.encode(), "test_solution.py": tests.encode()},
        test_command=tuple(shlex.split(PYTEST)),
        checks=(Check(id="limit", provenance="user", source="assert clip(7) == 5"),),
    )
    suite = await prepare_suite(task, sandbox, sandbox_settings, PYTHON)
    change = {"solution.py": code.replace("min(value, 5)", "min(5, value)")}
    verdict = await check_candidate(Candidate(files=change, origin="sample"), suite)
    assert len(verdict.passed) == 2

    async with mutant_runs.open_mutant_detector(suite, change, verdict) as find_noticed:
        assert await find_noticed([{"solution.py": code.replace("5", "6")}]) == [True]
