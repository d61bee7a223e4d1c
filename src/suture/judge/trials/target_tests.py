"""Which failing tests a candidate runs first, and after how many failures it is dropped.

A candidate that fixes one of two faults shows it only on tests that the other fault does not affect. So the
first tests should each fail in another way. A few of them are enough to see that most candidates fix nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from suture.judge.trials.process_reports import TestReport, unpack_lines
from suture.judge.trials.tuning import (
    DIFFERENT_FAILURE_WEIGHT,
    FIRST_FAILURES_CPU_S,
    FURTHER_FAILURES_CPU_S,
    MAX_FIRST_FAILURES,
    QUICK_TEST_CPU_S,
)


def order_target_tests(failed: Sequence[TestReport], traced: Mapping[str, TestReport]) -> list[TestReport]:
    """Order failing tests: the quickest, then quick ones that fail most differently, then the others.

    Args:
        failed: Reports of the failing tests, the quickest first.
        traced: Test id -> report with the lines that the test ran.
    """
    chosen = list(failed[:1])
    waiting = [one for one in failed[1:] if one.outcome != "timeout" and one.seconds <= QUICK_TEST_CPU_S]
    lines = {one.test: _get_lines(traced.get(one.test)) for one in (*chosen, *waiting)}
    while waiting and len(chosen) < MAX_FIRST_FAILURES:
        # `max` returns the first of equals, which is the quickest.
        best = max(waiting, key=lambda one: min(_distance(one, other, lines) for other in chosen))
        waiting.remove(best)
        chosen.append(best)
    return [*chosen, *(one for one in failed if one not in chosen)]


def choose_failure_limits(durations_s: Sequence[float]) -> tuple[int, int]:
    """Return after how many failures a candidate is dropped: if no test has passed, and if one has.

    Args:
        durations_s: CPU seconds of the target tests, in the order of the run.
    """
    sums = list(accumulate(durations_s))
    first = max(1, min(MAX_FIRST_FAILURES, sum(used <= FIRST_FAILURES_CPU_S for used in sums)))
    return first, max(first, sum(used <= FURTHER_FAILURES_CPU_S for used in sums))


def _distance(one: TestReport, other: TestReport, lines: Mapping[str, frozenset[tuple[str, int]]]) -> float:
    """Return how differently two tests fail: by the lines they run, and by place and exception."""
    union = lines[one.test] | lines[other.test]
    unshared = 1 - len(lines[one.test] & lines[other.test]) / len(union) if union else 0.0
    return unshared + DIFFERENT_FAILURE_WEIGHT * (_failure_kind(one) != _failure_kind(other))


def _failure_kind(report: TestReport) -> tuple[object, ...]:
    return report.error.partition(":")[0], *report.traceback[-1:]


def _get_lines(report: TestReport | None) -> frozenset[tuple[str, int]]:
    by_path = {} if report is None else report.lines
    return frozenset((path, line) for path, packed in by_path.items() for line in unpack_lines(packed))
