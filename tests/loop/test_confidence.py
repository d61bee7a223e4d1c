from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import CheckOutcome, CheckStatus, Evidence, Provenance, Verdict
from suture.judge.confidence import (
    COEFFICIENTS,
    ConfidenceInputs,
    compute_certified_confidence,
    confidence_features,
    estimate_confidence,
    reduce_confidence_for_warnings,
)

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
    assert estimate_confidence(found, THRESHOLD) == 0.0


def test_one_failing_check_outweighs_all_others() -> None:
    outcomes = (*verdict(20).outcomes, CheckOutcome(check_id="x", status="failed"))
    assert estimate_confidence(Verdict(candidate="c", outcomes=outcomes, evidence="nonce"), THRESHOLD) == 0.0


def test_more_checks_never_lower_it_and_weaker_evidence_never_raises_it() -> None:
    by_count = [estimate_confidence(verdict(n), THRESHOLD) for n in (1, 2, 5, 20, 100)]
    assert by_count == sorted(by_count)
    kinds: tuple[Evidence, ...] = ("exit_status", "nonce", "split")
    by_kind = [
        estimate_confidence(verdict(50, evidence=kind), THRESHOLD, mutation_score=1, rivals=0)
        for kind in kinds
    ]
    assert by_kind == sorted(by_kind)
    assert by_kind[0] <= 0.75


def test_who_wrote_the_check_counts() -> None:
    written: tuple[Provenance, ...] = ("adversarial", "spec", "visible", "user")
    by_provenance = [estimate_confidence(verdict(3, provenance=who), THRESHOLD) for who in written]
    assert by_provenance == sorted(by_provenance)
    assert len(set(by_provenance)) == len(written)


@given(
    fixed=st.floats(0, 200),
    score=SCORES,
    rivals=st.none() | st.integers(0, 50),
)
def test_each_feature_can_only_speak_for_a_candidate(
    fixed: float, score: float | None, rivals: int | None
) -> None:
    assert all(constant >= 0 for constant in COEFFICIENTS[1:])
    grounds = ConfidenceInputs(fixed=fixed, mutation_score=score, rivals=rivals)
    better = [
        replace(grounds, fixed=fixed + 1),
        replace(grounds, mutation_score=1.0),
        replace(grounds, rivals=0),
    ]
    for more in better:
        assert all(
            a <= b for a, b in zip(confidence_features(grounds), confidence_features(more), strict=True)
        )


def failing_before(count: int) -> Verdict:
    """The verdict on code on which the first of some checks failed."""
    outcomes = verdict(20).outcomes
    failed = tuple(replace(outcome, status="failed") for outcome in outcomes[:count])
    return Verdict(candidate="b", outcomes=(*failed, *outcomes[count:]), evidence="nonce")


def test_more_failing_tests_pin_a_repair_better() -> None:
    known = [failing_before(n) for n in (1, 2, 4, 8)]
    found = [estimate_confidence(verdict(20), THRESHOLD, before=before, mutation_score=0) for before in known]
    assert found == sorted(set(found))


def test_tests_that_rivals_pass_too_do_not_speak_against_them() -> None:
    """Twenty tests were fixed, `or` for `and` was wrong, and its rival was right: the confidence was 0.95."""
    few, many = (
        estimate_confidence(verdict(20), THRESHOLD, before=failing_before(n), rivals=1) for n in (2, 20)
    )
    assert few == many < 0.9
    five = estimate_confidence(verdict(20), THRESHOLD, before=failing_before(20), rivals=5)
    assert five < many


def test_the_tests_say_less_the_less_a_repair_stands_out_among_its_rivals() -> None:
    """Two wrong repairs had at most half of the scores, with confidences of 0.93 and 0.74."""
    known: dict[str, Any] = {"before": failing_before(3), "mutation_score": 1.0, "rivals": 1}

    def by(share: float | None) -> float:
        return estimate_confidence(verdict(20), THRESHOLD, **known, share=share)

    assert by(0.5) == 0.7071
    assert by(0.1) < by(0.44) < by(0.5) < by(0.7) < by(1.0) == by(None)


def test_what_a_certificate_only_claims_can_only_lower_it() -> None:
    before = failing_before(1)

    def certified(rivals: int, *, share: float = 0.0, warned: bool = False) -> float:
        grounds: dict[str, Any] = {"before": before, "mutation_score": 0.9, "share": share}
        return compute_certified_confidence(
            verdict(20), THRESHOLD, **grounds, rivals=rivals, has_warnings=warned
        )

    proved = estimate_confidence(verdict(20), THRESHOLD, before=before, mutation_score=0.9)
    assert certified(-3) == certified(0) == proved > certified(5) > certified(5, warned=True)
    assert certified(1) <= proved
    assert certified(1, share=0.1) < certified(1, share=1.0) == certified(1)
    assert certified(1, share=-1.0) == certified(1, share=7.0) == certified(1)


def test_unguarded_lines_and_rivals_lower_it() -> None:
    known = failing_before(1)
    by_score = [
        estimate_confidence(verdict(20), THRESHOLD, before=known, mutation_score=s / 4) for s in range(5)
    ]
    assert by_score == sorted(set(by_score))
    by_rivals = [estimate_confidence(verdict(20), THRESHOLD, before=known, rivals=n) for n in (12, 3, 1, 0)]
    assert by_rivals == sorted(set(by_rivals))


def test_a_repair_that_one_test_pins_and_many_rival_is_worth_less_than_a_well_pinned_one() -> None:
    """The order that the constants by judgement did not have: the wrong one had the highest value."""
    loose = estimate_confidence(
        verdict(3), THRESHOLD, before=failing_before(1), mutation_score=1.0, rivals=11
    )
    tight = estimate_confidence(verdict(9), THRESHOLD, before=failing_before(6), mutation_score=0.9, rivals=0)
    assert loose < 0.7 < 0.85 < tight


def test_a_warning_adds_doubt() -> None:
    assert reduce_confidence_for_warnings(0.8) == 0.7
    assert reduce_confidence_for_warnings(0.1) == 0.0
