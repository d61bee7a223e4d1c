"""Reads the lines that a driver reports.

Candidates share a process with the driver, so they may forge any line. All values are checked and
bounded here, and a candidate that claims to pass is judged again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from suture.core.ledger.kinds import TrialDisagreement
from suture.judge.trials.trial_records import TestOutcome, TestRun, Trial
from suture.judge.trials.tuning import MAX_FAULT_CHARS, MAX_REPORTED_MS, MAX_STACK_CHARS

LOCATION = re.compile(r"([^\s():]+):(\d{1,9})\b(?::\d+)?")
"""A file and a line in a stack trace."""
OUTCOMES: Mapping[str, TestOutcome] = {"passed": "passed", "failed": "failed", "skipped": "skipped"}
GOOD_STATUSES = ("passed", "skipped")
"""Statuses that a repair need not change."""
MAX_FRAMES = 8
"""Frames of a stack trace that are kept, the innermost ones. Chosen by judgement; not measured."""


def parse_reports(raw: bytes) -> Iterator[dict[str, Any]]:
    """Yield the valid lines of a report, and skip all others."""
    for line in raw.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and _is_valid(value):
            yield value


def _is_valid(line: Mapping[str, Any]) -> bool:
    if line.get("event") == "baseline":
        tests = line.get("tests")
        return isinstance(tests, list) and all(map(_is_valid_test, tests))
    passed = line.get("passed_tests", [])
    return isinstance(passed, list) and all(isinstance(name, str) for name in passed)


def _is_valid_test(test: object) -> bool:
    if not isinstance(test, dict):
        return False
    lines, times_ms = test.get("lines") or {}, (test.get("ms", 0), test.get("cpu_ms", 0))
    if not all(isinstance(ms, int | float) and 0 <= ms < MAX_REPORTED_MS for ms in times_ms):
        return False
    return isinstance(lines, dict) and all(
        isinstance(numbers, list) and all(type(number) is int for number in numbers)
        for numbers in lines.values()
    )


def select_trial_reports(reports: Sequence[dict[str, Any]], count: int) -> dict[int, dict[str, Any]]:
    """Return number of a candidate -> its report.

    Of several reports about one candidate, a pass counts: it is judged again, so that forging one gains nothing.

    Args:
        count: The number of candidates that the driver was given.
    """
    selected: dict[int, dict[str, Any]] = {}
    for line in reports:
        number = line.get("number")
        if line.get("event") != "trial" or type(number) is not int or not 0 <= number < count:
            continue
        if number not in selected or line.get("passes") is True:
            selected[number] = line
    return selected


def baseline_tests(reports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tests in the reports of a baseline run."""
    baselines = [line for line in reports if line.get("event") == "baseline"]
    return [test for line in baselines for test in as_list(line.get("tests")) if isinstance(test, dict)]


def build_test_runs(
    tests: Sequence[Mapping[str, Any]],
    texts: Mapping[str, str],
    extract_error: Callable[[str], str],
    is_known: Callable[[str], bool],
) -> Iterator[TestRun]:
    """Yield the tests that failed, and the other tests that are known.

    Args:
        extract_error: Returns the error in the output of a failing test.
        is_known: Whether a test belongs to the user's run, or to a file that this run did not report fully.
    """
    for test in tests:
        name, status = str(test.get("id", "")), OUTCOMES.get(str(test.get("status")))
        if not name or status is None or not (status == "failed" or is_known(name)):
            continue
        reported_lines = test.get("lines")
        lines = reported_lines if isinstance(reported_lines, dict) else {}
        stack = str(test.get("stack", ""))[:MAX_STACK_CHARS]
        frames = [
            (path, int(line))
            for absolute_path, line in LOCATION.findall(stack)
            for path in texts
            if absolute_path.endswith(f"/{path}")
        ]
        yield TestRun(
            id=name,
            outcome=status,
            seconds=0.0,
            lines={
                path: frozenset(line for line in as_list(numbers) if isinstance(line, int))
                for path, numbers in lines.items()
                if path in texts
            },
            frames=tuple(reversed(frames[:MAX_FRAMES])),
            error=extract_error(stack)[:MAX_FAULT_CHARS],
        )


def file_of_test(name: str) -> str:
    """Return the file of a test, by its id."""
    return name.partition("::")[0]


def find_stuck_files(tests: Collection[str], before: Mapping[str, str]) -> list[str]:
    """Return test files that failed in the user's run before any of their tests was reported.

    Args:
        tests: The test files that the runner loads.
        before: Id of a test or file -> its status in the user's run.
    """
    started = {file_of_test(name) for name in before if "::" in name}
    failed = (path for path in sorted(tests) if before.get(path, "passed") not in GOOD_STATUSES)
    return [path for path in failed if path not in started]


def longest_passing_ms(tests: Sequence[Mapping[str, Any]]) -> float:
    """Return the CPU time of the longest test that passes, in milliseconds."""
    passing = (float(test.get("cpu_ms", 0)) for test in tests if test.get("status") == "passed")
    return max(passing, default=0.0)


def total_seconds(tests: Sequence[Mapping[str, Any]]) -> float:
    """Return how long the tests took together."""
    times_ms = (test.get("ms") for test in tests)
    return sum(ms for ms in times_ms if isinstance(ms, (int, float)) and 0 <= ms < MAX_REPORTED_MS) / 1000


def find_disagreements(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[TrialDisagreement, ...]:
    """Return the tests that end differently in the trial than in the user's run."""
    return tuple(
        TrialDisagreement(test=name, run=status, trial=after.get(name, "missing"))
        for name, status in before.items()
        if (status in GOOD_STATUSES) != (after.get(name, "missing") in GOOD_STATUSES)
    )


def build_trial(line: Mapping[str, Any], targets: Sequence[str]) -> Trial:
    """Return the trial of a candidate.

    Args:
        line: The report of the candidate.
        targets: The ids of the tests that a candidate must fix.
    """
    passes = line.get("passes") is True
    passed = frozenset(name for name in as_list(line.get("passed_tests")) if name in targets)
    failed_test = str(line.get("failed_test") or "")
    broken = not passes and failed_test not in targets
    return Trial(
        passing=len(targets) if passes else len(passed),
        failing=0 if passes else len(targets) - len(passed),
        broken=int(broken),
        is_plausible=passes,
        timed_out=bool(line.get("timed_out")),
        now_passing=passed,
        broken_test=failed_test[:MAX_STACK_CHARS] if broken else "",
    )


def find_covering_files(runs: Sequence[TestRun]) -> dict[str, list[str]]:
    """Return file of the project -> the test files that run some of its lines."""
    covering: dict[str, set[str]] = {}
    for run in runs:
        for path, lines in run.lines.items():
            if lines:
                covering.setdefault(path, set()).add(file_of_test(run.id))
    return {path: sorted(tests) for path, tests in covering.items()}


def as_list(value: object) -> list[Any]:
    """Return a reported list; any other value counts as an empty one."""
    return value if isinstance(value, list) else []
