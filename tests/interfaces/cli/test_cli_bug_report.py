"""What a user knows about a fault reaches the model, and decides nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.interfaces.narrative.plain_text import render_label

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]


def prompts(home: Path) -> list[str]:
    stored = [json.loads(path.read_text()) for path in home.glob("runs/*/replies/*.json")]
    return ["\n".join(message["content"] for message in one["messages"]) for one in stored]


def test_a_hint_and_a_report_are_in_the_prompt(
    suture: Suture, script: Script, broken: Path, fixing_reply: str, home: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("Three pens cost as much as one.\n")
    told = ("--hint", "look at the quantity", "--issue", str(report), "--set", "certification.seconds=0")
    done = suture("heal", str(broken), "--test", BARE_PYTEST, *told, "--model", script(fixing_reply))
    assert done.returncode == 0, done.stderr
    (prompt, *_) = prompts(home)
    assert "Three pens cost as much as one.\n\nHint: look at the quantity" in prompt
    assert "Three pens cost" in suture("show", "last").stdout


def test_a_long_log_keeps_both_ends(
    suture: Suture, script: Script, broken: Path, fixing_reply: str, home: Path
) -> None:
    log = "first line\n" + "x" * 50_000 + "\nlast line\n"
    options = ("--issue", "-", "--test", BARE_PYTEST, "--set", "certification.seconds=0")
    done = suture("heal", str(broken), *options, "--model", script(fixing_reply), stdin=log)
    assert done.returncode == 0, done.stderr
    (prompt, *_) = prompts(home)
    assert "first line" in prompt
    assert "characters are left out here" in prompt
    assert "last line" in prompt
    assert len(prompt) < 12_000


def test_a_report_that_is_not_there_is_an_error(suture: Suture, broken: Path) -> None:
    done = suture("heal", str(broken), "--issue", "nowhere.txt")
    assert done.returncode == 2
    assert "the issue 'nowhere.txt' cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        ("sample 1, greedy", "try 1"),
        ("sample 2, T=0.8", "try 2, varied"),
        ("repair 1, minimal, greedy", "repair 1, the smallest change"),
        ("repair 2, restructure, T=0.8", "repair 2, another structure, varied"),
        ("line 4: greedy becomes minimal", "line 4: greedy becomes minimal"),
        ("", ""),
    ],
)
def test_a_label_is_told_in_a_readers_words(label: str, plain: str) -> None:
    assert render_label(label) == plain
