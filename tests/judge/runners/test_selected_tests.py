"""Running selected tests of a project, outside of a verdict."""

from __future__ import annotations

import pytest

from judge.conftest import Prepare

FILES = {
    "count.py": "SEEN = []\n\ndef note(x):\n    SEEN.append(x)\n    return len(SEEN)\n",
    "tests/test_count.py": (
        "import time\nfrom count import note\n\n"
        "def test_first():\n    assert note(1) == 1\n\n"
        "def test_alone():\n    assert note(2) == 1\n\n"
        "def test_slow():\n    time.sleep(60)\n"
    ),
}
FIRST, ALONE, SLOW = (f"tests/test_count.py::test_{name}" for name in ("first", "alone", "slow"))


async def test_only_selected_tests_run(prepare: Prepare) -> None:
    suite = await prepare(FILES)
    outcomes = await suite.command.run_selected(suite.task.files, [FIRST, ALONE])
    assert {o.check_id: o.status for o in outcomes} == {FIRST: "passed", ALONE: "failed"}
    (alone,) = await suite.command.run_selected(suite.task.files, [ALONE])
    assert alone.status == "passed"


@pytest.mark.heavy
async def test_a_test_that_does_not_end_is_stopped_at_the_limit(prepare: Prepare) -> None:
    suite = await prepare(FILES)
    (slow,) = await suite.command.run_selected(suite.task.files, [SLOW], wall_s=5)
    assert slow.status == "timeout"
    assert slow.counterexample.exception.startswith("no end within ")


async def test_a_command_other_than_pytest_runs_whole(prepare: Prepare) -> None:
    suite = await prepare({"m.py": "", "tests/run.py": "import sys; sys.exit(3)"}, "python tests/run.py")
    (outcome,) = await suite.command.run_selected(suite.task.files, ["anything"])
    assert (outcome.status, outcome.evidence) == ("failed", "exit_status")


async def test_tests_run_together_and_then_in_isolation(prepare: Prepare) -> None:
    suite = await prepare(FILES)
    run = suite.command.run_together_and_isolated
    together, isolated = await run(suite.task.files, [FIRST, ALONE], [ALONE])
    assert {o.check_id: o.status for o in together} == {FIRST: "passed", ALONE: "failed"}
    assert {o.check_id: o.status for o in isolated} == {ALONE: "passed"}


async def test_a_test_that_ends_its_process_does_not_stop_isolated_tests(prepare: Prepare) -> None:
    files = {**FILES, "tests/test_end.py": "import os\n\ndef test_end():\n    os.abort()\n"}
    suite = await prepare(files)

    together, isolated = await suite.command.run_together_and_isolated(
        suite.task.files, [FIRST, "tests/test_end.py::test_end", ALONE], [FIRST, ALONE]
    )

    assert next(o for o in together if o.check_id == "tests/test_end.py::test_end").status != "passed"
    assert {o.check_id: o.status for o in isolated} == {FIRST: "passed", ALONE: "failed"}
