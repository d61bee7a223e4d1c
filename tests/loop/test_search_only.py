"""Runs with `model.name = none`, and tests that no change of the code can satisfy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, WriteOptions, fork_from_iteration, heal, solve
from suture.api.past_runs import find_step_after_search
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.ledger.event import encode_payload
from suture.core.ledger.kinds import MovesDecided, SearchEnding, SearchFinished
from suture.core.records import Move, Result
from suture.core.settings import (
    CertificationSettings,
    LoopSettings,
    ModelSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.core.settings.setting_changes import override_settings
from suture.errors import PrerequisiteError
from suture.interfaces.narrative.result_text import caution_lines
from suture.interfaces.narrative.run_progress_text import ProgressNarrator, render_short_result
from suture.interfaces.narrative.run_story import run_as_text
from suture.judge.triage.suspect_tests import endless_loops
from suture.models import NO_MODEL
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)
CODE = "def add(a, b):\n    return a - b\n"
SATISFIABLE_TEST = "from sums import add\n\n\ndef test_fine():\n    assert add(1, 2) == 3\n"
UNSATISFIABLE_TEST = "from sums import add\n\n\ndef test_never():\n    assert add(1, 2) == 'no sum is this'\n"
MALFORMED_TEST = f"{SATISFIABLE_TEST}\n\ndef test_torn(:\n    assert add(2, 2) == 4\n"
ENDLESS_TEST = f"{SATISFIABLE_TEST}\n\ndef test_endless():\n    n = 0\n    while True:\n        n += 1\n"


async def run_heal(folder: Path, tests: str, sandbox: BubblewrapSandbox) -> Result:
    """Heal a small project without any model."""
    project = folder / "project"
    project.mkdir()
    (project / "sums.py").write_text(CODE)
    (project / "test_sums.py").write_text(tests)
    return await heal(project, HealOptions(test=BARE_PYTEST, settings=make_settings(folder), sandbox=sandbox))


def make_settings(folder: Path, **overrides: object) -> Settings:
    """Return settings without a model and, for speed, without certification."""
    defaults = {
        "model": ModelSettings(name=NO_MODEL),
        "paths": PathSettings(home=folder / "home", cache=folder / "cache"),
        "sandbox": SandboxSettings(test_timeout_s=90),
        "certification": CertificationSettings(seconds=0),
    }
    return Settings.model_validate({**defaults, **overrides})


async def test_a_repair_found_by_the_search_heals(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    result = await run_heal(tmp_path, SATISFIABLE_TEST, sandbox)
    assert result.outcome == "healed"


async def test_a_search_without_a_repair_ends_not_healed(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    result = await run_heal(tmp_path, UNSATISFIABLE_TEST, sandbox)
    assert result.outcome == "not_healed"
    assert result.reason.code == "no_model"
    assert (result.spend.attempts, result.spend.model_calls) == (0, 0)
    (ledger,) = (tmp_path / "home" / "runs").glob("*/ledger.jsonl")
    assert read_ledger(ledger).events[-1].kind == "run.finished"


@pytest.mark.parametrize(("passing_test", "breaks"), [("add(3, 0) == 3", False), ("add(4, 2) == 2", True)])
async def test_the_closest_edit_is_shown_as_no_repair_if_it_breaks_no_test(
    tmp_path: Path, sandbox: BubblewrapSandbox, passing_test: str, breaks: bool
) -> None:
    never = UNSATISFIABLE_TEST.partition("\n\n\n")[2]
    result = await run_heal(
        tmp_path, f"{SATISFIABLE_TEST}\n\n{never}\n\ndef test_kept():\n    assert {passing_test}\n", sandbox
    )

    run = find_run(tmp_path / "home", result.run_id)
    lines = [line for line in render_short_result(result, run) if "Closest edit" in line]
    page = [text for text in caution_lines(result, run, suggest_commands=False) if "Closest edit" in text]
    assert (result.outcome, result.diff) == ("not_healed", "")
    assert len(lines) == len(page) == (0 if breaks else 1)
    if not breaks:
        assert "not a repair: 1 of 2 failing tests passes" in lines[0]
        assert f"suture show {run.id}" in lines[0]
        assert "+    return a + b" in page[0]
        assert "+    return a + b" in run_as_text(run)


async def test_a_fork_does_not_repeat_a_search_that_found_nothing(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    result = await run_heal(tmp_path, UNSATISFIABLE_TEST, sandbox)
    repaired = ScriptedModel(["```python\ndef add(a, b):\n    return 'no sum is this'\n```"])

    forked = await fork_from_iteration(
        result.run_id, settings=make_settings(tmp_path), model=repaired, sandbox=sandbox
    )

    assert forked.outcome == "healed", forked.reason
    events = read_ledger(find_run(tmp_path / "home", forked.run_id).ledger_path).events
    assert [event.data["from_run"] for event in events if event.kind == "search.finished"] == [result.run_id]
    narrator = ProgressNarrator()
    lines = [line for event in events for line in narrator.lines_for(event)]
    assert any("found no repair and is not repeated" in line for line in lines)

    # The steps of a fork begin with the one that it started from: it has no step before the search.
    again = await fork_from_iteration(
        forked.run_id,
        changes={"repair.seed": 2},
        settings=make_settings(tmp_path),
        model=repaired,
        sandbox=sandbox,
    )
    assert again.outcome == "healed", again.reason


@pytest.mark.parametrize(
    ("changes", "ending", "step"),
    [
        ({}, "all_tried", 1),
        ({}, "time_over", 1),
        ({}, "workers_lost", 0),  # The user may have repaired the machine.
        ({}, "no_failing_test", 0),
        ({"budget.seconds": 1800}, "all_tried", 1),
        ({"budget.seconds": 1800}, "time_over", 0),
        ({"budget.seconds": 300}, "time_over", 1),
        ({"repair.seed": 2}, "all_tried", 0),
        ({"repair.seed": 0}, "all_tried", 1),  # as before
    ],
)
def test_a_fork_repeats_a_search_only_if_a_setting_may_change_what_it_finds(
    changes: dict[str, object], ending: SearchEnding, step: int
) -> None:
    payloads = (
        MovesDecided(decision=1, moves=(Move(kind="mutate"),)),
        SearchFinished(ending=ending),
        MovesDecided(decision=2, moves=(Move(kind="stop", outcome="not_healed"),)),
    )
    events = [
        Event(seq=seq, time_s=0.0, kind=payload.event_kind, data=encode_payload(payload))
        for seq, payload in enumerate(payloads)
    ]
    recorded = Settings()
    changed = override_settings(recorded, changes)
    assert find_step_after_search(events, recorded, changed) == step
    if ending == "time_over":
        assert find_step_after_search(events, recorded, changed, drops_model=True) == 0


async def test_a_run_that_needs_a_model_is_refused_without_one(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="code is written by a model"):
        await solve(
            "Write double(n).",
            WriteOptions(asserts="assert double(2) == 4", settings=make_settings(tmp_path)),
        )
    (tmp_path / "sums.py").write_text(CODE)
    (tmp_path / "test_sums.py").write_text(SATISFIABLE_TEST)
    with pytest.raises(PrerequisiteError, match="the search is off"):
        await heal(
            tmp_path,
            HealOptions(
                test=BARE_PYTEST, settings=make_settings(tmp_path, repair=RepairSettings(enabled=False))
            ),
        )

    with pytest.raises(PrerequisiteError, match="this recipe makes no small edits"):
        await heal(
            tmp_path,
            HealOptions(
                test=BARE_PYTEST, settings=make_settings(tmp_path, loop=LoopSettings(recipe="greedy"))
            ),
        )


async def test_a_test_file_that_is_not_python_is_reported(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    result = await run_heal(tmp_path, MALFORMED_TEST, sandbox)
    assert (result.outcome, result.cause) == ("not_a_code_fault", "suspect_test")
    assert "test_sums.py is not valid Python, line 8: SyntaxError" in result.reason.detail


@pytest.mark.heavy
async def test_a_test_with_an_endless_loop_is_reported_before_the_suite_runs(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    result = await run_heal(tmp_path, ENDLESS_TEST, sandbox)
    assert (result.outcome, result.cause) == ("not_a_code_fault", "suspect_test")
    assert "test_sums.py::test_endless: its own loop at line 10 has no end" in result.reason.detail
    (ledger,) = (tmp_path / "home" / "runs").glob("*/ledger.jsonl")
    assert "candidate.checked" not in {event.kind for event in read_ledger(ledger).events}


def test_a_loop_that_may_end_is_not_endless() -> None:
    statements = ("break", "return", "add(1, 2)", "assert n", "d[n]", "raise ValueError")
    for statement in statements:
        tree = ast.parse(f"def test_a(d):\n    n = 0\n    while True:\n        n += 1\n        {statement}\n")
        assert not list(endless_loops(tree)), statement
    tree = ast.parse("class TestA:\n    def test_b(self):\n        while 1:\n            print('on')\n")
    assert list(endless_loops(tree)) == [("TestA::test_b", 3)]
