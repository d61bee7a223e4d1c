"""`suture heal --ask` asks on a terminal and is refused without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interfaces.cli.conftest import Suture
from suture.api import DistinguishingInput
from suture.core.ledger.kinds import ComparedChange
from suture.interfaces.cli.repair.review_command import ask_right_repair
from suture.interfaces.narrative.rival_text import MAX_RIVAL_CODE_LINES, difference_lines

DIFFERENCE = DistinguishingInput(
    call="joined(3, 2)",
    answers={"- becomes +": "5", "- becomes *": "6"},
    answers_by_repair=("5", "5", "6", "1"),
)
CHANGES = (
    ComparedChange(
        label="- becomes +", diff="--- a/calc.py\n+++ b/calc.py\n-    return a - b\n+    return a + b\n"
    ),
    ComparedChange(
        label="- becomes *", diff="--- a/calc.py\n+++ b/calc.py\n-    return a - b\n+    return a * b\n"
    ),
)


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("1\n", "first"),
        ("2\n", "second"),
        ("N\n", "neither"),
        ("u\n", "unsure"),
        ("yes\n\n2\n", "second"),
        ("l\n", None),
        ("what\n", None),
    ],
)
async def test_the_question_is_asked_until_it_is_answered(
    typed: str, choice: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(typed.splitlines())

    async def read() -> str | None:
        return next(lines, None)

    assert await ask_right_repair(DIFFERENCE, CHANGES, read) == choice

    output = capsys.readouterr()
    assert output.out == ""
    assert "For joined(3, 2) they return:\n  1: 5\n     return a + b\n  2: 6\n" in output.err
    assert "l: later" in output.err
    assert output.err.count("Which result is right") == typed.count("\n") + (typed == "what\n")


def test_a_question_shows_where_two_long_changes_differ() -> None:
    shared = "".join(f"+step({n})\n" for n in range(9))
    changes = tuple(replace(change, diff=shared + change.diff) for change in CHANGES)
    assert list(difference_lines(DIFFERENCE, changes)) == [
        "  1: 5",
        "     return a + b",
        "  2: 6",
        "     return a * b",
        "  both add:",
        *(f"     step({n})" for n in range(MAX_RIVAL_CODE_LINES)),
    ]
    assert list(difference_lines(DIFFERENCE, ())) == ["  1: 5", "  2: 6"]


def test_ask_without_a_terminal_is_a_usage_error(suture: Suture, tmp_path: Path) -> None:
    result = suture("heal", str(tmp_path), "--ask")
    assert result.returncode == 2
    assert "--ask needs a terminal" in result.stderr
