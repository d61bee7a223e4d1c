"""What decided, and what it is worth, is said once in the story of a run."""

from __future__ import annotations

from pathlib import Path

from project_runs import add_healed_run
from suture.core.ledger import Ledger, RunFolder, kinds
from suture.core.records import CheckOutcome, Verdict, VerdictNote
from suture.interfaces.narrative.run_story import run_as_text
from suture.interfaces.narrative.wording import EVIDENCE_TEXTS


def add_passing_check(run: RunFolder, candidate: str) -> None:
    outcomes = (CheckOutcome(check_id="t.py::test_a", status="passed", evidence="nonce"),)
    notes = (VerdictNote(code="shared_process"),)
    verdict = Verdict(candidate=candidate, outcomes=outcomes, evidence="nonce", notes=notes)
    with Ledger(run.ledger_path) as ledger:
        blob = run.save_record(verdict)
        ledger.append(kinds.CandidateChecked(candidate=candidate, passed=1, failed=0, verdict=blob))


def test_two_passing_candidates_are_judged_by_one_sentence_without_a_note(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    for candidate in ("a" * 64, "b" * 64):
        add_passing_check(run, candidate)
    story = run_as_text(run)
    assert story.count("1 of 1 pass") == 2
    assert story.count(EVIDENCE_TEXTS["nonce"]) == 1
    assert "note:" not in story
