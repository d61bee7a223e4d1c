"""A candidate cannot change the expected results that tests read from files outside their own folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.conftest import PYTEST, PYTHON, Prepare
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, find_protected_files, prepare_suite
from suture.sandbox import Sandbox

PROJECT = {
    "calc.py": "def double(n):\n    return n\n",
    "shop/__init__.py": "",
    "shop/data/units.json": "{}",
    "cases.json": "[[2, 4]]",
    "golden/table.txt": "4\n",
    "notes.txt": "",
    "test_calc.py": """
import json
from pathlib import Path
from calc import double

HERE = Path(__file__).parent

def test_cases():
    for given, expected in json.loads((HERE / "cases.json").read_text()):
        assert double(given) == expected

def test_golden():
    data = {"data": 2}
    assert f"{double(data['data'])}\\n" == (HERE / f"golden/table.txt").read_text()
""",
}


@pytest.mark.parametrize("path", ["cases.json", "golden/table.txt", "golden/../cases.json"])
async def test_expected_results_do_not_change(prepare: Prepare, path: str) -> None:
    suite = await prepare(PROJECT)
    assert find_protected_files({path: "[[2, 2]]"}, suite) == (path,)


async def test_a_file_that_a_test_opens_is_its_data_whatever_its_name(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    project = {
        "calc.py": "def double(x):\n    return open('calc.rules').read() and x\n",
        "calc.rules": "x",
        "limits.data": "2",
        "test_calc.py": (
            "from calc import double\n\ndef test_double():\n"
            "    with open('lim' + 'its.da' + 'ta') as file:\n        assert double(1) == int(file.read())\n"
        ),
    }
    files = {path: text.encode() for path, text in project.items()}
    task = Task(statement="", kind="heal", files=files, test_command=tuple(PYTEST.split()))
    suite = await prepare_suite(task, sandbox, sandbox_settings, PYTHON, run=True)

    assert find_protected_files({"limits.data": "1", "calc.rules": "y"}, suite) == ("limits.data",)


async def test_a_change_of_expected_results_is_refused_and_named(prepare: Prepare) -> None:
    suite = await prepare(PROJECT)
    cheat = Candidate(files={"cases.json": "[[2, 2]]", "golden/table.txt": "2\n"}, origin="sample")

    verdict = await check_candidate(cheat, suite)

    assert len(verdict.failed) == 2
    refused = [note.subjects for note in verdict.notes if note.code == "protected_file"]
    assert refused == [("cases.json",), ("golden/table.txt",)]


async def test_other_data_and_what_the_user_allows_may_change(prepare: Prepare) -> None:
    suite = await prepare(PROJECT)
    assert find_protected_files({"notes.txt": "x", "shop/data/units.json": "{}", "new.json": ""}, suite) == ()
    allowing = replace(suite, task=replace(suite.task, writable=("cases.json",)))
    assert find_protected_files({"cases.json": "[]"}, allowing) == ()
