"""Estimate the probability that a passing candidate is right, by a small model fitted to graded results.

The model is logistic and has three features. Its coefficients were fitted by `benchmarks/confidence.py` to
repairs of the search whose correctness is known. docs/results.md says how many repairs these are, and how well
the model predicted results that had no part in the fit. The other numbers below, about the author of a check,
the kind of evidence and warnings, are chosen by judgement.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suture.core.records import Check, CheckOutcome, Evidence, Provenance, Verdict

COEFFICIENTS = (-0.42, 1.22, 1.2, 0.6)
"""The intercept, and one coefficient per feature in the order of `confidence_features`, in log odds."""
DEFAULT_MUTATION_SCORE = 0.9
"""Mutation score that is assumed if none was measured: about the mean of the fitted results."""
DEFAULT_RIVALS = 1
"""Number of rivals that is assumed if no search compared any. That it is one, and not zero, is by judgement."""
MAX_FIXED_WITH_RIVALS = 2.0
"""Limit of the weight of fixed checks if there are rivals. Rivals pass these checks too, so the checks show the
faulty place and not which change of it is right. Chosen on 15 results with rivals (docs/results.md)."""
SHARE_EXPONENT = 0.5
"""The confidence is at most the repair's share of the scores, to this power. The share alone says too little:
the scores order repairs, and with many rivals the best one is right more often than its share. Chosen on 21
results with rivals (docs/results.md)."""
WEIGHTS: dict[Provenance, float] = {
    "user": 1.0,
    "visible": 0.8,
    "tool": 1.0,
    "smoke": 0.2,
    "property": 0.8,
    "spec": 0.5,
    "adversarial": 0.3,
    "oracle": 0.0,
}
"""Weight of one passing check, by who wrote it. A hidden check weighs nothing: it must not occur here."""
MIN_DOUBT: dict[Evidence, float] = {"split": 0.02, "nonce": 0.05, "report": 0.15, "exit_status": 0.25}
"""Probability of wrong code that a kind of evidence cannot rule out, however many checks pass (see
docs/verdicts.md)."""
WARNING_DOUBT_FACTOR = 1.5
"""How many times more doubt there is about a change that may game the tests."""
MAX_CAPABILITY_CONFIDENCE = 0.5
"""Limit for a change that newly reaches for the test machinery or the interpreter. It is below the default of
`ci.confidence` (0.7) and above that of `loop.abstain_below` (0.2): no pipeline delivers the change automatically, and a
person can still apply it."""
MAX_CONFIDENCE_WITH_SIGNS = 0.5
"""Limit for a change that has probably memorised examples, or silences linters, for the same reason. An ordinary
warning lowers the confidence too little for that: it leaves 0.7 of 0.8."""
MAX_CONTRADICTED_CONFIDENCE = 0.5
"""Limit for code that fails a generated test below the trust threshold, for the same reason: such a test decides
nothing, and of those that small models write a third to two thirds are right (docs/loop.md)."""
MAX_WEAKLY_TESTED_CONFIDENCE = 0.6
"""Limit for a repair in whose lines the tests miss more than half of the deliberate mistakes: below the default of
`ci.confidence` (0.7), however many tests pass. Chosen by judgement; not measured."""
COMMAND_WEIGHT = 3.0
"""Weight of a command that is judged by its exit status: it stands for more than one test, but their number is
unknown."""
NEW_CODE_FACTOR = 0.5
"""Weight factor of checks of new code. They never failed, so they say less."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceInputs:
    """What speaks for a candidate that passes every check that decides.

    Attributes:
        fixed: Summed weight of the checks that failed before and pass now. Checks that passed before say
            little, because a large suite passes on most wrong changes.
        mutation_score: The share of mutants of the changed lines that the tests notice, in [0, 1]; mutants
            that were not run count as not noticed. `None` if there are none, or none were generated.
        rivals: How many other repairs pass and behave differently; `None` if they were not compared.
    """

    fixed: float
    mutation_score: float | None = None
    rivals: int | None = None


def confidence_features(inputs: ConfidenceInputs) -> tuple[float, ...]:
    """Return the features of the model; for each, more is never worse."""
    score = DEFAULT_MUTATION_SCORE if inputs.mutation_score is None else inputs.mutation_score
    rivals = DEFAULT_RIVALS if inputs.rivals is None else inputs.rivals
    fixed = min(inputs.fixed, MAX_FIXED_WITH_RIVALS) if inputs.rivals else inputs.fixed
    return math.log2(1 + fixed), score, -math.log2(1 + rivals)


def estimate_confidence(
    verdict: Verdict | None,
    threshold: float,
    *,
    checks: Sequence[Check] = (),
    before: Verdict | None = None,
    mutation_score: float | None = None,
    rivals: int | None = None,
    share: float | None = None,
) -> float:
    """Return the confidence in a candidate, in [0, 1]; 0 if a deciding check fails or none passes.

    `mutation_score` and `rivals` are those of `ConfidenceInputs`.

    Args:
        threshold: Checks with less trust count nothing.
        checks: The task's checks. Those with the same source count as one.
        before: The verdict on the code before the change, if there was code.
        share: The candidate's part of the summed scores of itself and its rivals, in (0, 1], if they were
            compared.
    """
    if verdict is None:
        return 0.0
    deciding = [
        outcome for outcome in verdict.outcomes if outcome.trust >= threshold and outcome.status != "skipped"
    ]
    if not all(outcome.passed for outcome in deciding) or not any(map(_get_weight, deciding)):
        return 0.0
    passed_before = before.passed if before is not None else frozenset()
    fixed = _sum_weights((outcome for outcome in deciding if outcome.check_id not in passed_before), checks)
    fixed *= NEW_CODE_FACTOR if before is None else 1.0
    inputs = ConfidenceInputs(fixed=fixed, mutation_score=mutation_score, rivals=rivals)
    terms = zip(COEFFICIENTS, (1.0, *confidence_features(inputs)), strict=True)
    log_odds = sum(coefficient * feature for coefficient, feature in terms)
    probability = 1 / (1 + math.exp(-log_odds))
    share_limit = 1.0 if share is None else share**SHARE_EXPONENT
    return round(min(probability, 1 - MIN_DOUBT[verdict.evidence], share_limit), 4)


def compute_certified_confidence(
    verdict: Verdict,
    threshold: float,
    *,
    checks: Sequence[Check] = (),
    before: Verdict | None,
    mutation_score: float | None,
    rivals: int,
    share: float,
    has_warnings: bool,
    has_capabilities: bool = False,
    has_limiting_signs: bool = False,
    has_failing_tests: bool = False,
    has_weak_tests: bool = False,
) -> float:
    """Return the confidence of a certificate.

    The rivals, the share and the warnings are mere claims of the certificate, so they can only lower it.

    Args:
        rivals: How many other repairs are claimed to pass; 0 counts as if none had been compared.
        share: The claimed share, as in `estimate_confidence`; a number outside (0, 1] counts as none.
        has_warnings: Whether the certificate claims signs that the change games the tests.
        has_capabilities: Whether the change newly reaches for the test machinery or the interpreter.
        has_limiting_signs: Whether one of these signs limits the confidence, such as memorised examples.
        has_failing_tests: Whether the certificate claims that generated tests fail, which decided nothing.
        has_weak_tests: Whether the tests of a repair notice few deliberate mistakes in its lines.
    """
    confidence = estimate_confidence(
        verdict,
        threshold,
        checks=checks,
        before=before,
        mutation_score=mutation_score,
        rivals=rivals if rivals > 0 else None,
        share=share if 0 < share <= 1 else None,
    )
    if has_weak_tests:
        confidence = limit_confidence_for_weak_tests(confidence)
    if has_warnings:
        confidence = reduce_confidence_for_warnings(confidence)
    if has_limiting_signs:
        confidence = limit_confidence_for_signs(confidence)
    if has_failing_tests:
        confidence = limit_confidence_for_contradiction(confidence)
    return limit_confidence_for_capabilities(confidence) if has_capabilities else confidence


def _sum_weights(outcomes: Iterable[CheckOutcome], checks: Sequence[Check]) -> float:
    """Return the summed weight of some checks, of which those with the same source count as one."""
    sources = {check.id: _normalise_source(check.source) for check in checks if check.source.strip()}
    weights: dict[tuple[bool, str], float] = {}
    for outcome in outcomes:
        source = sources.get(outcome.check_id)
        key = (source is not None, outcome.check_id if source is None else source)
        weights[key] = max(weights.get(key, 0.0), _get_weight(outcome))
    return sum(weights.values())


def _normalise_source(source: str) -> str:
    """Return a check's source without comments and layout."""
    try:
        return ast.unparse(ast.parse(source))
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # a call in another language
        return " ".join(source.split())


def _get_weight(outcome: CheckOutcome) -> float:
    if outcome.evidence == "exit_status":
        return COMMAND_WEIGHT
    return outcome.trust * WEIGHTS[outcome.provenance]


def reduce_confidence_for_warnings(confidence: float) -> float:
    """Return what remains of a confidence if the change has signs of gaming the tests."""
    return round(1 - min(1.0, WARNING_DOUBT_FACTOR * (1 - confidence)), 4)


def limit_confidence_for_capabilities(confidence: float) -> float:
    """Return what remains of a confidence if the change has new capabilities (see docs/verdicts.md)."""
    return min(confidence, MAX_CAPABILITY_CONFIDENCE)


def limit_confidence_for_signs(confidence: float) -> float:
    """Return what remains of a confidence if the change has memorised examples, or silences linters."""
    return min(confidence, MAX_CONFIDENCE_WITH_SIGNS)


def limit_confidence_for_weak_tests(confidence: float) -> float:
    """Return what remains of a confidence if the tests notice few deliberate mistakes in the changed lines."""
    return min(confidence, MAX_WEAKLY_TESTED_CONFIDENCE)


def limit_confidence_for_contradiction(confidence: float) -> float:
    """Return what remains of a confidence if a generated test that decides nothing fails on the code."""
    return min(confidence, MAX_CONTRADICTED_CONFIDENCE)
