"""The base run of projects whose tests cannot be collected yet, and of unusual commands."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from judge.conftest import PYTEST, Prepare
from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import check_candidate, prepare_suite
from suture.judge.runners.collection import find_tests_in_reach
from suture.sandbox import Sandbox, discover_interpreter

UNPARSABLE = "def add(a, b:\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TESTS = "from calc import add\n\ndef test_two():\n    assert add(2, 2) == 4\n"


def make_candidate(code: str, path: str = "calc.py") -> Candidate:
    return Candidate(files={path: code}, origin="sample")


BASE = Candidate(files={}, origin="user")


def get_statuses(verdict: Verdict) -> dict[str, str]:
    return {o.check_id: o.status for o in verdict.outcomes}


@pytest.mark.parametrize("folder", ["", "tests/", "deep/er/"])
async def test_a_conftest_that_imports_broken_code_is_an_error_of_its_tests(
    prepare: Prepare, folder: str
) -> None:
    fixture = "import pytest\nfrom calc import add\n@pytest.fixture\ndef two(): return add(1, 1)\n"
    files = {
        "calc.py": UNPARSABLE,
        "pytest.ini": "[pytest]\npythonpath = .\n",
        f"{folder}conftest.py": fixture,
        f"{folder}test_calc.py": "def test_two(two):\n    assert two == 2\n",
    }
    suite = await prepare(files)
    assert suite.test_files == (f"{folder}test_calc.py",)

    broken = await check_candidate(BASE, suite)
    assert get_statuses(broken) == {f"{folder}test_calc.py::test_two": "error"}

    fact = broken.counterexamples[0]
    assert "SyntaxError" in fact.exception
    assert (fact.file, fact.line) == ("calc.py", 1)
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed
    assert not (await check_candidate(make_candidate(WRONG), suite)).all_passed


@pytest.mark.parametrize("code", ["import os\nos._exit(3)\n", "import sys\nsys.exit()\n"])
async def test_code_that_exits_during_collection_is_judged(prepare: Prepare, code: str) -> None:
    suite = await prepare({"calc.py": code, "test_calc.py": TESTS})
    assert set(get_statuses(await check_candidate(BASE, suite))) == {"test_calc.py::test_two"}
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize("base", [WRONG, UNPARSABLE], ids=["wrong", "unparsable"])
async def test_the_root_of_pytest_may_be_a_subfolder(prepare: Prepare, base: str) -> None:
    files = {
        "backend/pytest.ini": "[pytest]\npythonpath = .\n",
        "backend/calc.py": base,
        "backend/test_calc.py": TESTS,
    }
    suite = await prepare(files, f"{PYTEST} backend")
    assert suite.test_files == ("backend/test_calc.py",)

    broken = await check_candidate(BASE, suite)
    assert set(get_statuses(broken)) == {"backend/test_calc.py::test_two"}
    if base == UNPARSABLE:
        assert broken.counterexamples[0].file == "backend/calc.py"
    assert (await check_candidate(make_candidate(RIGHT, "backend/calc.py"), suite)).all_passed


def test_tests_in_reach_of_a_command_are_found() -> None:
    source = b"def test_a(): ...\ndef test_b(): ...\nclass TestC:\n    def test_d(self): ...\n"
    files = dict.fromkeys(("t/test_x.py", "t/node_modules/test_y.py", "u/test_z.py", "v/odd.py"), source)

    def find_reached(*targets: str) -> set[str]:
        return set(find_tests_in_reach(files, targets, ("test_*.py",), ("node_modules",)))

    assert {test.partition("::")[0] for test in find_reached()} == {"t/test_x.py", "u/test_z.py"}
    assert {test.partition("::")[0] for test in find_reached("./t/")} == {"t/test_x.py"}
    assert {test.partition("::")[0] for test in find_reached("v/odd.py", "u")} == {"v/odd.py", "u/test_z.py"}
    assert find_reached("u/test_z.py::test_a[1]") == {"u/test_z.py::test_a"}
    assert find_reached("u/test_z.py::TestC") == {"u/test_z.py::TestC::test_d"}


async def test_deselected_tests_are_not_missing(prepare: Prepare) -> None:
    tests = f"{TESTS}def test_never():\n    assert 0\n"
    suite = await prepare({"calc.py": UNPARSABLE, "test_calc.py": tests}, f"{PYTEST} -k two")
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize(
    "code",
    ["import os\nos._exit(127)\n", "import os\nos.write(2, b'No module named pytest')\nos._exit(1)\n"],
)
@pytest.mark.parametrize("command", [PYTEST, "python test_calc.py"])
async def test_a_candidate_cannot_pretend_that_the_command_is_missing(
    prepare: Prepare, code: str, command: str
) -> None:
    suite = await prepare({"calc.py": WRONG, "test_calc.py": TESTS + "test_two()\n"}, command)
    verdict = await check_candidate(make_candidate(code), suite)
    assert not verdict.all_passed
    assert verdict.counterexamples


async def test_pytest_that_the_project_lacks_is_refused_with_how_to_install_it(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, tmp_path: Path
) -> None:
    venv.create(tmp_path, with_pip=False)
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": str(tmp_path)})
    files = {"calc.py": WRONG.encode(), "test_calc.py": TESTS.encode()}
    task = Task(statement="", kind="heal", files=files, test_command=("python", "-m", "pytest", "-q"))
    with pytest.raises(UsageError, match="No module named pytest") as refusal:
        await prepare_suite(task, sandbox, sandbox_settings, interpreter)
    assert refusal.value.remedy == f"install it there: {interpreter.executable} -m pip install pytest"


DEEP = f"x = {'-' * 60000}1\n"


async def test_deeply_nested_code_is_judged(prepare: Prepare) -> None:
    suite = await prepare({"calc.py": DEEP + WRONG, "test_calc.py": TESTS})
    assert not (await check_candidate(BASE, suite)).all_passed
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize("shebang", ["#!/bin/sh\n", "#!/usr/bin/env python\n"])
async def test_a_script_can_be_the_command(prepare: Prepare, shebang: str) -> None:
    body = "exec python test_calc.py\n" if "sh\n" in shebang else "import test_calc\n"
    files = {"calc.py": WRONG, "test_calc.py": TESTS + "test_two()\n", "run": shebang + body}
    suite = await prepare(files, "./run")
    assert get_statuses(await check_candidate(BASE, suite)) == {"./run": "failed"}
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("./calc.py", "cannot start: .*[Pp]ermission denied"),
        ("sh -c nosuchprogram", "cannot start: .*not found"),
        ("python -m unittest calc", "runs no tests"),
        (f"{PYTEST} --nosuchoption", "cannot start: .*unrecognized arguments: --nosuchoption"),
    ],
)
async def test_a_command_that_tests_nothing_is_refused(
    prepare: Prepare, command: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        await prepare({"calc.py": WRONG, "test_calc.py": TESTS}, command)
