"""Candidates and verdicts of a run in its folder."""

from __future__ import annotations

from pathlib import Path

from suture.core.ledger import Ledger, new_run
from suture.core.records import CheckOutcome, Verdict
from suture.loop.services.candidate_store import CandidateStore
from suture.loop.tuning import MAX_REMEMBERED_VERDICTS


def make_verdict(candidate: str) -> Verdict:
    outcome = CheckOutcome(check_id="test_a.py::test_a", status="passed")
    return Verdict(candidate=candidate, outcomes=(outcome,), evidence="nonce")


def test_a_verdict_that_was_used_lately_is_neither_read_nor_written_again(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    with Ledger(folder.ledger_path) as ledger:
        store, verdict = CandidateStore(folder, ledger), make_verdict("0")
    blob = store.save(verdict)
    (folder.path / "blobs" / blob).unlink()

    assert store.load_verdict(blob) is verdict
    assert store.save(verdict) == blob
    assert not (folder.path / "blobs" / blob).exists()


def test_older_verdicts_are_read_from_the_run_folder(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    with Ledger(folder.ledger_path) as ledger:
        store, verdict = CandidateStore(folder, ledger), make_verdict("0")
    blob = store.save(verdict)
    for number in range(MAX_REMEMBERED_VERDICTS):
        store.save(make_verdict(f"other {number}"))

    loaded = store.load_verdict(blob)

    assert loaded == verdict
    assert loaded is not verdict
