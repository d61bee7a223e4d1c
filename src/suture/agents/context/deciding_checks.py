"""The checks of a verdict that decide: those whose trust reaches the threshold."""

from __future__ import annotations

from suture.core.records import Counterexample, Verdict


def count_deciding_checks(
    verdict: Verdict, baseline: Verdict | None, threshold: float
) -> tuple[int, int, int]:
    """Return `(passed, failed, regressed)`: how many deciding checks did so on a candidate.

    A check that passed on the baseline, the user's own code, regresses if it does not pass any more.
    """
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    passed = sum(outcome.passed for outcome in deciding)
    passed_before = baseline.passed if baseline else frozenset()
    # A check that is skipped now and passed before has regressed, so skipped checks are among these ids.
    deciding_ids = {outcome.check_id for outcome in verdict.outcomes if outcome.trust >= threshold}
    return passed, len(deciding) - passed, len((passed_before & deciding_ids) - verdict.passed)


def collect_deciding_facts(verdict: Verdict, threshold: float) -> tuple[Counterexample, ...]:
    """Return the counterexamples of deciding checks: nothing is repaired against an untrusted test."""
    outcomes = [o for o in verdict.outcomes if o.trust >= threshold and not o.passed]
    return tuple(o.counterexample for o in outcomes if o.counterexample is not None)
