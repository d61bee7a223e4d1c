"""A pass that counts is one that can be repeated: two verdicts on the same files, made into one."""

from __future__ import annotations

from dataclasses import replace

from suture.records import CheckOutcome, Counterexample, Verdict

__all__ = ["confirmed", "unrepeated"]

NOT_REPEATED = "passed in one run and not in the next, on the same files"
MOST_NAMED = 10


def unrepeated(first: Verdict, again: Verdict) -> tuple[str, ...]:
    """Ids of the checks that passed in the first run and not in the second, sorted."""
    return tuple(sorted(first.passed - again.passed))


def confirmed(first: Verdict, again: Verdict) -> Verdict:
    """The verdict of two runs: a check has passed where it passed in both of them.

    Args:
        first: Of one run, on code that passes it.
        again: Of a fresh run on the same files. What it says is kept, but a check that passed only in the
            first run has failed, also where the second skipped it or did not come to it.
    """
    wall_s = max(first.wall_s, again.wall_s)
    lost = unrepeated(first, again)
    if not lost:
        return replace(again, wall_s=wall_s)
    failed = {o.check_id: _failed(o) for o in (*first.outcomes, *again.outcomes) if o.check_id in lost}
    outcomes = [failed.pop(outcome.check_id, outcome) for outcome in again.outcomes]
    named = ", ".join(lost[:MOST_NAMED]) + (", and others" if lost[MOST_NAMED:] else "")
    return replace(
        again,
        outcomes=(*outcomes, *failed.values()),
        evidence=first.evidence,
        wall_s=wall_s,
        notes=(*again.notes, f"{NOT_REPEATED}: {named}"),
    )


def _failed(outcome: CheckOutcome) -> CheckOutcome:
    """What a check said where it did not pass; where it is not known, that it failed."""
    if outcome.status not in ("passed", "skipped"):
        return outcome
    fact = Counterexample(check_id=outcome.check_id, got=f"no steady result: it {NOT_REPEATED}")
    return replace(outcome, status="failed", counterexample=fact)
