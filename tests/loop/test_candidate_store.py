"""Candidates and verdicts of a run in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suture.core.ledger import Ledger, new_run
from suture.core.ledger.kinds import ComparedCall, FoundRepair, SearchFinished
from suture.core.records import Candidate, CheckOutcome, Verdict
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.loop.evaluation.change_warnings import LABEL_PREFIX, compare_with_rivals
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


SMALL, LARGE, OTHER = "a = 2\nb = 1\n", "a = 2\nb = 2\n", "a = 3\nb = 1\n"
"""What the repairs of a search make of a file. The change to `SMALL` is a part of the change to `LARGE`."""


def record_search(ledger: Ledger, store: CandidateStore, texts: Sequence[str]) -> list[Candidate]:
    """Record a search whose first repair was proposed and has all others as rivals; return their candidates."""
    candidates = [Candidate(files={"a.py": text}, origin="mutation") for text in texts]
    labels = [f"repair {number}" for number in range(len(texts))]
    ledger.append(
        SearchFinished(
            candidates_tried=9,
            plausible_count=len(texts),
            compared_calls=(ComparedCall(call="a", before="1", answers=tuple(texts)),),
            repairs=tuple(
                FoundRepair(
                    label=label,
                    file="a.py",
                    score=0.2,
                    diff=f"to {candidate.files['a.py']}",
                    candidate=candidate.hash,
                )
                for label, candidate in zip(labels, candidates, strict=True)
            ),
        )
    )
    ledger.append(
        replace(
            store.make_proposal(replace(candidates[0], label=f"{LABEL_PREFIX}{labels[0]}")),
            rivals=len(texts) - 1,
            rival_descriptions=tuple(labels[1:]),
            score_share=1 / len(texts),
        )
    )
    return candidates


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([LARGE, SMALL], (0, 1.0, ())), ([LARGE, SMALL, OTHER], (1, 0.5, ("repair 2",)))],
)
def test_a_rival_that_a_minimised_repair_equals_is_no_rival(
    tmp_path: Path, texts: list[str], expected: tuple[int, float, tuple[str, ...]]
) -> None:
    folder = new_run(tmp_path)
    with Ledger(folder.ledger_path) as ledger:
        store = CandidateStore(folder, ledger)
        whole, small, *_ = record_search(ledger, store, texts)
        minimised = replace(small, parent=whole.hash)

        before = store.without_equal_rival(store.find_proposal(whole.hash), whole)
        rivals, share = store.count_rivals(
            store.without_equal_rival(store.find_proposal(whole.hash), minimised)
        )

        assert before == store.find_proposal(whole.hash)
        assert (rivals, share, store.describe_rivals(minimised)) == expected
        assert len(store.describe_rivals(whole)) == len(texts) - 1


def test_the_comparison_shows_the_text_of_a_minimised_repair(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    with Ledger(folder.ledger_path) as ledger:
        store = CandidateStore(folder, ledger)
        context: Any = SimpleNamespace(
            ledger=ledger, candidates=store, task=SimpleNamespace(files={"a.py": b"a = 1\nb = 1\n"})
        )
        whole, small, _ = record_search(ledger, store, [LARGE, SMALL, OTHER])
        equal = compare_with_rivals(replace(small, parent=whole.hash), MutationResult(), context)
        third = Candidate(files={"a.py": "a = 1\nb = 2\n"}, origin="mutation", parent=whole.hash)
        unequal = compare_with_rivals(third, MutationResult(), context)

    assert [change.diff for change in equal.changes] == [f"to {SMALL}", f"to {OTHER}"]
    assert [call.answers for call in equal.calls] == [(SMALL, OTHER)]
    assert equal.count == 2
    first, *others = unequal.changes
    assert "+b = 2" in first.diff
    assert "+a = 2" not in first.diff
    assert [change.diff for change in others] == [f"to {SMALL}", f"to {OTHER}"]
    assert [call.answers for call in unequal.calls] == [("", SMALL, OTHER)]
    assert unequal.count == 3
