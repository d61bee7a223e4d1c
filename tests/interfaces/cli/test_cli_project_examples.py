"""`suture run --project` asks on a terminal how the new project is used, if the task does not show it."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script
from interfaces.cli.real_terminal import Terminal
from suture.interfaces.cli.repair.run_command import add_project_examples

TODO = "A CLI for TODO items"


@pytest.mark.parametrize(
    ("typed", "task"),
    [
        ("$ todo add milk\nadded milk\n\nnot read\n", f"{TODO}\n\n$ todo add milk\nadded milk"),
        ("$ todo add milk\n", f"{TODO}\n\n$ todo add milk"),
        ("\n", TODO),
        ("", TODO),
    ],
)
def test_typed_examples_become_part_of_the_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, task: str
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(typed))
    assert add_project_examples(TODO, "cli_tool") == (task, True)
    assert "$ todo add milk" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (f"{TODO}\n\n    $ todo add milk", "cli_tool"),
        ("Books\n\n    GET /books -> 200 []", "web_app"),
        ("Books: GET /books -> 200 [], sorted", "web_app"),
        ("A library with area(w, h). area(2, 3) == 6", "library"),
        ("Statistics for each column", "data_pipeline"),  # no example of a run decides
    ],
)
def test_a_task_that_shows_its_use_is_not_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], statement: str, kind: str
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("unexpected\n"))
    assert add_project_examples(statement, kind) == (statement, False)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("sandbox")
def test_the_question_appears_on_a_terminal_before_the_run(
    environ: dict[str, str], tmp_path: Path, script: Script
) -> None:
    arguments = ["run", TODO, "--project", "cli_tool", "--model", script("no code"), "--attempts", "1"]
    screen = Terminal(arguments, environ, tmp_path)
    screen.wait_for("Press Enter to go on without any.")
    screen.type("$ todo add milk\n\n")
    screen.wait_for("Model scripted:")
    assert screen.end() == 4  # the only attempt brought no code
    (ledger,) = (tmp_path / "home" / "runs").glob("*/ledger.jsonl")
    assert "$ todo add milk" in ledger.read_text().partition("\n")[0]
