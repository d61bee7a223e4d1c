from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.loop.confidence import confidence_in, confidence_when_warned
from suture.records import CheckOutcome, CheckStatus, Evidence, Provenance, Verdict

THRESHOLD = 0.9
SCORES = st.none() | st.floats(0, 1)


def verdict(
    count: int = 1,
    *,
    status: CheckStatus = "passed",
    provenance: Provenance = "user",
    evidence: Evidence = "nonce",
    trust: float = 1.0,
) -> Verdict:
    outcomes = tuple(
        CheckOutcome(check_id=str(n), status=status, provenance=provenance, evidence=evidence, trust=trust)
        for n in range(count)
    )
    return Verdict(candidate="c", outcomes=outcomes, evidence=evidence)


@pytest.mark.parametrize(
    "found",
    [
        None,
        verdict(0),
        verdict(status="failed"),
        verdict(status="skipped"),
        verdict(trust=0.5),
        verdict(provenance="oracle"),
    ],
)
def test_no_evidence_is_no_confidence(found: Verdict | None) -> None:
    assert confidence_in(found, THRESHOLD) == 0.0


def test_one_failing_check_outweighs_all_others() -> None:
    outcomes = (*verdict(20).outcomes, CheckOutcome(check_id="x", status="failed"))
    assert confidence_in(Verdict(candidate="c", outcomes=outcomes, evidence="nonce"), THRESHOLD) == 0.0


def test_more_checks_never_lower_it_and_weaker_evidence_never_raises_it() -> None:
    by_count = [confidence_in(verdict(n), THRESHOLD) for n in (1, 2, 5, 20, 100)]
    assert by_count == sorted(by_count)
    kinds: tuple[Evidence, ...] = ("exit_status", "nonce", "split")
    by_kind = [
        confidence_in(verdict(50, evidence=kind), THRESHOLD, mutation_score=1, agreement=1) for kind in kinds
    ]
    assert by_kind == sorted(by_kind)
    assert by_kind[0] <= 0.75


def test_who_wrote_the_check_counts() -> None:
    written: tuple[Provenance, ...] = ("adversarial", "spec", "visible", "user")
    by_provenance = [confidence_in(verdict(3, provenance=who), THRESHOLD) for who in written]
    assert by_provenance == sorted(by_provenance)
    assert len(set(by_provenance)) == len(written)


@given(count=st.integers(1, 200), mutation=SCORES, agreement=SCORES)
def test_it_is_a_share_and_better_scores_never_lower_it(
    count: int, mutation: float | None, agreement: float | None
) -> None:
    found = confidence_in(verdict(count), THRESHOLD, mutation_score=mutation, agreement=agreement)
    assert 0 <= found <= 0.95
    for better in itertools.product(
        [mutation, None if mutation is None else 1.0], [agreement, None if agreement is None else 1.0]
    ):
        assert found <= confidence_in(
            verdict(count), THRESHOLD, mutation_score=better[0], agreement=better[1]
        )


def test_unguarded_lines_and_disagreement_lower_it() -> None:
    plain = confidence_in(verdict(5), THRESHOLD)
    assert confidence_in(verdict(5), THRESHOLD, mutation_score=0.0) < plain
    assert confidence_in(verdict(5), THRESHOLD, agreement=0.0) < plain
    assert confidence_in(verdict(5), THRESHOLD, mutation_score=1.0) > plain


def test_a_warning_adds_doubt() -> None:
    assert confidence_when_warned(0.8) == 0.7
    assert confidence_when_warned(0.1) == 0.0
