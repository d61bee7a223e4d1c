"""The short table that `suture bench run` and `regrade` print."""

from __future__ import annotations

import json

import pytest

from bench.made_rows import make_row, make_step
from suture.interfaces.cli.bench.bench_progress import print_rows


def test_the_summary_says_that_visible_checks_also_grade(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([make_row("greedy", n, hidden_checks_visible=True) for n in range(2)], as_json=False)
    assert "set: In all 2 tasks the visible checks are the hidden ones" in capsys.readouterr().err
    print_rows([make_row("greedy", n) for n in range(2)], as_json=False)
    assert "hidden" not in capsys.readouterr().err


def test_a_refused_run_counts_as_not_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that passes the visible checks but is refused by its critic claims no success."""
    refused_row = make_row("critic", 0, make_step(True, claimed=True), outcome="not_healed")
    print_rows([refused_row, make_row("critic", 1), make_row("critic", 2, fault="no sandbox")], as_json=True)
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["tasks"], line["solved"], line["claimed"], line["no number"]) == (2, 2, 1, 1)
