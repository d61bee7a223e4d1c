"""Which failing tests a candidate runs first, and after how many failures it is dropped.

A candidate that fixes one of two faults shows it only on tests that the other fault does not affect. So the
first tests should each fail in another way. A few of them are enough to see that most candidates fix nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.process_reports import TestReport, unpack_lines
from suture.judge.trials.tuning import (
    DIFFERENT_FAILURE_WEIGHT,
    FIRST_FAILURES_CPU_S,
    FURTHER_FAILURES_CPU_S,
    MAX_FIRST_FAILURES,
    QUICK_TEST_CPU_S,
)
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text, is_test_file


def order_target_tests(failed: Sequence[TestReport], traced: Mapping[str, TestReport]) -> list[TestReport]:
    """Order failing tests: the quickest, then quick ones that fail most differently, then the others.

    Args:
        failed: Reports of the failing tests, the quickest first.
        traced: Test id -> report with the lines that the test ran.
    """
    chosen = list(failed[:1])
    quick = [test for test in failed[1:] if test.outcome != "timeout" and test.seconds <= QUICK_TEST_CPU_S]
    lines = {test.test: _get_lines(traced.get(test.test)) for test in (*chosen, *quick)}
    while quick and len(chosen) < MAX_FIRST_FAILURES:
        # `max` returns the first of equals, which is the quickest.
        most_different = max(quick, key=lambda test: min(_distance(test, other, lines) for other in chosen))
        quick.remove(most_different)
        chosen.append(most_different)
    return [*chosen, *(test for test in failed if test not in chosen)]


def choose_failure_limits(durations_s: Sequence[float]) -> tuple[int, int]:
    """Return (failures if no test has passed, failures if one has) after which a candidate is dropped.

    Args:
        durations_s: CPU seconds of the target tests, in the order of the run.
    """
    totals_s = list(accumulate(durations_s))
    first = max(1, min(MAX_FIRST_FAILURES, sum(total_s <= FIRST_FAILURES_CPU_S for total_s in totals_s)))
    return first, max(first, sum(total_s <= FURTHER_FAILURES_CPU_S for total_s in totals_s))


def _distance(left: TestReport, right: TestReport, lines: Mapping[str, frozenset[tuple[str, int]]]) -> float:
    """Return how differently two tests fail: by the lines they run, and by place and exception."""
    union = lines[left.test] | lines[right.test]
    unshared = 1 - len(lines[left.test] & lines[right.test]) / len(union) if union else 0.0
    return unshared + DIFFERENT_FAILURE_WEIGHT * (_failure_kind(left) != _failure_kind(right))


def _failure_kind(report: TestReport) -> tuple[object, ...]:
    """Return the class of the exception, and the place where it was raised."""
    return report.error.partition(":")[0], *report.traceback[-1:]


def _get_lines(report: TestReport | None) -> frozenset[tuple[str, int]]:
    by_path = {} if report is None else report.lines
    return frozenset((path, line) for path, packed in by_path.items() for line in unpack_lines(packed))


@dataclass(frozen=True, kw_only=True)
class FailingProject:
    """A project some of whose tests fail, in any language.

    Attributes:
        command: Its test command, collected.
        argv: The words of the command.
        files: Path -> content of its files.
        texts: Path -> text of the files that may be changed.
        outcomes: The outcomes of the tests on the unchanged code.
        language: The language of `texts`.
        wall_s: Wall-clock seconds that the command took on the unchanged code; 0 if that is not known.
    """

    command: TestCommand
    argv: Sequence[str]
    files: Mapping[str, bytes]
    texts: Mapping[str, str]
    outcomes: Sequence[CheckOutcome]
    language: Language
    wall_s: float = 0.0

    def statuses(self) -> dict[str, str]:
        """Return id of a test -> its status on the unchanged code."""
        return {outcome.check_id: outcome.status for outcome in self.outcomes}

    def failing(self) -> frozenset[str]:
        """Return the ids of the tests that fail on the unchanged code."""
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")

    def named_tests(self) -> list[str]:
        """Return the paths of files whose names say that they are tests."""
        endings = LANGUAGES[self.language].extensions
        return [path for path in sorted(self.files) if path.endswith(endings) and is_test_file(path)]

    def test_texts(self) -> dict[str, str]:
        """Return path -> text of the test files.

        Some runners, such as Go's, report only packages; then the names of the files decide.
        """
        tests = self.command.test_files or self.named_tests()
        return {path: decode_text(self.files[path]) for path in tests if path in self.files}
