"""How far the evidence speaks for a candidate, as one number: a heuristic, and a pure function.

It starts from the doubt that is left when all that is known is that some test passes; each kind of evidence
lowers or raises that doubt. The constants are set by judgement, not measured (see docs/proof.md).
"""

from __future__ import annotations

import math

from suture.records import Evidence, Provenance, Verdict

__all__ = ["confidence_in", "confidence_when_warned"]

PRIOR_DOUBT = 0.6
WEIGHTS: dict[Provenance, float] = {
    "user": 1.0,
    "visible": 0.8,
    "property": 0.8,
    "spec": 0.5,
    "adversarial": 0.3,
    "oracle": 0.0,
}
"""What one passing check counts, by who wrote it; a hidden check counts nothing, for it has no place here."""
LEAST_DOUBT: dict[Evidence, float] = {"split": 0.02, "nonce": 0.05, "exit_status": 0.25}
"""What each kind of evidence cannot rule out, however many checks pass (see docs/verdicts.md)."""
WARNED = 1.5
"""How much more doubt there is about a change that may game the tests."""
COMMAND_WEIGHT = 3.0
"""A command that is judged by its exit status: more than one test, but nobody knows how many."""


def confidence_in(
    verdict: Verdict | None,
    threshold: float,
    *,
    mutation_score: float | None = None,
    agreement: float | None = None,
) -> float:
    """The confidence in a candidate, in [0, 1].

    Args:
        verdict: Its verdict, where there is one.
        threshold: A check with less trust counts nothing.
        mutation_score: The share of small changes of its changed lines that the tests notice.
        agreement: The share of the other plausible candidates that behave like it.

    Returns:
        0 where a deciding check fails, or none passed.
    """
    if verdict is None:
        return 0.0
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    if not all(outcome.passed for outcome in deciding):
        return 0.0
    weight = sum(
        COMMAND_WEIGHT if o.evidence == "exit_status" else o.trust * WEIGHTS[o.provenance] for o in deciding
    )
    if weight == 0:
        return 0.0
    doubt = PRIOR_DOUBT * (0.5 + 0.5 * math.exp(-weight / 4))
    if mutation_score is not None:
        doubt *= 1.3 - 0.8 * mutation_score
    if agreement is not None:
        doubt *= 1.25 - 0.5 * agreement
    return round(1 - min(1.0, max(doubt, LEAST_DOUBT[verdict.evidence])), 4)


def confidence_when_warned(confidence: float) -> float:
    """What is left of a confidence when something about the change is suspicious."""
    return round(1 - min(1.0, WARNED * (1 - confidence)), 4)
