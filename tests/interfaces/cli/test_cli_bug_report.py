"""An issue or a hint of the user reaches the model's prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Script, Suture
from suture.interfaces.narrative.plain_text import render_label

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]


def read_prompts(home: Path) -> list[str]:
    """Return the text of every prompt that a run has sent."""
    records = [json.loads(path.read_text()) for path in home.glob("runs/*/replies/*.json")]
    return ["\n".join(message["content"] for message in record["messages"]) for record in records]


def test_a_hint_and_an_issue_are_in_the_prompt(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, home: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("Three pens cost as much as one.\n")
    report_options = (
        "--hint",
        "look at the quantity",
        "--issue",
        str(report),
        "--set",
        "certification.seconds=0",
    )
    result = suture(
        "heal", str(broken_project), "--test", BARE_PYTEST, *report_options, "--model", script(fixing_reply)
    )
    assert result.returncode == 0, result.stderr

    (prompt, *_) = read_prompts(home)
    assert "Three pens cost as much as one.\n\nHint: look at the quantity" in prompt
    assert "Three pens cost" in suture("show", "last").stdout


def test_a_long_log_keeps_its_beginning_and_end(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, home: Path
) -> None:
    log = "first line\n" + "x" * 50_000 + "\nlast line\n"
    options = ("--issue", "-", "--test", BARE_PYTEST, "--set", "certification.seconds=0")
    result = suture("heal", str(broken_project), *options, "--model", script(fixing_reply), stdin=log)
    assert result.returncode == 0, result.stderr

    (prompt, *_) = read_prompts(home)
    assert "first line" in prompt
    assert "characters are left out here" in prompt
    assert "last line" in prompt
    assert len(prompt) < 12_000


def test_a_missing_issue_file_is_an_error(suture: Suture, broken_project: Path) -> None:
    result = suture("heal", str(broken_project), "--issue", "nowhere.txt")
    assert result.returncode == 2
    assert "the issue 'nowhere.txt' cannot be read" in result.stderr


@pytest.mark.parametrize(
    ("label", "description"),
    [
        ("sample 1, greedy", "candidate 1"),
        ("sample 2, T=0.8", "candidate 2, varied"),
        ("repair 1, minimal, greedy", "repair 1, the smallest change"),
        ("repair 2, restructure, T=0.8", "repair 2, another structure, varied"),
        ("line 4: greedy becomes minimal", "line 4: greedy becomes minimal"),
        ("mutation, line 9: < becomes <=", "line 9: < becomes <="),
        ("", ""),
    ],
)
def test_a_candidate_label_is_rendered_in_plain_words(label: str, description: str) -> None:
    assert render_label(label) == description
