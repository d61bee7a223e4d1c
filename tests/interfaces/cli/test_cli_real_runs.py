"""`suture run` and `suture heal` for real: process, graph, sandbox, SQLite; only the model is scripted."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bare_pytest import BARE_PYTEST
from suture.core.ledger import list_runs, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.interfaces.cli.app import app

Suture = Callable[..., subprocess.CompletedProcess[str]]

Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # a proof may take a minute
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python\ndef double(n):\n    return n\n```"
TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"


def test_new_code_goes_to_stdout_and_the_rest_to_stderr(suture: Suture, script: Script) -> None:
    done = suture("run", TASK, "--model", script(WRONG, RIGHT, RIGHT, RIGHT, RIGHT))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "def double(n):\n    return 2 * n\n"
    assert "scripted, not a model" in done.stderr
    assert "at most 12 attempts" in done.stderr
    assert "Done: the one check passes." in done.stderr
    assert "suture show" in done.stderr


def test_a_task_from_stdin_and_an_answer_as_json(suture: Suture, script: Script) -> None:
    done = suture("run", "-", "--json", "--model", script(RIGHT), stdin=TASK)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["outcome"], told["exit_code"], told["applied"]) == ("healed", 0, [])
    assert Path(told["folder"]).is_dir()


def test_the_example_needs_no_model(suture: Suture) -> None:
    done = suture("run", "--example", "--model", "scripted:example")
    assert done.returncode == 0, done.stderr
    assert "def merge_intervals" in done.stdout


@pytest.mark.usefixtures("cli")
def test_the_seconds_of_a_run_count_from_enter(
    environ: dict[str, str], home: Path, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "off").mkdir()
    (tmp_path / "off" / "sums.py").write_text("def total(a):\n    return a + 1\n")
    (tmp_path / "off" / "test_sums.py").write_text(
        "from sums import total\n\n\ndef test_total():\n    assert total(1) == 3\n"
    )
    for line in (["run", TASK, "--model", script(RIGHT)], ["heal", "off", "--model", script(WRONG)]):
        CliRunner().invoke(app, line, env=environ, obj=time.time() - 50)
    began = [read_ledger(run.ledger_path).events[0].payload for run in list_runs(home)]
    assert [isinstance(one, RunStarted) and one.preparation_s >= 50 for one in began] == [True, True]


def test_apply_writes_new_code_into_the_current_folder(
    suture: Suture, script: Script, tmp_path: Path
) -> None:
    assert suture("run", TASK, "--apply", "--model", script(RIGHT)).returncode == 0
    assert (tmp_path / "solution.py").read_text() == "def double(n):\n    return 2 * n\n"


def test_code_that_nothing_can_verify_is_no_success(suture: Suture, script: Script) -> None:
    done = suture("run", "Write a function double(n).", "--model", script(RIGHT))
    assert done.returncode == 1
    assert "def double" in done.stdout
    assert "Not verified: " in done.stderr
    assert "no test or example to check it against" in done.stderr
    assert "with --test." in done.stderr


def test_a_fix_is_printed_and_nothing_changes(
    suture: Suture, script: Script, broken: Path, fixing_reply: str, home: Path, files_of: FilesOf
) -> None:
    before = files_of(broken)
    done = suture("heal", str(broken), "--test", BARE_PYTEST, "-v", "--model", script(fixing_reply))
    assert done.returncode == 0, done.stderr
    assert files_of(broken) == before
    assert "+        goods += price * quantity" in done.stdout
    assert "judged by the test runner's report, signed" in done.stderr
    assert "; Python is " in done.stderr
    saved = next((home / "runs").glob("*/result.diff"))
    assert saved.read_text() == done.stdout
    assert str(saved) in done.stderr


def test_the_printed_diff_and_the_printed_undo_work(
    suture: Suture, script: Script, broken: Path, fixing_reply: str, files_of: FilesOf
) -> None:
    before = files_of(broken)
    done = suture("heal", str(broken), "--test", BARE_PYTEST, "--apply", "--model", script(fixing_reply))
    assert done.returncode == 0, done.stderr
    after = files_of(broken)
    assert {path for path in after if after[path] != before.get(path)} == {"cart.py"}
    undo = next(line for line in done.stderr.splitlines() if line.startswith("Undo it: "))
    taken_back = suture(*undo.removeprefix("Undo it: suture ").split())
    assert taken_back.returncode == 0, taken_back.stderr
    assert "cart.py" in taken_back.stdout
    assert files_of(broken) == before


def test_nothing_to_heal(suture: Suture, script: Script, broken: Path) -> None:
    command = f"{BARE_PYTEST} -k empty"
    done = suture("heal", str(broken), "--test", command, "--model", script(RIGHT))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "Nothing to heal: " in done.stderr


def test_a_run_that_fails_leaves_the_best_and_exits_with_1(
    suture: Suture, script: Script, broken: Path, files_of: FilesOf
) -> None:
    useless = {"text": "I cannot help with that.", "repeat": True}
    before = files_of(broken)
    done = suture("heal", str(broken), "--apply", "--model", script(useless), "--attempts", "3")
    assert done.returncode in (1, 4), done.stderr
    assert files_of(broken) == before
    assert " still fail:" in done.stderr


def test_a_spent_budget_has_its_own_exit_code(suture: Suture, script: Script) -> None:
    wrong = {"text": WRONG, "repeat": True}
    done = suture("run", TASK, "--model", script(wrong), "--attempts", "1")
    assert done.returncode == 4, done.stderr
    assert "budget_exhausted" in done.stderr


def test_show_tells_the_run(suture: Suture, script: Script) -> None:
    suture("run", TASK, "--model", script(WRONG, {"text": RIGHT, "repeat": True}))
    told = suture("show", "last").stdout
    assert "(ended)" in told
    assert "return 2 * n" in told
    assert "expected: 8" in told
    assert json.loads(suture("show", "last", "--json").stdout)["outcome"] == "healed"


def test_text_that_steers_a_terminal_is_escaped_in_what_is_told(suture: Suture, script: Script) -> None:
    evil = "```python\ndef double(n):\n    raise ValueError('\\x1b[2J[red]')\n```"
    done = suture("run", TASK, "--model", script({"text": evil, "repeat": True}), "--attempts", "2")
    assert "\x1b" not in done.stderr
    assert "\x1b" not in suture("show", "last").stdout
