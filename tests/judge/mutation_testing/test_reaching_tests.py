"""Which tests can notice a mutant, because they run the changed function."""

from __future__ import annotations

import pytest

from judge.conftest import Prepare
from suture.core.records import Candidate
from suture.judge import check_candidate
from suture.judge.mutation_testing.reaching_tests import find_functions_around, find_reaching_tests

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
