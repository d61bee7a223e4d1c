"""Sentences about a result say only what is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from project_runs import add_healed_run
from suture.core.ledger import Event, Ledger, RunFolder, kinds
from suture.interfaces.narrative.certificate_rendering import certificate_summary_lines, render_undo
from suture.interfaces.narrative.result_text import applied_files
from suture.interfaces.narrative.run_progress_text import ProgressNarrator


def summarise(*, mutants: int, killed: int) -> str:
    certificate = kinds.CertificateWritten(
        file="certificate.json",
        fixed=1,
        edits=1,
        edits_found=1,
        is_minimal=True,
        statements=2,
        covered=2,
        mutants=mutants,
        selected=8,
        killed=killed,
        confidence=0.5,
    )
    return next(certificate_summary_lines(certificate, "run", 0.5))


@pytest.mark.parametrize(
    ("mutants", "killed", "sentence"),
    [
        (0, 0, "Your tests run every changed line. Confidence 0.50."),
        (
            4,
            3,
            "Your tests run every changed line and catch 3 of 8 deliberate mistakes there. Confidence 0.50.",
        ),
    ],
)
def test_mistakes_are_counted_only_if_some_were_tried(mutants: int, killed: int, sentence: str) -> None:
    assert summarise(mutants=mutants, killed=killed) == sentence


def test_tests_of_a_project_that_do_not_pass_are_named() -> None:
    reason = "they do not pass on the code: 1 failed"
    data = {"role": "project_tester", "tests": [], "dropped": {reason: 1}}
    event = Event(seq=1, time_s=0.0, kind="tests.written", data=data)
    assert ProgressNarrator().lines_for(event) == (
        f"The tests that the model wrote for the project are left out: {reason}",
    )


def test_a_change_that_was_applied_again_is_applied(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    applied = kinds.TreeApplied(root="/p", files=("a.py",), undo="")
    with Ledger(run.ledger_path) as ledger:
        ledger.append_all([applied, kinds.TreeUndone(root="/p")])
        assert applied_files(run) == ()
        ledger.append(applied)
    assert applied_files(run) == ("a.py",)


@pytest.mark.parametrize(
    ("files", "reason", "line"),
    [
        (("a.py",), "", "Reverted: a.py in /p"),
        (("a.py",), "the change was interrupted", "The change was interrupted. Reverted: a.py in /p"),
        ((), "the change could not be written", "The change could not be written."),
    ],
)
def test_the_reason_of_a_revert_is_a_sentence(files: tuple[str, ...], reason: str, line: str) -> None:
    assert render_undo(kinds.TreeUndone(root="/p", files=files, reason=reason)) == line
