"""Which failing tests a candidate runs before all others, and how many failures say enough of it.

A candidate that mends one of two faults shows it only on tests that the other one leaves alone. So the first
tests fail each in another way than those before, as far as there is one; with few of them, most candidates
are known to do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from suture.judge.trials.process_reports import TestReport, lines_of

MOST_GUIDING = 24
"""Failing tests that a candidate runs before all others."""
FAILED_AT_MOST = 4
"""Failing tests after which a candidate with which none passes is tried no further."""
FAILED_S, ONWARD_S = 0.06, 0.2
"""CPU seconds of failing tests that a candidate may take to show whether it mends one; and then how many."""
QUICK_S = 0.02
"""CPU seconds of a test that may stand before quicker ones."""
OTHERWISE = 1.0
"""What it counts that a test fails elsewhere, or with another exception, beside running all other lines."""


def order_target_tests(failed: Sequence[TestReport], traced: Mapping[str, TestReport]) -> list[TestReport]:
    """The quickest, then quick ones that fail least like those before, then all others in their order.

    Args:
        failed: Tests that fail, the quickest first.
        traced: Test -> the lines that it ran.
    """
    chosen = list(failed[:1])
    waiting = [seen for seen in failed[1:] if seen.outcome != "timeout" and seen.seconds <= QUICK_S]
    ran = {seen.test: _lines(traced.get(seen.test)) for seen in (*chosen, *waiting)}
    while waiting and len(chosen) < FAILED_AT_MOST:
        # `max` takes the first of equals: the quickest
        best = max(waiting, key=lambda seen: min(_apart(seen, other, ran) for other in chosen))
        waiting.remove(best)
        chosen.append(best)
    return [*chosen, *(seen for seen in failed if seen not in chosen)]


def choose_failure_limits(took_s: Sequence[float]) -> tuple[int, int]:
    """Failures after which a candidate is left: where no test has passed with it, and where one has.

    Args:
        took_s: CPU seconds of the failing tests, in the order of the run.
    """
    sums = list(accumulate(took_s))
    least = max(1, min(FAILED_AT_MOST, sum(used <= FAILED_S for used in sums)))
    return least, max(least, sum(used <= ONWARD_S for used in sums))


def _apart(one: TestReport, other: TestReport, ran: Mapping[str, frozenset[tuple[str, int]]]) -> float:
    """How unlike two tests fail: by the lines that only one of them ran, and by where and with what."""
    either = ran[one.test] | ran[other.test]
    lines = 1 - len(ran[one.test] & ran[other.test]) / len(either) if either else 0.0
    return lines + OTHERWISE * (_kind(one) != _kind(other))


def _kind(seen: TestReport) -> tuple[object, ...]:
    return seen.fault.partition(":")[0], *seen.reached[-1:]


def _lines(seen: TestReport | None) -> frozenset[tuple[str, int]]:
    told = {} if seen is None else seen.lines
    return frozenset((path, line) for path, packed in told.items() for line in lines_of(packed))
