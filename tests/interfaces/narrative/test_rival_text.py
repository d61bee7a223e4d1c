"""Repairs between which the tests do not decide are listed with their lines, their answers and one count."""

from __future__ import annotations

from pathlib import Path

import pytest

from project_runs import add_healed_run
from suture.api import Review
from suture.core.ledger import Event, Ledger, RunFolder, kinds, load_result
from suture.core.ledger.event import encode_payload
from suture.core.ledger.kinds import Choice
from suture.core.records import Task
from suture.interfaces.narrative.event_text import render_payload
from suture.interfaces.narrative.result_text import next_step_lines
from suture.interfaces.narrative.review_text import review_as_json, review_as_text
from suture.interfaces.narrative.rival_text import (
    MAX_RIVAL_CODE_LINES,
    comparison_lines,
    rival_lines,
    undetermined_sentence,
)
from suture.interfaces.narrative.run_progress_text import ProgressNarrator
from suture.interfaces.narrative.run_story import run_as_text

CRASH = "raises IndexError: list index out of range"
UNDETERMINED = kinds.RepairUndetermined(
    changes=tuple(
        kinds.ComparedChange(
            label=text,
            diff=f"--- a/m.py\n+++ b/m.py\n@@ -6,3 +6,4 @@\n def f():\n-    x = 1\n+    x = 2\n+    return {text}\n",
        )
        for text in ("(a + b) / 3", "(a + c) / 2")
    ),
    calls=(kinds.ComparedCall(call="median([1, 2])", before=CRASH, answers=(CRASH, "1.5")),),
    count=9,
)


def test_a_line_that_all_changes_add_is_shown_once_and_a_division_is_not_a_separator() -> None:
    assert list(comparison_lines(UNDETERMINED, "run-1")) == [
        "All of them add:",
        "     x = 2",
        "1. m.py, line 7 (this diff)",
        "     return (a + b) / 3",
        f"     median([1, 2]) -> {CRASH} (as now)",
        "2. m.py, line 7",
        "     return (a + c) / 2",
        f"     median([1, 2]) -> 1.5 (now {CRASH})",
        "   Apply this one: suture apply run-1 --rival 2",
        "and 7 more",
    ]


def test_a_change_of_several_lines_has_a_line_for_each() -> None:
    diffs = [f"--- a/m.py\n+++ b/m.py\n@@ -1 +1,2 @@\n+x = {n}\n+y = {n} / 2\n" for n in (1, 2)]
    changes = tuple(kinds.ComparedChange(label="", diff=diff) for diff in diffs)
    assert list(comparison_lines(kinds.RepairUndetermined(changes=changes, count=2))) == [
        "1. m.py, line 1 (this diff)",
        "     x = 1",
        "     y = 1 / 2",
        "2. m.py, line 1",
        "     x = 2",
        "     y = 2 / 2",
    ]


def test_only_a_few_lines_that_all_changes_add_are_shown() -> None:
    shared = "".join(f"+step({n})\n" for n in range(9))
    changes = tuple(kinds.ComparedChange(label="", diff=f"{shared}+x = {n}\n") for n in (1, 2))
    shown = [*comparison_lines(kinds.RepairUndetermined(changes=changes, count=2))]
    assert shown[:4] == ["All of them add:", *(f"     step({n})" for n in range(MAX_RIVAL_CODE_LINES))]
    assert [line.strip() for line in shown if "x = " in line] == ["x = 1", "x = 2"]


def test_a_call_that_tells_no_further_changes_apart_is_left_out_and_so_is_a_missing_answer() -> None:
    changes = tuple(kinds.ComparedChange(label=f"edit {n}", diff="") for n in range(3))
    answers = {"f(0)": ("1", "2", "2"), "f(1)": ("3", "4", "4"), "f(2)": ("5", "", "6")}
    calls = tuple(kinds.ComparedCall(call=call, before="", answers=given) for call, given in answers.items())
    shown = [*comparison_lines(kinds.RepairUndetermined(changes=changes, count=3, calls=calls))]
    assert [line.strip() for line in shown if "->" in line] == [
        "f(0) -> 1",
        "f(2) -> 5",
        "f(0) -> 2",
        "f(0) -> 2",
        "f(2) -> 6",
    ]


def test_every_sentence_about_one_run_has_the_same_number_of_changes() -> None:
    repairs = tuple(kinds.FoundRepair(label="2 becomes 3", file="m.py", score=1.0) for _ in range(9))
    search = kinds.SearchFinished(candidates_tried=40, plausible_count=16, repairs=repairs)
    event = Event(seq=1, time_s=0.0, kind=search.event_kind, data=encode_payload(search))
    (progress,) = ProgressNarrator().lines_for(event)

    assert "9 changes make all tests pass; the likeliest is m.py" in progress
    assert "9 changes make all tests pass; 7 more edits also pass" in str(render_payload(search))
    assert "each of 9 changes" in undetermined_sentence(UNDETERMINED, "all 2 tests pass")
    assert "between 9 changes" in str(render_payload(UNDETERMINED))


def test_the_whole_story_of_a_run_lists_the_changes(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    with Ledger(run.ledger_path) as ledger:
        ledger.append(UNDETERMINED)
    assert "2. m.py, line 7\n              return (a + c) / 2" in run_as_text(run)


def test_an_undecided_repair_that_was_applied_names_the_undo_and_the_strict_option(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    result = load_result(run)
    assert result is not None
    with Ledger(run.ledger_path) as ledger:
        ledger.append_all([UNDETERMINED, kinds.TreeApplied(files=("m.py",), root=str(tmp_path), undo="")])
    _, undo, advice = next_step_lines(result, run)
    assert undo == f"Undo it: suture undo {run.id}"
    assert "your tests do not decide" in advice
    assert "With --strict, Suture delivers nothing" in advice


@pytest.mark.parametrize("was_asked", [False, True])
def test_the_option_to_be_asked_is_not_suggested_after_the_question(tmp_path: Path, was_asked: bool) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    result = load_result(run)
    assert result is not None
    with Ledger(run.ledger_path) as ledger:
        ledger.append_all([kinds.ReviewAsked(key="k", stage="distinguish")] if was_asked else [])
        ledger.append(UNDETERMINED)
    (*_, advice) = rival_lines(result, run)
    assert ("--ask" in advice) is not was_asked


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ("second", "your answer: 1.5 is right for f(0)"),
        ("neither", "your answer: neither 1 nor 1.5 is right for f(0)"),
    ],
)
def test_an_answer_is_repeated_as_the_value_that_was_chosen(choice: Choice, text: str) -> None:
    assert render_payload(kinds.UserAnswered(call="f(0)", answers=("1", "1.5"), choice=choice)) == text


def test_a_question_outside_the_terminal_shows_the_two_changes() -> None:
    review = Review(
        run_id="run-1",
        key="k",
        stage="distinguish",
        moves=(),
        candidate=None,
        verdict=None,
        diagnosis=None,
        diff="",
        task=Task(statement="s"),
        difference=kinds.DistinguishingInput(
            call="f(0)", answers={"a": "1", "b": "2"}, answers_by_repair=("1", "2")
        ),
        changes=UNDETERMINED.changes,
    )
    assert review_as_text(review).splitlines()[1:] == [
        "",
        "  first: 1",
        "     return (a + b) / 3",
        "  second: 2",
        "     return (a + c) / 2",
        "  both add:",
        "     x = 2",
    ]
    assert [change["label"] for change in review_as_json(review)["changes"]] == ["(a + b) / 3", "(a + c) / 2"]
