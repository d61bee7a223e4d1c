"""Tests whose ids differ between runs are recognised as the same tests."""

from __future__ import annotations

from judge.conftest import Prepare
from suture.judge.runners.pytest_report import (
    find_renamed_functions,
    find_unstable_functions,
    map_ids_by_position,
)

TESTS_WITH_TIME = (
    "import time\nimport pytest\nfrom mod import X\n\n"
    "@pytest.mark.parametrize('moment', [str(time.time_ns()), 'fixed'])\n"
    "def test_moment(moment):\n    assert X == 1\n"
)
TESTS_WITH_CASES = (
    "import pytest\nfrom mod import CASES\n\n"
    "@pytest.mark.parametrize('case', CASES)\ndef test_case(case):\n    assert case\n"
)


def encode_files(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


async def test_a_test_with_the_time_in_its_id_is_not_missing(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "X = 2\n", "test_mod.py": TESTS_WITH_TIME})
    before = await suite.command.run(suite.task.files)
    after = await suite.command.run(encode_files({"mod.py": "X = 1\n", "test_mod.py": TESTS_WITH_TIME}))
    assert [o.check_id for o in before.outcomes] == [o.check_id for o in after.outcomes]
    assert [o.status for o in before.outcomes] == ["failed", "failed"]
    assert [o.status for o in after.outcomes] == ["passed", "passed"]


async def test_parameters_changed_by_the_code_are_other_tests(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "CASES = [0, 5]\n", "test_mod.py": TESTS_WITH_CASES})
    run = await suite.command.run(
        encode_files({"mod.py": "CASES = [7, 5]\n", "test_mod.py": TESTS_WITH_CASES})
    )
    statuses = {o.check_id: o.status for o in run.outcomes}
    assert statuses["test_mod.py::test_case[0]"] == "missing"


async def test_tests_run_together_and_in_isolation(prepare: Prepare) -> None:
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

    together, isolated = await suite.command.run_together_and_isolated(suite.task.files, tests, tests)

    assert [o.status for o in together] == ["passed", "failed"]
    assert [o.status for o in isolated] == ["passed", "passed"]


async def test_collecting_and_judging_share_one_run(prepare: Prepare) -> None:
    suite = await prepare({"mod.py": "X = 1\n", "test_mod.py": TESTS_WITH_TIME})
    await suite.command.collect(run=True)
    first = await suite.command.run(suite.task.files)
    names = [o.check_id for o in first.outcomes]
    assert names == list(suite.command._collected.ids)  # a second run would have another time in its ids
    assert first.wall_s > 0


def test_functions_whose_test_ids_changed_are_unstable() -> None:
    first = ["t.py::a[1]", "t.py::a[2]", "t.py::b[x]", "t.py::c"]
    again = ["t.py::a[1]", "t.py::a[3]", "t.py::c"]
    assert find_unstable_functions(first, again) == {"t.py::a"}
    assert find_renamed_functions(first, again) == {"t.py::a"}
    assert map_ids_by_position(first, again, {"t.py::a"}) == {"t.py::a[3]": "t.py::a[2]"}
