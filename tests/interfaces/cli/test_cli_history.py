"""The table of `suture history` uses the width of the terminal, so that tasks can be told apart."""

from __future__ import annotations

from typing import Any

import pytest

from suture.interfaces.cli.inspection.history_command import history_rows
from suture.interfaces.cli.terminal.line_folding import cell_width, fold_table


def make_run(title: str, project: str) -> dict[str, Any]:
    return {
        "run": "20261128-081944454-678156",
        "title": title,
        "kind": "heal",
        "project": project,
        "outcome": "healed",
        "doubt": "",
        "delivery": "",
        "spend": {"seconds": 152.0, "tokens": 0, "money": 0.0},
        "started_s": 1.8e9,
        "fork_of": None,
        "fork_at": None,
        "replay_of": None,
    }


RUNS = [
    make_run(
        "Write a function split_bill(cents, n) that splits a bill fairly among people", "/home/ada/bills"
    ),
    make_run("Write a function that makes a slug of a title, for the address of a page", "/home/ada/bills"),
    make_run("bills: test_three_of_a_thing_cost_three_times_as_much and 2 more", "/home/ada/bills"),
]


@pytest.mark.parametrize("columns", [80, 100, 120, 160])
def test_each_run_is_one_line_that_tells_its_task(columns: int) -> None:
    lines = fold_table(history_rows(RUNS, columns), columns)

    assert len(lines) == 1 + len(RUNS)
    assert max(map(len, lines)) <= columns
    for line, beginning in zip(lines[1:], ("split_bill(cents", "makes a slug", "test_three_of"), strict=True):
        assert beginning in line


@pytest.mark.parametrize("columns", [80, None])
@pytest.mark.parametrize("title", ["bills: test_" + "long_" * 30, "数" * 60])
def test_a_long_title_does_not_shift_the_other_columns(title: str, columns: int | None) -> None:
    lines = fold_table(history_rows([*RUNS, make_run(title, "/home/ada/bills")], columns), columns)

    assert len(lines) == 2 + len(RUNS)
    assert {cell_width(line.partition("healed")[0]) for line in lines[1:]} == {
        cell_width(lines[0].partition("outcome")[0])
    }


def test_a_title_is_shortened_before_a_row_is_folded() -> None:
    spend = {"seconds": 1520.0, "tokens": 123_456, "money": 0.1234}
    runs = [*RUNS, {**RUNS[0], "outcome": "budget_exhausted", "spend": spend}]

    lines = fold_table(history_rows(runs, 80), 80)

    assert len(lines) == 1 + len(runs)
    assert max(map(len, lines)) <= 80
    assert "1520 s, 123,456 tokens, $0.1234" in lines[-1]


def test_a_wide_terminal_shows_the_folder_and_the_whole_task() -> None:
    header, first, *_ = history_rows(RUNS, 160)
    assert header[1:3] == ("folder", "task")
    assert first[1:3] == ("bills", "split_bill(cents, n) that splits a bill fairly among people")


def test_a_fork_is_named_before_the_task() -> None:
    fork = {**RUNS[0], "fork_of": "20261128-081944454-123456", "fork_at": 2}
    assert history_rows([fork], 120)[1][2].startswith("fork of 123456 at 2: split_bill")


def test_the_outcome_names_the_doubt_about_a_healed_result() -> None:
    runs = [{**run, "doubt": "undecided", "delivery": "applied"} for run in RUNS]

    lines = fold_table(history_rows(runs, 80), 80)

    assert len(lines) == 1 + len(runs)
    assert all("healed, undecided, applied" in line for line in lines[1:])


def test_outcomes_are_words_and_new_code_is_done() -> None:
    outcomes = [
        ("healed", "write"),
        ("not_healed", "write"),
        ("budget_exhausted", "heal"),
        ("not_healed", "heal"),
    ]
    runs = [{**RUNS[0], "outcome": outcome, "kind": kind} for outcome, kind in outcomes]
    shown = [row[3] for row in history_rows(runs, 160)][1:]
    assert shown == ["done", "not done", "budget exhausted", "not healed"]


def test_the_outcome_says_whether_the_change_is_applied() -> None:
    applied, undone = ({**RUNS[2], "delivery": delivery} for delivery in ("applied", "undone"))
    rows = history_rows([applied, undone, RUNS[2]], 160)
    assert [row[3] for row in rows] == ["outcome", "healed, applied", "healed, undone", "healed"]
