"""Commands that read: they show a run from its folder alone, whatever happened to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from suture.core.ledger import Ledger, RawPayload, RunFolder, new_run
from suture.core.records import Candidate, CheckOutcome, Counterexample, Task, Verdict
from suture.testing import FakeClock

Cli = Callable[..., Result]

BROKEN = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"


def write_run(home: Path, *, finish: bool = True) -> RunFolder:
    """A run that healed one function, as the loop writes it."""
    run = new_run(home)
    clock = FakeClock()
    task = Task(statement="make add add", kind="heal", files={"calc.py": BROKEN.encode()})
    candidate = Candidate(files={"calc.py": MENDED}, origin="repair", label="repair 1, minimal, greedy")
    fact = Counterexample(check_id="test_add", call="add(1, 2)", expected="3", actual="-1\x1b[2J")
    failing = Verdict(
        candidate="0" * 64,
        outcomes=(CheckOutcome(check_id="test_add", status="failed", counterexample=fact),),
        evidence="split",
    )
    passing = Verdict(
        candidate=candidate.hash,
        outcomes=(CheckOutcome(check_id="test_add", status="passed"),),
        evidence="split",
    )
    with Ledger(run.ledger_path, clock) as ledger:
        ledger.append(
            RawPayload(
                kind="run.started",
                data={
                    "kind": "heal",
                    "statement": task.statement,
                    "model": "scripted:x",
                    "recipe": "adaptive",
                    "task": run.save_record(task),
                },
            )
        )
        ledger.append(
            RawPayload(kind="task.prepared", data={"checks": 1, "test_command": ["python", "-m", "pytest"]})
        )
        ledger.append(RawPayload(kind="candidate.checked", data=checked(run, failing, "the code as it is")))
        ledger.append(
            RawPayload(
                kind="moves.decided",
                data={"moves": [{"kind": "repair", "reason": {"code": "failing_checks", "count": 1}}]},
            )
        )
        held = ledger.append(
            RawPayload(
                kind="budget.reserved",
                data={
                    "purpose": "repair 0",
                    "attempts": 1,
                    "tokens": 500,
                    "money": 0.1,
                    "role": "coder",
                    "move": "repair",
                },
            )
        )
        clock.advance(2)
        ledger.append(
            RawPayload(
                kind="model.called",
                data={
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "seconds": 2.0,
                    "finish": "stop",
                    "replayed": False,
                },
            )
        )
        ledger.append(
            RawPayload(
                kind="budget.settled",
                data={
                    "reservation": held.seq,
                    "attempts": 1,
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "model_calls": 1,
                    "money": 0.0125,
                },
            )
        )
        ledger.append(
            RawPayload(
                kind="candidate.proposed",
                data={
                    "candidate": candidate.hash,
                    "blob": run.save_record(candidate),
                    "origin": candidate.origin,
                    "label": candidate.label,
                    "files": ["calc.py"],
                },
            )
        )
        ledger.append(RawPayload(kind="candidate.checked", data=checked(run, passing, candidate.label)))
        if finish:
            ledger.append(
                RawPayload(kind="run.finished", data={"outcome": "healed", "reason": {"code": "checks_pass"}})
            )
    return run


def checked(run: RunFolder, verdict: Verdict, label: str) -> dict[str, object]:
    return {
        "candidate": verdict.candidate,
        "label": label,
        "passed": len(verdict.passed),
        "failed": len(verdict.failed),
        "verdict": run.save_record(verdict),
    }


def test_a_run_is_shown_step_by_step(cli: Cli, home: Path) -> None:
    run = write_run(home)
    result = cli("show", "last")
    assert result.exit_code == 0
    shown = result.stdout
    assert f"run {run.id} (ended)" in shown
    assert "make add add" in shown
    assert "scripted, not a model" in shown
    assert "-    return a - b\n" in shown
    assert "+    return a + b\n" in shown
    assert "call: add(1, 2)" in shown
    assert "got: -1\\x1b[2J" in shown
    assert "healed: every trusted check passes" in shown
    assert "spent: 1 attempt, 120 tokens, $0.0125, 2 s" in shown
    assert "  role coder: 1 attempt, 120 tokens, 1 call, $0.0125" in shown
    assert "  move repair: 1 attempt, 120 tokens, 1 call, $0.0125" in shown
    assert "budget." not in shown


def test_a_run_as_json(cli: Cli, home: Path) -> None:
    run = write_run(home)
    shown = json.loads(cli("show", run.id, "--json").stdout)
    assert (shown["run"], shown["state"], shown["outcome"]) == (run.id, "ended", "healed")
    share = {"attempts": 1, "tokens": 120, "model_calls": 1, "money": 0.0125, "unpriced_calls": 0}
    assert shown["spend"] == {
        **share,
        "seconds": 2.0,
        "by_role": {"coder": share},
        "by_move": {"repair": share},
    }
    assert shown["events"][0]["kind"] == "run.started"


def test_a_killed_run_says_so_and_reports_the_torn_line(cli: Cli, home: Path) -> None:
    run = write_run(home, finish=False)
    with run.ledger_path.open("ab") as file:
        file.write(b'{"seq": 9, "ki')
    shown = cli("show").stdout
    assert "(stopped)" in shown
    assert "is incomplete" in shown
    assert json.loads(cli("show", "--json").stdout)["torn_lines"] == [10]


def test_a_run_in_progress_says_so(cli: Cli, home: Path) -> None:
    run = write_run(home, finish=False)
    with Ledger(run.ledger_path):
        assert "the run is still in progress" in cli("show").stdout
    assert "the run is still in progress" not in cli("show").stdout


@pytest.mark.parametrize(
    "line", [{"kind": "some.thing", "data": {"a": 1}}, {"kind": "moves.decided", "data": {"b": 2}}]
)
def test_events_of_another_version_are_shown_as_data(cli: Cli, home: Path, line: dict[str, object]) -> None:
    run = write_run(home)
    with run.ledger_path.open("a") as file:
        file.write(json.dumps({"seq": 10, "time_s": 1e9, **line}) + "\n")
    assert f"{line['kind']} {json.dumps(line['data'])}" in cli("show").stdout


def test_a_missing_blob_is_reported_and_the_story_continues(cli: Cli, home: Path) -> None:
    run = write_run(home)
    for blob in (run.path / "blobs").iterdir():
        blob.unlink()
    shown = cli("show").stdout
    assert "unreadable" in shown
    assert "healed: every trusted check passes" in shown


def test_the_list_of_runs(cli: Cli, home: Path) -> None:
    first, second = write_run(home), write_run(home, finish=False)
    rows = {row.split()[0]: row for row in cli("show", "--list").stdout.splitlines()}
    assert rows.keys() == {first.id, second.id}
    assert "healed" in rows[first.id]
    assert "stopped" in rows[second.id]
    assert {row["run"] for row in json.loads(cli("show", "--list", "--json").stdout)} == rows.keys()


def test_no_runs_yet(cli: Cli) -> None:
    assert cli("show", "--list").exit_code == 0
    result = cli("show")
    assert result.exit_code == 2
    assert "suture run --example" in result.stderr


def test_an_unknown_run_and_a_run_without_a_diff(cli: Cli, home: Path) -> None:
    write_run(home)
    assert cli("show", "nothing-like-it").exit_code == 2
    assert cli("show", "last", "--diff").exit_code == 2


def test_the_diff_alone(cli: Cli, home: Path) -> None:
    run = write_run(home)
    run.write_text("result.diff", "--- a/x\n+++ b/x\n")
    assert cli("show", "last", "--diff").stdout == "--- a/x\n+++ b/x\n"
    assert cli("show", "last", "--full-diff").stdout == "--- a/x\n+++ b/x\n"  # nothing was left out
    (run.path / "full.diff").write_text("--- a/x\n+++ b/x\n@@ more\n")
    assert cli("show", "last", "--full-diff").stdout == "--- a/x\n+++ b/x\n@@ more\n"
    assert cli("show", "last", "--diff").stdout == "--- a/x\n+++ b/x\n"


def test_settings_are_shown_with_their_origin(cli: Cli) -> None:
    result = cli("config", "show", "--set", "loop.samples=7", env={"SUTURE_KEYS_OPENAI": "sk-secret"})
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("loop.samples"))
    assert row.split()[:2] == ["loop.samples", "7"]
    assert "default" not in row
    assert "sk-secret" not in result.output


def test_settings_as_json(cli: Cli) -> None:
    settings = json.loads(cli("config", "show", "--json").stdout)
    assert settings["budget.attempts"] == {"value": "12", "origin": "default"}


@pytest.mark.parametrize("wrong", ["loop.samples", "=3", "loop.sample=3", "loop.samples=many"])
def test_a_wrong_setting_is_a_usage_error(cli: Cli, wrong: str) -> None:
    result = cli("config", "show", "--set", wrong)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
