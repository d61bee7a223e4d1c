"""The confidence in a candidate depends on its checks, rivals, mutants and warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import Check, CheckOutcome, CheckStatus, Evidence, Provenance, Verdict
from suture.judge.confidence import (
    COEFFICIENTS,
    MAX_WEAKLY_TESTED_CONFIDENCE,
    ConfidenceInputs,
    compute_certified_confidence,
    confidence_features,
    estimate_confidence,
    reduce_confidence_for_warnings,
)
from suture.judge.mutation_testing.mutant_runs import MutantRun, MutationResult

THRESHOLD = 0.9
SCORES = st.none() | st.floats(0, 1)


def make_verdict(
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
    "verdict",
    [
        None,
        make_verdict(0),
        make_verdict(status="failed"),
        make_verdict(status="skipped"),
        make_verdict(trust=0.5),
        make_verdict(provenance="oracle"),
    ],
)
def test_a_verdict_without_evidence_has_no_confidence(verdict: Verdict | None) -> None:
    assert estimate_confidence(verdict, THRESHOLD) == 0.0


def test_checks_with_the_same_source_count_as_one() -> None:
    sources = ("assert f(1) == 2\n", "assert f(1)==2  # again\n", "f(1) => 2", "f(1)  =>  2", "", "")
    checks = [
        Check(id=str(number), provenance="user", source=source) for number, source in enumerate(sources)
    ]
    counts = [estimate_confidence(make_verdict(n), THRESHOLD, checks=checks) for n in (1, 2, 3, 4, 5, 6)]
    assert (
        counts[0] == counts[1] < counts[2] == counts[3] < counts[4] < counts[5]
    )  # a test file has no source here


def test_one_failing_check_outweighs_all_others() -> None:
    outcomes = (*make_verdict(20).outcomes, CheckOutcome(check_id="x", status="failed"))
    assert estimate_confidence(Verdict(candidate="c", outcomes=outcomes, evidence="nonce"), THRESHOLD) == 0.0


def test_confidence_grows_with_checks_and_evidence() -> None:
    by_count = [estimate_confidence(make_verdict(n), THRESHOLD) for n in (1, 2, 5, 20, 100)]

    assert by_count == sorted(by_count)
    kinds: tuple[Evidence, ...] = ("exit_status", "nonce", "split")
    by_kind = [
        estimate_confidence(make_verdict(50, evidence=kind), THRESHOLD, mutation_score=1, rivals=0)
        for kind in kinds
    ]
    assert by_kind == sorted(by_kind)
    assert by_kind[0] <= 0.75


def test_confidence_depends_on_the_provenance_of_the_checks() -> None:
    provenances: tuple[Provenance, ...] = ("adversarial", "spec", "visible", "user")
    by_provenance = [
        estimate_confidence(make_verdict(3, provenance=provenance), THRESHOLD) for provenance in provenances
    ]
    assert by_provenance == sorted(by_provenance)
    assert len(set(by_provenance)) == len(provenances)


@given(
    fixed=st.floats(0, 200),
    score=SCORES,
    rivals=st.none() | st.integers(0, 50),
)
def test_better_inputs_never_lower_a_confidence_feature(
    fixed: float, score: float | None, rivals: int | None
) -> None:
    assert all(constant >= 0 for constant in COEFFICIENTS[1:])
    inputs = ConfidenceInputs(fixed=fixed, mutation_score=score, rivals=rivals)
    improvements = [
        replace(inputs, fixed=fixed + 1),
        replace(inputs, mutation_score=1.0),
        replace(inputs, rivals=0),
    ]
    for improved in improvements:
        assert all(
            a <= b for a, b in zip(confidence_features(inputs), confidence_features(improved), strict=True)
        )


def make_failing_verdict(count: int) -> Verdict:
    """Return a verdict of twenty checks of which the first `count` fail."""
    outcomes = make_verdict(20).outcomes
    failed = tuple(replace(outcome, status="failed") for outcome in outcomes[:count])
    return Verdict(candidate="b", outcomes=(*failed, *outcomes[count:]), evidence="nonce")


def test_confidence_grows_with_the_number_of_repaired_tests() -> None:
    verdicts_before = [make_failing_verdict(n) for n in (1, 2, 4, 8)]
    confidences = [
        estimate_confidence(make_verdict(20), THRESHOLD, before=before, mutation_score=0)
        for before in verdicts_before
    ]
    assert confidences == sorted(set(confidences))


def test_repaired_tests_do_not_raise_confidence_over_a_rival() -> None:
    """In a real run, a wrong repair of twenty tests had a confidence of 0.95 although its rival was right."""
    for_two_tests, for_twenty_tests = (
        estimate_confidence(make_verdict(20), THRESHOLD, before=make_failing_verdict(n), rivals=1)
        for n in (2, 20)
    )
    assert for_two_tests == for_twenty_tests < 0.9
    with_five_rivals = estimate_confidence(
        make_verdict(20), THRESHOLD, before=make_failing_verdict(20), rivals=5
    )
    assert with_five_rivals < for_twenty_tests


def test_confidence_falls_with_the_share_of_the_scores() -> None:
    """In real runs, two wrong repairs had at most half of the scores, but confidences of 0.93 and 0.74."""
    evidence: dict[str, Any] = {"before": make_failing_verdict(3), "mutation_score": 1.0, "rivals": 1}

    def confidence_at(share: float | None) -> float:
        return estimate_confidence(make_verdict(20), THRESHOLD, **evidence, share=share)

    assert confidence_at(0.5) == 0.7071
    assert (
        confidence_at(0.1)
        < confidence_at(0.44)
        < confidence_at(0.5)
        < confidence_at(0.7)
        < confidence_at(1.0)
        == confidence_at(None)
    )


def test_unproved_claims_of_a_certificate_only_lower_the_confidence() -> None:
    before = make_failing_verdict(1)

    def certify(rivals: int, *, share: float = 0.0, has_warnings: bool = False) -> float:
        evidence: dict[str, Any] = {"before": before, "mutation_score": 0.9, "share": share}
        return compute_certified_confidence(
            make_verdict(20), THRESHOLD, **evidence, rivals=rivals, has_warnings=has_warnings
        )

    estimated = estimate_confidence(make_verdict(20), THRESHOLD, before=before, mutation_score=0.9)

    assert certify(-3) == certify(0) == estimated > certify(5) > certify(5, has_warnings=True)
    assert certify(1) <= estimated
    assert certify(1, share=0.1) < certify(1, share=1.0) == certify(1)
    assert certify(1, share=-1.0) == certify(1, share=7.0) == certify(1)


def test_many_passing_tests_do_not_outweigh_that_they_miss_most_mistakes_in_the_changed_lines() -> None:
    evidence: dict[str, Any] = {
        "before": make_failing_verdict(20), "mutation_score": 4 / 12, "rivals": 0, "share": 0.0, "has_warnings": False,
    }  # fmt: skip
    loose, weak = (
        compute_certified_confidence(make_verdict(20), THRESHOLD, **evidence, has_weak_tests=has_weak_tests)
        for has_weak_tests in (False, True)
    )
    assert loose > 0.7 > MAX_WEAKLY_TESTED_CONFIDENCE == weak


@pytest.mark.parametrize(
    ("noticed", "count", "is_weak"), [(4, 12, True), (6, 12, False), (0, 3, False), (1, 4, True)]
)
def test_tests_are_weak_if_they_miss_more_than_half_of_enough_mistakes(
    noticed: int, count: int, is_weak: bool
) -> None:
    runs = tuple(
        MutantRun(path="a.py", line=1, label=str(n), diff="", killed=n < noticed) for n in range(count)
    )
    assert MutationResult(selected=count, mutants=runs).shows_weak_tests is is_weak


def test_surviving_mutants_and_rivals_lower_the_confidence() -> None:
    before = make_failing_verdict(1)
    by_score = [
        estimate_confidence(make_verdict(20), THRESHOLD, before=before, mutation_score=score / 4)
        for score in range(5)
    ]

    assert by_score == sorted(set(by_score))
    by_rivals = [
        estimate_confidence(make_verdict(20), THRESHOLD, before=before, rivals=count)
        for count in (12, 3, 1, 0)
    ]
    assert by_rivals == sorted(set(by_rivals))


def test_a_repair_of_one_test_with_many_rivals_has_less_confidence() -> None:
    """The earlier constants, which were set by judgement, gave the wrong repair the highest value."""
    loose = estimate_confidence(
        make_verdict(3), THRESHOLD, before=make_failing_verdict(1), mutation_score=1.0, rivals=11
    )
    tight = estimate_confidence(
        make_verdict(9), THRESHOLD, before=make_failing_verdict(6), mutation_score=0.9, rivals=0
    )
    assert loose < 0.7 < 0.85 < tight


def test_a_warning_lowers_the_confidence() -> None:
    assert reduce_confidence_for_warnings(0.8) == 0.7
    assert reduce_confidence_for_warnings(0.1) == 0.0
