"""Mutants are tried in a process that has collected the tests, and by the command where such a trial may differ."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import AsyncIterator, Mapping

import pytest

from judge.conftest import PYTEST
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.coverage.coverage_run import measure_coverage
from suture.judge.mutation_testing.mutant_runs import open_mutant_detector
from suture.judge.trials.changed_code import open_changed_code
from suture.sandbox import BubblewrapSandbox, RunRequest, RunResult, Sandbox, discover_interpreter

CODE = """def price(amount):
    \"\"\"Return what some things cost.\"\"\"
    total = 0
    while amount > 0:
        total += 3
        amount -= 1
    return total

def label(amount):
    return f"{price(amount)} EUR"

def fee():
    return 5

FEE = fee()
"""
TESTS = """import shop

def test_price(): assert shop.price(2) == 6
def test_label(): assert shop.label(1) == "3 EUR"
def test_fee(): assert shop.FEE == 5
"""
FIXED = "test_shop.py::test_price"


class CountingSandbox(BubblewrapSandbox):
    """A sandbox that counts the runs of the command."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    async def run(self, request: RunRequest) -> RunResult:
        """Count a run."""
        self.runs += 1
        return await super().run(request)


@pytest.fixture
async def counting(sandbox: Sandbox) -> AsyncIterator[CountingSandbox]:
    counting = CountingSandbox()
    yield counting
    await counting.close()


async def _prepare(sandbox: Sandbox, files: Mapping[str, str]) -> Suite:
    contents = {path: text.encode() for path, text in files.items()}
    task = Task(statement="", kind="heal", files=contents, test_command=tuple(shlex.split(PYTEST)))
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    return await prepare_suite(task, sandbox, SandboxSettings(), interpreter)


async def _find_noticed(suite: Suite, change: str, *mutants: str) -> list[bool]:
    verdict = await check_candidate(Candidate(files={"shop.py": change}, origin="repair"), suite)
    if isinstance(suite.sandbox, CountingSandbox):
        suite.sandbox.runs = 0
    async with open_mutant_detector(suite, {"shop.py": change}, verdict, [FIXED]) as find_noticed:
        return await find_noticed([{"shop.py": mutant} for mutant in mutants])


async def test_mutants_of_a_function_run_without_the_command(counting: CountingSandbox) -> None:
    suite = await _prepare(counting, {"shop.py": CODE.replace("+= 3", "+= 4"), "test_shop.py": TESTS})
    began_s = time.monotonic()

    noticed = await _find_noticed(
        suite,
        CODE,
        CODE.replace("+= 3", "+= 2"),
        CODE.replace("EUR", "USD"),  # noticed by another test than the fixed one
        CODE.replace("> 0", "!= 0"),
        CODE.replace("amount -= 1", "amount += 1"),  # never ends
    )

    assert noticed == [True, True, False, True]
    assert counting.runs == 0
    assert time.monotonic() - began_s < 60


async def test_a_mutant_of_what_an_import_runs_is_run_by_the_command(counting: CountingSandbox) -> None:
    suite = await _prepare(counting, {"shop.py": CODE.replace("+= 3", "+= 4"), "test_shop.py": TESTS})

    noticed = await _find_noticed(
        suite,
        CODE,
        CODE.replace("return 5", "return 6"),  # a function that the module itself calls
        CODE.replace("amount):\n    return f", "amount=1):\n    return f"),
        CODE.replace("what some things cost", "a price"),  # the same code
    )

    assert noticed == [True, False, False]
    assert counting.runs > 0


async def test_what_a_mutant_leaves_in_a_file_does_not_have_the_next_one_noticed(sandbox: Sandbox) -> None:
    code = "from pathlib import Path\n\ndef save(value):\n    Path('state.txt').write_text(str(value + 0))\n"
    tests = (
        "from pathlib import Path\nimport shop\n\n"
        "def test_price():\n"
        "    assert Path('state.txt').read_text() == '1'\n"
        "    shop.save(1)\n"
        "    assert Path('state.txt').read_text() == '1'\n"
    )
    files = {"shop.py": code.replace("+ 0", "+ 7"), "test_shop.py": tests, "state.txt": "1"}
    suite = await _prepare(sandbox, files)

    noticed = await _find_noticed(suite, code, code.replace("+ 0", "+ 1"), code.replace("+ 0", "- 0"))

    assert noticed == [True, False]


@pytest.mark.parametrize(("fixed", "further_runs"), [([FIXED, "test_shop.py::test_label"], 0), ([FIXED], 1)])
async def test_the_command_measures_coverage_if_the_fixed_tests_do_not_run_the_whole_change(
    counting: CountingSandbox, fixed: list[str], further_runs: int
) -> None:
    suite = await _prepare(
        counting, {"shop.py": CODE.replace("+= 3", "+= 4").replace("EUR", "USD"), "test_shop.py": TESTS}
    )
    change, runs = {"shop.py": CODE}, counting.runs

    async with open_changed_code(suite, change, fixed, fixed) as code:
        result = await measure_coverage(
            suite, {**suite.task.files, "shop.py": CODE.encode()}, fixed=fixed, code=code
        )

    assert result.covered == result.changed == {"shop.py": (5, 10)}
    assert counting.runs == runs + further_runs
