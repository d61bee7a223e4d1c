"""`suture run` and `suture heal` with a real process, graph, sandbox and database, and a scripted model."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import ReadFiles, Script, Suture
from interfaces.cli.double_task import CORRECT_REPLY, TASK, WRONG_REPLY
from suture.core.ledger import list_runs, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.interfaces.cli.app import app

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # certification may take a minute


def test_new_code_goes_to_stdout_and_progress_to_stderr(suture: Suture, script: Script) -> None:
    result = suture(
        "run",
        TASK,
        "--model",
        script(WRONG_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY),
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout == "def double(n):\n    return 2 * n\n"
    assert "scripted, not a model" in result.stderr
    assert "at most 12 attempts" in result.stderr
    assert "Done: the only check passes." in result.stderr
    assert "suture show" in result.stderr


def test_run_reads_the_task_from_stdin_and_prints_json(suture: Suture, script: Script) -> None:
    result = suture("run", "-", "--json", "--model", script(CORRECT_REPLY), stdin=TASK)
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert (output["outcome"], output["exit_code"], output["applied"]) == ("healed", 0, [])
    assert Path(output["folder"]).is_dir()


def test_the_example_needs_no_model(suture: Suture) -> None:
    result = suture("run", "--example", "--model", "scripted:example")
    assert result.returncode == 0, result.stderr
    assert "def merge_intervals" in result.stdout


@pytest.mark.usefixtures("cli")
def test_preparation_time_counts_from_the_start_of_the_command(
    environ: dict[str, str], home: Path, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "off").mkdir()
    (tmp_path / "off" / "sums.py").write_text("def total(a):\n    return a + 1\n")
    (tmp_path / "off" / "test_sums.py").write_text(
        "from sums import total\n\n\ndef test_total():\n    assert total(1) == 3\n"
    )
    for arguments in (
        ["run", TASK, "--model", script(CORRECT_REPLY)],
        ["heal", "off", "--model", script(WRONG_REPLY)],
    ):
        CliRunner().invoke(app, arguments, env=environ, obj=time.time() - 50)

    first_events = [read_ledger(run.ledger_path).events[0].payload for run in list_runs(home)]

    assert [isinstance(event, RunStarted) and event.preparation_s >= 50 for event in first_events] == [
        True,
        True,
    ]


def test_apply_writes_new_code_into_the_current_folder(
    suture: Suture, script: Script, tmp_path: Path
) -> None:
    assert suture("run", TASK, "--apply", "--model", script(CORRECT_REPLY)).returncode == 0
    assert (tmp_path / "solution.py").read_text() == "def double(n):\n    return 2 * n\n"


def test_unverified_code_is_no_success(suture: Suture, script: Script) -> None:
    result = suture("run", "Write a function double(n).", "--model", script(CORRECT_REPLY))
    assert result.returncode == 1
    assert "def double" in result.stdout
    assert "Not verified: " in result.stderr
    assert "no test or example to check it against" in result.stderr
    assert "with --test." in result.stderr


def test_a_fix_is_printed_and_nothing_changes(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, home: Path, read_files: ReadFiles
) -> None:
    before = read_files(broken_project)
    result = suture("heal", str(broken_project), "--test", BARE_PYTEST, "-v", "--model", script(fixing_reply))
    assert result.returncode == 0, result.stderr
    assert read_files(broken_project) == before
    assert "+        goods += price * quantity" in result.stdout
    assert "judged by the test runner's signed report" in result.stderr
    assert "; Python is " in result.stderr

    saved = next((home / "runs").glob("*/result.diff"))
    assert saved.read_text() == result.stdout
    assert str(saved) in result.stderr


def test_the_printed_diff_and_the_printed_undo_work(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, read_files: ReadFiles
) -> None:
    before = read_files(broken_project)
    result = suture(
        "heal", str(broken_project), "--test", BARE_PYTEST, "--apply", "--model", script(fixing_reply)
    )
    assert result.returncode == 0, result.stderr

    after = read_files(broken_project)
    assert {path for path in after if after[path] != before.get(path)} == {"cart.py"}

    undo_hint = next(line for line in result.stderr.splitlines() if line.startswith("Undo it: "))
    undone = suture(*undo_hint.removeprefix("Undo it: suture ").split())
    assert undone.returncode == 0, undone.stderr
    assert "cart.py" in undone.stdout
    assert read_files(broken_project) == before


def test_a_passing_project_has_nothing_to_heal(suture: Suture, script: Script, broken_project: Path) -> None:
    command = f"{BARE_PYTEST} -k empty"
    result = suture("heal", str(broken_project), "--test", command, "--model", script(CORRECT_REPLY))
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "Nothing to heal: " in result.stderr


def test_a_failed_heal_changes_no_file_and_reports_failing_tests(
    suture: Suture, script: Script, broken_project: Path, read_files: ReadFiles
) -> None:
    useless = {"text": "I cannot help with that.", "repeat": True}
    before = read_files(broken_project)
    result = suture("heal", str(broken_project), "--apply", "--model", script(useless), "--attempts", "3")
    assert result.returncode in (1, 4), result.stderr
    assert read_files(broken_project) == before
    assert " still fail:" in result.stderr


def test_a_spent_budget_has_its_own_exit_code(suture: Suture, script: Script) -> None:
    wrong_answer = {"text": WRONG_REPLY, "repeat": True}
    result = suture("run", TASK, "--model", script(wrong_answer), "--attempts", "1")
    assert result.returncode == 4, result.stderr
    assert "Stopped at a limit: " in result.stderr


def test_show_prints_the_attempts_of_a_run(suture: Suture, script: Script) -> None:
    suture("run", TASK, "--model", script(WRONG_REPLY, {"text": CORRECT_REPLY, "repeat": True}))
    output = suture("show", "last").stdout
    assert "(ended)" in output
    assert "return 2 * n" in output
    assert "expected: 8" in output
    assert json.loads(suture("show", "last", "--json").stdout)["outcome"] == "healed"


def test_control_characters_of_a_reply_are_escaped_in_messages(suture: Suture, script: Script) -> None:
    hostile_reply = "```python\ndef double(n):\n    raise ValueError('\\x1b[2J[red]')\n```"
    result = suture(
        "run", TASK, "--model", script({"text": hostile_reply, "repeat": True}), "--attempts", "2"
    )
    assert "\x1b" not in result.stderr
    assert "\x1b" not in suture("show", "last").stdout
