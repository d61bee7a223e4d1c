"""Reviews on the command line: parked runs, answers from another process, and questions on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script, Suture
from interfaces.cli.double_task import CORRECT_REPLY
from interfaces.cli.real_terminal import Terminal

pytestmark = [
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.timeout(300),  # a test starts up to six processes
]
WRONG_REPLY = "```python\ndef double(n):\n    return n * n\n```"
SECOND_WRONG_REPLY = "```python\ndef double(n):\n    return n + 2\n```"
TASK = (
    "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n>>> double(0)\n0\n"
)
REPEATED_CORRECT_REPLY = {"text": CORRECT_REPLY, "repeat": True}
REVIEW_OPTIONS = ("--autonomy", "review_repairs", "--set", "loop.samples=1")


@pytest.fixture
def parked_run(suture: Suture, script: Script) -> str:
    """Start a run that waits before its first repair, and return the name of its model."""
    model = script(WRONG_REPLY, SECOND_WRONG_REPLY, REPEATED_CORRECT_REPLY)
    result = suture("run", TASK, "--model", model, *REVIEW_OPTIONS)
    assert result.returncode == 5, result.stderr
    assert "Waiting for you: Allow Suture to ask the model for 2 repairs?" in result.stderr
    assert "suture resume" in result.stderr
    return model


def test_review_shows_the_question_of_a_parked_run(suture: Suture, parked_run: str) -> None:
    review = suture("review")
    assert review.returncode == 0, review.stderr
    assert "call: double(0)" in review.stdout
    assert "+    return n + 2" in review.stdout

    question = json.loads(suture("review", "last", "--json").stdout)
    assert (question["stage"], len(question["moves"]), question["editable"]) == (
        "repairs",
        2,
        ["solution.py"],
    )
    assert "waiting" in suture("history").stdout
    assert "the run waits for your answer" in suture("show").stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [(("--answer", "approve"), 0), (("--hint", "twice"), 0), (("--answer", "abort"), 130)],
)
def test_another_process_can_answer_a_parked_run(
    suture: Suture, parked_run: str, answer: tuple[str, ...], exit_code: int
) -> None:
    result = suture("resume", "last", *answer)
    assert result.returncode == exit_code, result.stderr
    assert result.stdout == ("def double(n):\n    return 2 * n\n" if not exit_code else result.stdout)
    assert suture("review").returncode == 2
    replay = suture("replay")
    assert replay.returncode == 0, replay.stdout + replay.stderr


@pytest.mark.heavy
def test_a_user_can_answer_with_an_own_candidate(suture: Suture, parked_run: str, tmp_path: Path) -> None:
    custom_solution = tmp_path / "mine.py"
    custom_solution.write_text("def double(n):\n    return n + n\n")
    result = suture("resume", "last", "--edit", str(custom_solution))
    assert (result.returncode, result.stdout) == (0, custom_solution.read_text()), result.stderr


@pytest.mark.heavy
def test_resume_without_a_valid_answer_leaves_the_run_parked(
    suture: Suture, parked_run: str, home: Path
) -> None:
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    calls = ledger.read_text().count('"model.called"')
    assert suture("resume").returncode == 5
    assert ledger.read_text().count('"model.called"') == calls

    for invalid_answer in (
        ("--answer", "maybe"),
        ("--answer", "approve", "--hint", "x"),
        ("--edit", "absent.py"),
    ):
        refused = suture("resume", "last", *invalid_answer)
        assert refused.returncode == 2, refused.stderr
    assert suture("resume", "last", "--answer", "approve").returncode == 0


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Return a function that starts a command on a terminal; kill such commands after the test."""
    terminals: list[Terminal] = []

    def start(*arguments: str, **variables: str) -> Terminal:
        terminals.append(Terminal(list(arguments), {**environ, **variables}, tmp_path))
        return terminals[-1]

    yield start
    for open_terminal in terminals:
        if open_terminal.process.poll() is None:
            open_terminal.process.kill()
            open_terminal.process.wait()


def test_a_terminal_asks_until_the_user_answers(
    terminal: Callable[..., Terminal], script: Script, tmp_path: Path
) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "def double(n):\\n    return n + n\\n" > "$1"\n')
    editor.chmod(0o755)
    model = script(WRONG_REPLY, SECOND_WRONG_REPLY, REPEATED_CORRECT_REPLY)
    screen = terminal("run", TASK, "--model", model, *REVIEW_OPTIONS, EDITOR=str(editor))
    screen.wait_for("Allow Suture to ask the model for 2 repairs?")
    assert "double(0)" in screen.screen

    screen.type("what\n")
    screen.wait_for("Allow Suture to ask the model for 2 repairs?")
    screen.type("e\n")
    screen.wait_for("Opening the editor")
    assert screen.end() == 0, screen.screen
    assert "return n + n" in screen.screen


@pytest.mark.heavy
def test_ctrl_c_at_the_question_ends_the_run(terminal: Callable[..., Terminal], script: Script) -> None:
    screen = terminal("run", TASK, "--model", script(WRONG_REPLY), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("\x03")
    assert screen.end() == 130, screen.screen
    assert "Traceback" not in screen.screen


@pytest.mark.heavy
def test_answering_later_parks_the_run(
    terminal: Callable[..., Terminal], script: Script, suture: Suture
) -> None:
    screen = terminal("run", TASK, "--model", script(REPEATED_CORRECT_REPLY), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("l\n")
    assert screen.end() == 5, screen.screen

    resumed = terminal("resume")
    for prompt, reply in (("fresh candidate? [y/N]", "y\n"), ("Accept this fix? [y/N]", "yes\n")):
        resumed.wait_for(prompt)
        resumed.type(reply)
    assert resumed.end() == 0, resumed.screen


def test_enter_rejects_the_proposal(terminal: Callable[..., Terminal], script: Script) -> None:
    screen = terminal("run", TASK, "--model", script(REPEATED_CORRECT_REPLY), "--autonomy", "review_all")
    screen.wait_for("[y/N]")
    screen.type("\n")
    screen.wait_for("your answer: no")
    screen.type("\x03")
    assert screen.end() == 130, screen.screen


@pytest.mark.heavy
def test_results_of_new_code_are_confirmed_on_the_terminal(
    script: Script, environ: dict[str, str], tmp_path: Path
) -> None:
    plain = "```python\ndef total(nums):\n    return sum(nums)\n```"
    absolute = "```python\ndef total(nums):\n    return sum(map(abs, nums))\n```"
    terminal = Terminal(["run", "Add the numbers.", "--model", script(plain, absolute)], environ, tmp_path)

    terminal.wait_for("total([1, 2, 3, 4, 5, 6]) == 21")
    terminal.wait_for("[y/n/edit] ")
    terminal.type("\n")
    terminal.wait_for("Enter alone neither confirms nor rejects a result.")
    terminal.wait_for("[y/n/edit] ")
    terminal.type("y\n")
    terminal.wait_for("Which result is right for total([-2, 7, 4])? 1: 9; 2: 13; Enter: leave this call out ")
    terminal.type("2\n")
    terminal.wait_for("Which result is right for ")
    terminal.type("\n")

    assert terminal.end() == 0, terminal.screen
    assert "sum(map(abs, nums))" in terminal.screen
    assert "Done: all 4 checks pass." in terminal.screen


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("typed", "shown"),
    [("total([-2,7,4]) == 9", "return sum(nums)"), ("total([-5]) == -5", "Only this call counts")],
    ids=["shown", "another call"],
)
def test_a_no_asks_which_result_is_wrong_and_what_is_right(
    script: Script, environ: dict[str, str], tmp_path: Path, typed: str, shown: str
) -> None:
    absolute = "```python\ndef total(nums):\n    return sum(map(abs, nums))\n```"
    plain = "```python\ndef total(nums):\n    return sum(nums)\n```"
    replies = script(absolute, absolute, {"text": plain, "repeat": True})
    terminal = Terminal(["run", "Add the numbers.", "--model", replies], environ, tmp_path)

    terminal.wait_for("[y/n/edit] ")
    terminal.type("n\n")
    terminal.wait_for("Which result is wrong? ")
    terminal.type(f"{typed}\n")
    terminal.wait_for(shown)

    assert terminal.end() == 0, terminal.screen
    assert "return sum(nums)" in terminal.screen


@pytest.mark.heavy
def test_a_call_with_its_result_is_typed_where_no_result_can_be_shown(
    script: Script, environ: dict[str, str], tmp_path: Path
) -> None:
    code = "```python\ndef initials(person):\n    return person['first'][0] + person['last'][0]\n```"
    arguments = ["run", "Return a person's initials.", "--model", script({"text": code, "repeat": True})]
    terminal = Terminal(arguments, environ, tmp_path)

    terminal.wait_for("Such as: initials(person) == ...")
    terminal.type("y\n")
    terminal.wait_for("does not answer the question")
    terminal.wait_for("Such as: initials(person) == ...")  # what is typed before the question is discarded
    terminal.type("initials({'first': 'Ada', 'last': 'Lovelace'}) == 'AL'\n")

    assert terminal.end() == 0, terminal.screen
    assert "the only check passes" in terminal.screen


@pytest.mark.parametrize("option", [(), ("--yes",)])
def test_without_a_person_code_stays_unverified_and_names_the_command_that_verifies_it(
    suture: Suture, script: Script, option: tuple[str, ...]
) -> None:
    result = suture("run", "Write double(n).", "--model", script(CORRECT_REPLY), *option)
    assert result.returncode == 1
    assert "Saved, not verified: " in result.stderr
    assert "unverified_solution.py" in result.stderr
    assert "Verify it by results that you confirm: suture resume " in result.stderr
