"""Projects whose tests cannot be collected yet, and unusual commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from suture.core.records import Candidate, Verdict
from suture.errors import UsageError
from suture.judge import check_candidate
from suture.judge.runners.collection import find_tests_in_reach as in_reach

Prepare = Callable[..., Any]

PYTEST = BARE_PYTEST
TORN = "def add(a, b:\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TESTS = "from calc import add\n\ndef test_two():\n    assert add(2, 2) == 4\n"


def candidate(code: str, path: str = "calc.py") -> Candidate:
    return Candidate(files={path: code}, origin="sample")


BASE = Candidate(files={}, origin="user")


def statuses(verdict: Verdict) -> dict[str, str]:
    return {o.check_id: o.status for o in verdict.outcomes}


@pytest.mark.parametrize("folder", ["", "tests/", "deep/er/"])
async def test_a_conftest_that_imports_broken_code(prepare: Prepare, folder: str) -> None:
    fixture = "import pytest\nfrom calc import add\n@pytest.fixture\ndef two(): return add(1, 1)\n"
    files = {
        "calc.py": TORN,
        "pytest.ini": "[pytest]\npythonpath = .\n",
        f"{folder}conftest.py": fixture,
        f"{folder}test_calc.py": "def test_two(two):\n    assert two == 2\n",
    }
    suite = await prepare(files)
    assert suite.test_files == (f"{folder}test_calc.py",)
    broken = await check_candidate(BASE, suite)
    assert statuses(broken) == {f"{folder}test_calc.py::test_two": "error"}
    fact = broken.counterexamples[0]
    assert "SyntaxError" in fact.exception
    assert (fact.file, fact.line) == ("calc.py", 1)
    assert (await check_candidate(candidate(RIGHT), suite)).all_passed
    assert not (await check_candidate(candidate(WRONG), suite)).all_passed


@pytest.mark.parametrize("code", ["import os\nos._exit(3)\n", "import sys\nsys.exit()\n"])
async def test_code_that_ends_pytest_during_collection(prepare: Prepare, code: str) -> None:
    suite = await prepare({"calc.py": code, "test_calc.py": TESTS})
    assert set(statuses(await check_candidate(BASE, suite))) == {"test_calc.py::test_two"}
    assert (await check_candidate(candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize("base", [WRONG, TORN], ids=["wrong", "torn"])
async def test_pytests_root_below_the_project(prepare: Prepare, base: str) -> None:
    files = {
        "backend/pytest.ini": "[pytest]\npythonpath = .\n",
        "backend/calc.py": base,
        "backend/test_calc.py": TESTS,
    }
    suite = await prepare(files, f"{PYTEST} backend")
    assert suite.test_files == ("backend/test_calc.py",)
    broken = await check_candidate(BASE, suite)
    assert set(statuses(broken)) == {"backend/test_calc.py::test_two"}
    if base == TORN:
        assert broken.counterexamples[0].file == "backend/calc.py"
    assert (await check_candidate(candidate(RIGHT, "backend/calc.py"), suite)).all_passed


def test_tests_that_a_command_reaches() -> None:
    source = b"def test_a(): ...\ndef test_b(): ...\nclass TestC:\n    def test_d(self): ...\n"
    files = dict.fromkeys(("t/test_x.py", "t/node_modules/test_y.py", "u/test_z.py", "v/odd.py"), source)

    def reach(*named: str) -> set[str]:
        return set(in_reach(files, named, ("test_*.py",), ("node_modules",)))

    assert {test.partition("::")[0] for test in reach()} == {"t/test_x.py", "u/test_z.py"}
    assert {test.partition("::")[0] for test in reach("./t/")} == {"t/test_x.py"}
    assert {test.partition("::")[0] for test in reach("v/odd.py", "u")} == {"v/odd.py", "u/test_z.py"}
    assert reach("u/test_z.py::test_a[1]") == {"u/test_z.py::test_a"}
    assert reach("u/test_z.py::TestC") == {"u/test_z.py::TestC::test_d"}


async def test_deselected_tests_are_not_missing(prepare: Prepare) -> None:
    tests = f"{TESTS}def test_never():\n    assert 0\n"
    suite = await prepare({"calc.py": TORN, "test_calc.py": tests}, f"{PYTEST} -k two")
    assert (await check_candidate(candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize(
    "code",
    ["import os\nos._exit(127)\n", "import os\nos.write(2, b'No module named pytest')\nos._exit(1)\n"],
)
@pytest.mark.parametrize("command", [PYTEST, "python test_calc.py"])
async def test_no_candidate_ends_the_run_as_a_command_that_cannot_start(
    prepare: Prepare, code: str, command: str
) -> None:
    suite = await prepare({"calc.py": WRONG, "test_calc.py": TESTS + "test_two()\n"}, command)
    verdict = await check_candidate(candidate(code), suite)
    assert not verdict.all_passed
    assert verdict.counterexamples


DEEP = f"x = {'-' * 60000}1\n"


async def test_code_that_nests_too_deeply_is_judged(prepare: Prepare) -> None:
    suite = await prepare({"calc.py": DEEP + WRONG, "test_calc.py": TESTS})
    assert not (await check_candidate(BASE, suite)).all_passed
    assert (await check_candidate(candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize("mark", ["#!/bin/sh\n", "#!/usr/bin/env python\n"])
async def test_a_script_can_be_run_as_a_command(prepare: Prepare, mark: str) -> None:
    body = "exec python test_calc.py\n" if "sh\n" in mark else "import test_calc\n"
    files = {"calc.py": WRONG, "test_calc.py": TESTS + "test_two()\n", "run": mark + body}
    suite = await prepare(files, "./run")
    assert statuses(await check_candidate(BASE, suite)) == {"./run": "failed"}
    assert (await check_candidate(candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("./calc.py", "cannot start: .*[Pp]ermission denied"),
        ("sh -c nosuchprogram", "cannot start: .*not found"),
        ("python -m unittest calc", "runs no tests"),
        (f"{PYTEST} --nosuchoption", "cannot start: .*"),
    ],
)
async def test_a_command_that_tests_nothing_is_refused(
    prepare: Prepare, command: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        await prepare({"calc.py": WRONG, "test_calc.py": TESTS}, command)
