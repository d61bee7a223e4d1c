"""The short table that `suture bench run` and `regrade` print."""

from __future__ import annotations

import json

import pytest

from bench.made_rows import row, step
from suture.interfaces.cli.bench.bench_summary import print_rows


def test_checks_that_are_shown_and_grade_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([row("greedy", n, hidden_checks_visible=True) for n in range(2)], as_json=False)
    assert "set: In all 2 tasks the visible checks are the hidden ones" in capsys.readouterr().err
    print_rows([row("greedy", n) for n in range(2)], as_json=False)
    assert "hidden" not in capsys.readouterr().err


def test_claimed_is_what_the_user_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a report: a run that passes what is visible and is refused by its critic claims nothing."""
    refused = row("critic", 0, step(True, claimed=True), outcome="not_healed")
    print_rows([refused, row("critic", 1), row("critic", 2, fault="no wall")], as_json=True)
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["tasks"], line["solved"], line["claimed"], line["no number"]) == (2, 2, 1, 1)
