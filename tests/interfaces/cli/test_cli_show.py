"""Commands that only read show a run from its folder, whatever happened to it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli
from suture.core.ledger import Ledger, RawPayload, RunFolder, new_run
from suture.core.records import Candidate, CheckOutcome, Counterexample, Task, Verdict
from suture.testing import FakeClock

BROKEN_CODE = "def add(a, b):\n    return a - b\n"
FIXED_CODE = "def add(a, b):\n    return a + b\n"


def write_run(home: Path, *, finish: bool = True) -> RunFolder:
    """Write a run that healed one function, with the events that the loop writes."""
    run = new_run(home)
    clock = FakeClock()
    task = Task(statement="make add add", kind="heal", files={"calc.py": BROKEN_CODE.encode()})
    candidate = Candidate(files={"calc.py": FIXED_CODE}, origin="repair", label="repair 1, minimal, greedy")
    failure = Counterexample(check_id="test_add", call="add(1, 2)", expected="3", actual="-1\x1b[2J")
    failing = Verdict(
        candidate="0" * 64,
        outcomes=(CheckOutcome(check_id="test_add", status="failed", counterexample=failure),),
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
        ledger.append(
            RawPayload(kind="candidate.checked", data=make_check_data(run, failing, "the code as it is"))
        )
        ledger.append(
            RawPayload(
                kind="moves.decided",
                data={"moves": [{"kind": "repair", "reason": {"code": "failing_checks", "count": 1}}]},
            )
        )
        reservation = ledger.append(
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
                    "reservation": reservation.seq,
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
        ledger.append(
            RawPayload(kind="candidate.checked", data=make_check_data(run, passing, candidate.label))
        )
        if finish:
            ledger.append(
                RawPayload(kind="run.finished", data={"outcome": "healed", "reason": {"code": "checks_pass"}})
            )
    return run


def make_check_data(run: RunFolder, verdict: Verdict, label: str) -> dict[str, object]:
    """Return the data of a `candidate.checked` event."""
    return {
        "candidate": verdict.candidate,
        "label": label,
        "passed": len(verdict.passed),
        "failed": len(verdict.failed),
        "verdict": run.save_record(verdict),
    }


def test_show_prints_a_run_step_by_step(cli: Cli, home: Path) -> None:
    run = write_run(home)
    result = cli("show", "last")
    assert result.exit_code == 0

    output = result.stdout
    assert f"run {run.id} (ended)" in output
    assert "make add add" in output
    assert "scripted, not a model" in output
    assert "-    return a - b\n" in output
    assert "+    return a + b\n" in output
    assert "call: add(1, 2)" in output
    assert "got: -1\\x1b[2J" in output
    assert "healed: every trusted check passes" in output
    assert "spent: 1 attempt, 120 tokens, $0.0125, 2 s" in output
    assert "  role coder: 1 attempt, 120 tokens, 1 call, $0.0125" in output
    assert "  for repair: 1 attempt, 120 tokens, 1 call, $0.0125" in output
    assert "budget." not in output


def test_metrics_call_moves_phases_and_candidates_by_plain_words(cli: Cli, home: Path) -> None:
    write_run(home)
    output = cli("metrics").stdout

    assert re.search(
        "^seconds of one move: first test run +median [0-9.]+, 95th percentile", output, re.MULTILINE
    )
    assert "seconds in all: replies of models" in output
    assert "candidates: repairs" in output
    assert "iteration" not in output


def test_show_prints_a_run_as_json(cli: Cli, home: Path) -> None:
    run = write_run(home)
    output = json.loads(cli("show", run.id, "--json").stdout)
    assert (output["run"], output["state"], output["outcome"]) == (run.id, "ended", "healed")

    spend = {"attempts": 1, "tokens": 120, "model_calls": 1, "money": 0.0125, "unpriced_calls": 0}
    assert output["spend"] == {
        **spend,
        "seconds": 2.0,
        "by_role": {"coder": spend},
        "by_move": {"repair": spend},
    }
    assert output["events"][0]["kind"] == "run.started"


def test_a_killed_run_is_shown_as_stopped_with_its_torn_line(cli: Cli, home: Path) -> None:
    run = write_run(home, finish=False)
    with run.ledger_path.open("ab") as file:
        file.write(b'{"seq": 9, "ki')

    output = cli("show").stdout

    assert "(stopped)" in output
    assert "is incomplete" in output
    assert json.loads(cli("show", "--json").stdout)["torn_lines"] == [10]


def test_show_says_that_a_run_is_in_progress(cli: Cli, home: Path) -> None:
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


def test_a_missing_blob_is_reported_and_the_rest_is_shown(cli: Cli, home: Path) -> None:
    run = write_run(home)
    for blob in (run.path / "blobs").iterdir():
        blob.unlink()
    output = cli("show").stdout
    assert "unreadable" in output
    assert "healed: every trusted check passes" in output


def test_show_lists_runs_with_their_outcome(cli: Cli, home: Path) -> None:
    first, second = write_run(home), write_run(home, finish=False)
    rows = {row.split()[0]: row for row in cli("show", "--list").stdout.splitlines()}
    assert rows.keys() == {first.id, second.id}
    assert "healed" in rows[first.id]
    assert "stopped" in rows[second.id]
    assert {row["run"] for row in json.loads(cli("show", "--list", "--json").stdout)} == rows.keys()


def test_show_lists_runs_without_the_database(cli: Cli, home: Path, tmp_path: Path) -> None:
    run = write_run(home)
    (tmp_path / "no-database").write_text("text\n" * 1000)
    result = cli("show", "--list", "--set", f"store.url=sqlite:///{tmp_path}/no-database")
    assert result.exit_code == 0
    assert result.stdout.split()[0] == run.id


def test_show_without_runs_suggests_an_example(cli: Cli) -> None:
    assert cli("show", "--list").exit_code == 0
    result = cli("show")
    assert result.exit_code == 2
    assert "suture run --example" in result.stderr


def test_show_refuses_an_unknown_run_and_a_missing_diff(cli: Cli, home: Path) -> None:
    write_run(home)
    assert cli("show", "nothing-like-it").exit_code == 2
    assert cli("show", "last", "--diff").exit_code == 2


def test_show_prints_the_short_and_the_full_diff(cli: Cli, home: Path) -> None:
    run = write_run(home)
    run.write_text("result.diff", "--- a/x\n+++ b/x\n")
    assert cli("show", "last", "--diff").stdout == "--- a/x\n+++ b/x\n"
    assert cli("show", "last", "--full-diff").stdout == "--- a/x\n+++ b/x\n"  # the short diff is complete

    (run.path / "full.diff").write_text("--- a/x\n+++ b/x\n@@ more\n")
    assert cli("show", "last", "--full-diff").stdout == "--- a/x\n+++ b/x\n@@ more\n"
    assert cli("show", "last", "--diff").stdout == "--- a/x\n+++ b/x\n"


def test_config_show_prints_settings_with_their_origin(cli: Cli) -> None:
    result = cli("config", "show", "--set", "loop.samples=7", env={"SUTURE_KEYS_OPENAI": "sk-secret"})
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("loop.samples"))
    assert row.split()[:2] == ["loop.samples", "7"]
    assert "default" not in row
    assert "sk-secret" not in result.output


def test_config_show_prints_settings_as_json(cli: Cli) -> None:
    settings = json.loads(cli("config", "show", "--json").stdout)
    assert settings["budget.attempts"] == {"value": "12", "origin": "default"}


@pytest.mark.parametrize("setting", ["loop.samples", "=3", "loop.sample=3", "loop.samples=many"])
def test_an_invalid_setting_is_a_usage_error(cli: Cli, setting: str) -> None:
    result = cli("config", "show", "--set", setting)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
