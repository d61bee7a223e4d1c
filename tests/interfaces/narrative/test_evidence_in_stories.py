"""What decided, and what it is worth, is said once in the story of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from project_runs import add_healed_run
from suture.core.ledger import Ledger, RunFolder, kinds, load_result
from suture.core.records import CheckOutcome, Task, Verdict, VerdictNote
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.interfaces.narrative.run_story import run_as_json, run_as_text
from suture.interfaces.narrative.wording import EVIDENCE_TEXTS
from suture.judge.certificates import Certificate
from suture.judge.certificates.certificate import CERTIFICATE_FILE, render_certificate, seal_certificate
from suture.judge.mutation_testing.mutant_runs import MutantRun, MutationResult


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
    assert story.count("the only check passes") == 2
    assert story.count(EVIDENCE_TEXTS["nonce"]) == 1
    assert "note:" not in story


def test_replies_that_brought_no_new_code_are_counted(tmp_path: Path) -> None:
    """One reply repeats a candidate, one holds no code, and one never arrived."""
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    proposal = kinds.CandidateProposed(candidate="a" * 64, blob="b", origin="sample")
    with Ledger(run.ledger_path) as ledger:
        ledger.append(proposal)
        ledger.append(replace(proposal, origin="repair"))
        ledger.append(kinds.MoveFailed(error_type="MalformedReply", message="no code"))
        ledger.append(kinds.MoveFailed(error_type="ModelTimeout", message="no reply in time"))
    assert run_as_json(run)["replies_without_code"] == 2
    assert run_as_text(run).endswith("; 2 replies brought no new code")
    result = load_result(run)
    assert result is not None
    assert (
        list(render_short_result(result, run))[-1]
        .partition(". More")[0]
        .endswith("2 replies brought no new code")
    )


def test_deliberate_mistakes_that_no_test_notices_are_named(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    mutants = tuple(
        MutantRun(path="a.py", line=line, label=f"line {line}: < becomes <=", diff="", killed=line == 3)
        for line in (3, 12)
    )
    certificate = Certificate(
        task=Task(statement="heal", module="a.py"),
        project={},
        project_hash="",
        diff="",
        result={},
        evidence="nonce",
        after={},
        mutation=MutationResult(selected=2, mutants=mutants),
    )
    run.write_text(CERTIFICATE_FILE, render_certificate(seal_certificate(certificate)))
    written = kinds.CertificateWritten(
        file=CERTIFICATE_FILE, fixed=1, edits=1, edits_found=1, is_minimal=True, statements=2, covered=2, mutants=2,
        killed=1, confidence=0.5,
    )  # fmt: skip
    with Ledger(run.ledger_path) as ledger:
        ledger.append(written)
    story = run_as_text(run)
    assert "not noticed: a.py, line 12: < becomes <=" in story
    assert "line 3:" not in story
