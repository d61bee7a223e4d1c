"""Reviews on the command line: parked runs, answers from another process, and a terminal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interfaces.cli.real_terminal import Terminal

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # up to six processes
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
TASK = (
    "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n>>> double(0)\n0\n"
)
REPEATED = {"text": RIGHT, "repeat": True}
REPAIRS = ("--autonomy", "review_repairs", "--set", "loop.samples=1")


@pytest.fixture
def parked(suture: Suture, script: Script) -> str:
    """A run that waits before its first repair; answers its model."""
    model = script(WRONG, WRONG_TOO, REPEATED)
    done = suture("run", TASK, "--model", model, *REPAIRS)
    assert done.returncode == 5, done.stderr
    assert "Waiting for you: Allow Suture to ask the model for 2 repairs?" in done.stderr
    assert "suture resume" in done.stderr
    return model


def test_a_parked_run_shows_what_it_asks(suture: Suture, parked: str) -> None:
    shown = suture("review")
    assert shown.returncode == 0, shown.stderr
    assert "call: double(0)" in shown.stdout
    assert "+    return n + 2" in shown.stdout
    told = json.loads(suture("review", "last", "--json").stdout)
    assert (told["stage"], len(told["moves"]), told["editable"]) == ("repairs", 2, ["solution.py"])
    assert "waiting" in suture("history").stdout
    assert "the run waits for your answer" in suture("show").stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [(("--answer", "approve"), 0), (("--hint", "twice"), 0), (("--answer", "abort"), 130)],
)
def test_another_process_answers(
    suture: Suture, parked: str, answer: tuple[str, ...], exit_code: int
) -> None:
    done = suture("resume", "last", *answer)
    assert done.returncode == exit_code, done.stderr
    assert done.stdout == ("def double(n):\n    return 2 * n\n" if not exit_code else done.stdout)
    assert suture("review").returncode == 2
    again = suture("replay")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.heavy
def test_a_candidate_of_ones_own(suture: Suture, parked: str, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("def double(n):\n    return n + n\n")
    done = suture("resume", "last", "--edit", str(own))
    assert (done.returncode, done.stdout) == (0, own.read_text()), done.stderr


@pytest.mark.heavy
def test_without_an_answer_it_goes_on_waiting(suture: Suture, parked: str, home: Path) -> None:
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    calls = ledger.read_text().count('"model.called"')
    assert suture("resume").returncode == 5
    assert ledger.read_text().count('"model.called"') == calls
    for wrong in (("--answer", "maybe"), ("--answer", "approve", "--hint", "x"), ("--edit", "absent.py")):
        refused = suture("resume", "last", *wrong)
        assert refused.returncode == 2, refused.stderr
    assert suture("resume", "last", "--answer", "approve").returncode == 0


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str, **more: str) -> Terminal:
        opened.append(Terminal(list(arguments), {**environ, **more}, tmp_path))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_a_terminal_is_asked(terminal: Callable[..., Terminal], script: Script, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "def double(n):\\n    return n + n\\n" > "$1"\n')
    editor.chmod(0o755)
    model = script(WRONG, WRONG_TOO, REPEATED)
    screen = terminal("run", TASK, "--model", model, *REPAIRS, EDITOR=str(editor))
    screen.wait_for("Allow Suture to ask the model for 2 repairs?")
    assert "double(0)" in screen.screen
    screen.type("what\n")
    screen.wait_for("Allow Suture to ask the model for 2 repairs?")
    screen.type("e\n")
    assert screen.end() == 0, screen.screen
    assert "return n + n" in screen.screen


@pytest.mark.heavy
def test_ctrl_c_at_the_question_ends_the_run(terminal: Callable[..., Terminal], script: Script) -> None:
    screen = terminal("run", TASK, "--model", script(WRONG), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("\x03")
    assert screen.end() == 130, screen.screen
    assert "Traceback" not in screen.screen


@pytest.mark.heavy
def test_later_parks_the_run(terminal: Callable[..., Terminal], script: Script, suture: Suture) -> None:
    screen = terminal("run", TASK, "--model", script(REPEATED), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("l\n")
    assert screen.end() == 5, screen.screen
    again = terminal("resume")
    for question, typed in (("fresh candidate? [y/N]", "y\n"), ("Accept this fix? [y/N]", "yes\n")):
        again.wait_for(question)
        again.type(typed)
    assert again.end() == 0, again.screen


def test_enter_is_no(terminal: Callable[..., Terminal], script: Script) -> None:
    screen = terminal("run", TASK, "--model", script(REPEATED), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("\n")
    screen.wait_for("your answer: reject")
    screen.type("\x03")
    assert screen.end() == 130, screen.screen
