"""The probability that a candidate which passes is right: a small model fitted to graded claims.

A logistic model with three features, each of which can only speak for a candidate. Its constants were fitted
to repairs of the search whose truth is known, by `benchmarks/confidence.py`; docs/results.md says how many,
and how far the numbers held on claims that had no part in it. What no claim there could show (who wrote a
check, what a kind of evidence cannot rule out, what a warning means) is set by judgement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from suture.core.records import CheckOutcome, Evidence, Provenance, Verdict

CONSTANTS = (-0.42, 1.22, 1.2, 0.6)
"""For nothing known, and for one of each feature, in the order of `confidence_features`; on the scale of log odds."""
USUAL_SCORE = 0.9
"""Of mutants, where nobody ran any or there are none: about the mean of the claims that were fitted to."""
USUAL_RIVALS = 1
"""Where no search compared any."""
FIXED_WITH_RIVALS = 2.0
"""The most that fixed checks count where there are rivals: these pass them too, so that the checks have found
the place and cannot say which of the changes is right. By 15 claims with rivals (docs/results.md)."""
RIVALRY = 0.5
"""The power of a repair's share of the scores of itself and its rivals that its confidence cannot pass. The
share itself says too little: the search's scores order repairs, and where rivals are many the likeliest is
right more often than its part of them. By 21 claims with rivals (docs/results.md)."""
WEIGHTS: dict[Provenance, float] = {
    "user": 1.0,
    "visible": 0.8,
    "smoke": 0.2,
    "property": 0.8,
    "spec": 0.5,
    "adversarial": 0.3,
    "oracle": 0.0,
}
"""What one passing check counts, by who wrote it; a hidden check counts nothing, for it has no place here."""
MIN_DOUBT: dict[Evidence, float] = {"split": 0.02, "nonce": 0.05, "report": 0.15, "exit_status": 0.25}
"""What each kind of evidence cannot rule out, however many checks pass (see docs/verdicts.md)."""
WARNED = 1.5
"""How much more doubt there is about a change that may game the tests."""
COMMAND_WEIGHT = 3.0
"""A command that is judged by its exit status: more than one test, but nobody knows how many."""
NEW = 0.5
"""What a check counts for code that is new: it never failed, so that it pins less."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceInputs:
    """What speaks for a candidate that passes every check that decides.

    Attributes:
        fixed: The checks that failed before and pass now, by their weight: they pin what was wrong. Those
            that passed before say little of a change: a large suite passes on most wrong ones.
        mutation_score: The share of small changes of its changed lines that the tests notice; those that were
            not run count as not noticed. `None` where there are none, or nobody looked.
        rivals: Other repairs that pass and answer otherwise; `None` where they were not compared.
    """

    fixed: float
    mutation_score: float | None = None
    rivals: int | None = None


def confidence_features(grounds: ConfidenceInputs) -> tuple[float, ...]:
    """The features of the model, of which more is never worse.

    Args:
        grounds: What speaks for a candidate.
    """
    score = USUAL_SCORE if grounds.mutation_score is None else grounds.mutation_score
    rivals = USUAL_RIVALS if grounds.rivals is None else grounds.rivals
    fixed = min(grounds.fixed, FIXED_WITH_RIVALS) if grounds.rivals else grounds.fixed
    return math.log2(1 + fixed), score, -math.log2(1 + rivals)


def estimate_confidence(
    verdict: Verdict | None,
    threshold: float,
    *,
    before: Verdict | None = None,
    mutation_score: float | None = None,
    rivals: int | None = None,
    share: float | None = None,
) -> float:
    """The confidence in a candidate, in [0, 1].

    Args:
        verdict: Its verdict, where there is one.
        threshold: A check with less trust counts nothing.
        before: The verdict on the code before the change, where there was code.
        mutation_score: As in `ConfidenceInputs`.
        rivals: As in `ConfidenceInputs`.
        share: In (0, 1], its part of the scores of itself and those rivals, where they were compared.

    Returns:
        0 where a deciding check fails, or none passed.
    """
    if verdict is None:
        return 0.0
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    if not all(outcome.passed for outcome in deciding):
        return 0.0
    if not any(map(_weight, deciding)):
        return 0.0
    passed_before = before.passed if before is not None else frozenset()
    fixed = sum(_weight(outcome) for outcome in deciding if outcome.check_id not in passed_before)
    fixed *= NEW if before is None else 1.0
    grounds = ConfidenceInputs(fixed=fixed, mutation_score=mutation_score, rivals=rivals)
    odds = sum(a * b for a, b in zip(CONSTANTS, (1.0, *confidence_features(grounds)), strict=True))
    most = 1.0 if share is None else share**RIVALRY
    return round(min(1 / (1 + math.exp(-odds)), 1 - MIN_DOUBT[verdict.evidence], most), 4)


def compute_certified_confidence(
    verdict: Verdict,
    threshold: float,
    *,
    before: Verdict | None,
    mutation_score: float | None,
    rivals: int,
    share: float,
    warned: bool,
) -> float:
    """What a certificate says, which only claims what nobody can find out anew: a claim can only lower it.

    Args:
        verdict: What the checks said.
        threshold: As in `estimate_confidence`.
        before: As in `estimate_confidence`.
        mutation_score: As in `ConfidenceInputs`.
        rivals: Other repairs that are said to pass; none are as if nobody had looked for any.
        share: As in `estimate_confidence`, as it is said; what can be no share is as if none was.
        warned: Whether it is said that the change may game the tests.
    """
    found = estimate_confidence(
        verdict,
        threshold,
        before=before,
        mutation_score=mutation_score,
        rivals=rivals if rivals > 0 else None,
        share=share if 0 < share <= 1 else None,
    )
    return reduce_confidence_for_warnings(found) if warned else found


def _weight(outcome: CheckOutcome) -> float:
    return (
        COMMAND_WEIGHT if outcome.evidence == "exit_status" else outcome.trust * WEIGHTS[outcome.provenance]
    )


def reduce_confidence_for_warnings(confidence: float) -> float:
    """What is left of a confidence when something about the change is suspicious."""
    return round(1 - min(1.0, WARNED * (1 - confidence)), 4)
