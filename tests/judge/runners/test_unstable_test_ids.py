"""Tests whose ids differ between runs are still the same tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suture.judge.runners.pytest_report import (
    find_renamed_functions,
    find_unstable_functions,
    map_ids_by_position,
)

Prepare = Callable[..., Any]

CLOCKED = (
    "import time\nimport pytest\nfrom mod import X\n\n"
    "@pytest.mark.parametrize('moment', [str(time.time_ns()), 'fixed'])\n"
    "def test_moment(moment):\n    assert X == 1\n"
)
GIVEN = (
    "import pytest\nfrom mod import CASES\n\n"
    "@pytest.mark.parametrize('case', CASES)\ndef test_case(case):\n    assert case\n"
)


def _encoded(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


async def test_a_time_in_an_id_makes_no_test_missing(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "X = 2\n", "test_mod.py": CLOCKED})
    before = await suite.command.run(suite.task.files)
    after = await suite.command.run(_encoded({"mod.py": "X = 1\n", "test_mod.py": CLOCKED}))
    assert [o.check_id for o in before.outcomes] == [o.check_id for o in after.outcomes]
    assert [o.status for o in before.outcomes] == ["failed", "failed"]
    assert [o.status for o in after.outcomes] == ["passed", "passed"]


async def test_changed_parameters_from_the_code_are_other_tests(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "CASES = [0, 5]\n", "test_mod.py": GIVEN})
    run = await suite.command.run(_encoded({"mod.py": "CASES = [7, 5]\n", "test_mod.py": GIVEN}))
    found = {o.check_id: o.status for o in run.outcomes}
    assert found["test_mod.py::test_case[0]"] == "missing"


async def test_unstable_ids_run_in_isolation(prepare: Prepare) -> None:
    files = {
        "seen.py": "SEEN = []\n",
        "test_seen.py": (
            "import os\nfrom seen import SEEN\n\n"
            "def test_one():\n    SEEN.append(1)\n    assert len(SEEN) == 1\n\n"
            "def test_two():\n    SEEN.append(2)\n    assert len(SEEN) == 1\n"
        ),
    }
    suite = await prepare(files)
    tests = ["test_seen.py::test_one", "test_seen.py::test_two"]
    together, apart = await suite.command.run_together_and_isolated(suite.task.files, tests, tests)
    assert [o.status for o in together] == ["passed", "failed"]
    assert [o.status for o in apart] == ["passed", "passed"]


async def test_one_run_collects_and_judges(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "X = 1\n", "test_mod.py": CLOCKED})
    await suite.command.collect(run=True)
    first = await suite.command.run(suite.task.files)
    names = [o.check_id for o in first.outcomes]
    assert names == list(suite.command._collected.ids)  # a second run would have had the time of its own
    assert first.wall_s > 0


def test_functions_with_as_many_tests_under_other_ids_are_unstable() -> None:
    first = ["t.py::a[1]", "t.py::a[2]", "t.py::b[x]", "t.py::c"]
    again = ["t.py::a[1]", "t.py::a[3]", "t.py::c"]
    assert find_unstable_functions(first, again) == {"t.py::a"}
    assert find_renamed_functions(first, again) == {"t.py::a"}
    assert map_ids_by_position(first, again, {"t.py::a"}) == {"t.py::a[3]": "t.py::a[2]"}
