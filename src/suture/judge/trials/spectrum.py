"""Combine trials of the unchanged code into one spectrum, and derive each test's time limit from it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from suture.core.ledger.kinds import TrialDisagreement
from suture.judge.trials.process_reports import CollectionReport, TestReport, unpack_lines, valid_places
from suture.judge.trials.target_tests import order_target_tests
from suture.judge.trials.trial_records import ObservedCall, Spectrum, TestRun
from suture.judge.trials.tuning import (
    CANDIDATE_SLOWDOWN,
    MAX_TARGET_TESTS,
    MIN_TEST_CPU_S,
    UNMEASURED_TEST_CPU_S,
)
from suture.mutation.python.scope_names import ObservedKinds, is_value_kind
from suture.project.mixed_files import find_test_lines
from suture.project.python_source.parsing import parse_module

COMPARABLE_OUTCOMES = {
    "failed": "failed",
    "error": "failed",
    "timeout": "failed",
    "passed": "passed",
    "skipped": "skipped",
}
"""Outcome -> what it counts as in a comparison with the user's run. Others were not observed in that run."""
IMPORT_FAILURE = "the import of the tests"
"""Id of the test run that stands for tests that could not be imported, if no failing test is known."""


@dataclass
class TraceData:
    """What was observed so far on the unchanged code.

    Attributes:
        collection: The report of a process that collected the tests.
        import_lines: Path -> the lines that ran while the tests were collected.
        ordered: Test id -> its report from the run of all tests in their order.
        alone: Test id -> its report from the run of the failing tests without the others.
        traced: Test id -> its report from a run with tracing.
    """

    collection: CollectionReport | None = None
    import_lines: dict[str, frozenset[int]] = field(default_factory=dict)
    ordered: dict[str, TestReport] = field(default_factory=dict)
    alone: dict[str, TestReport] = field(default_factory=dict)
    traced: dict[str, TestReport] = field(default_factory=dict)


def make_uncollected_spectrum(failing: frozenset[str], texts: Mapping[str, str]) -> Spectrum:
    """Return the spectrum for tests that could not be collected: what the source alone shows."""
    return Spectrum(
        collection_errors=1,
        failing_in_suite=failing,
        import_lines=ParsedImportLines(texts),
        target_tests=tuple(sorted(failing))[:MAX_TARGET_TESTS],
    )


def build_spectrum(
    collection: CollectionReport,
    data: TraceData,
    texts: Mapping[str, str],
    failing: frozenset[str],
    user_outcomes: Mapping[str, str] | None,
) -> Spectrum:
    """Combine what was observed so far.

    Args:
        collection: The report of one of the processes that collected the tests; `data.collection` may be `None`.
        user_outcomes: Test id -> outcome in the user's run.
    """
    # Two lists of places come with an exception: `frames` has only those in files that candidates may change, and
    # `traceback` has all of the project, tests included.
    closed = {path: lines for path, text in texts.items() if (lines := find_test_lines(path, text))}
    tests, calls = [], []
    for test in {**data.ordered, **data.alone, **data.traced}:
        traced = data.traced.get(test)
        tests.append(_combine_runs(test, data, traced, closed))
        calls += [call for call in (traced.calls if traced else ()) if is_call(call)]
    if collection.frames and not any(test.failed for test in tests):
        tests.append(_make_import_failure(collection, failing))
    disagreements = _find_disagreements(data, user_outcomes) if user_outcomes is not None else ()
    disagreeing = {disagreement.test for disagreement in disagreements}
    target_tests = _choose_target_tests(data, failing, disagreeing)
    # If no test could run here, the failing tests of the user's run are taken as they are.
    nothing_ran = failing and not data.ordered and not data.alone
    if not target_tests and (nothing_ran or collection.frames):
        target_tests = tuple(sorted(failing))[:MAX_TARGET_TESTS]
    collected = tuple(dict.fromkeys(collection.collected))
    return Spectrum(
        tests=tuple(tests),
        import_lines=data.import_lines or ParsedImportLines(texts),
        kinds=_merge_kinds(data.traced.values()),
        collect_s=collection.seconds,
        collection_errors=collection.errors,
        calls=tuple(
            ObservedCall(path=path, function=function, line=line, arguments=arguments)
            for path, function, line, arguments in calls
        ),
        collected=collected,
        failing_in_suite=failing,
        target_tests=target_tests,
        disagreements=disagreements,
        compared=len(data.ordered.keys() & (user_outcomes or {}).keys()),
        traced=len(data.traced),
        untraced=max(0, len(collected) - len(data.traced)),
        suite_s=sum(report.wall_s for report in data.ordered.values()),
    )


def _combine_runs(
    test: str, data: TraceData, traced: TestReport | None, closed: Mapping[str, frozenset[int]]
) -> TestRun:
    """Return one test's run; times come from a run without tracing if there was one.

    Args:
        closed: Path -> lines of tests in files that candidates may change in part: no place to look for the fault.
    """
    timed = data.alone.get(test) or data.ordered.get(test) or data.traced[test]
    runs = [run for each in (data.ordered, data.alone, data.traced) if (run := each.get(test)) is not None]
    # The run of all tests is like the user's run: a test may fail because of what earlier tests left.
    outcome = data.ordered[test].outcome if test in data.ordered else timed.outcome
    return TestRun(
        id=test,
        outcome=outcome,
        seconds=timed.seconds,
        wall_s=timed.wall_s,
        fastest_s=min(run.seconds for run in runs),
        waited_s=min(run.waited_s for run in runs),
        error=timed.error or (traced.error if traced else ""),
        traceback=valid_places(timed.traceback or (traced.traceback if traced else ())),
        lines={
            path: unpack_lines(packed) - closed.get(path, frozenset())
            for path, packed in (traced.lines.items() if traced else ())
        },
        frames=tuple(
            (path, line)
            for path, line in valid_places(timed.frames or (traced.frames if traced else ()))
            if line not in closed.get(path, ())
        ),
    )


def _merge_kinds(reports: Iterable[TestReport]) -> dict[str, ObservedKinds]:
    """Return the kinds of values that variables hold in all of the tests; others than known ones are left out."""
    merged: dict[str, dict[int, dict[str, str]]] = {}
    for report in reports:
        for path, functions in report.kinds.items():
            for line, kinds in functions.items():
                if not line.isdecimal():
                    continue
                variables = merged.setdefault(path, {}).setdefault(int(line), {})
                for name, kind in kinds.items():
                    variables[name] = kind if variables.get(name, kind) == kind else ""
    return {
        path: {
            line: {name: kind for name, kind in variables.items() if is_value_kind(kind)}
            for line, variables in functions.items()
        }
        for path, functions in merged.items()
    }


def _make_import_failure(collection: CollectionReport, failing: Collection[str]) -> TestRun:
    """Return one test run for tests that could not be imported, with the lines of the import's traceback."""
    frames = valid_places(collection.frames)
    lines: dict[str, set[int]] = {}
    for path, line in frames:
        lines.setdefault(path, set()).add(line)
    return TestRun(
        id=min(failing, default=IMPORT_FAILURE),  # it stands for all failing tests
        outcome="failed",
        seconds=0.0,
        lines={path: frozenset(numbers) for path, numbers in lines.items()},
        frames=frames,
        error=collection.error,
        traceback=valid_places(collection.traceback),
    )


def is_call(call: tuple[object, ...]) -> bool:
    """Return whether an entry of a report has the shape of a call."""
    return tuple(map(type, call)) == (str, str, int, str)


def _choose_target_tests(
    data: TraceData, failing: frozenset[str], disagreeing: Collection[str]
) -> tuple[str, ...]:
    """Return tests that fail in every trial, in the order in which candidates run them."""
    reports = data.alone or {test: report for test, report in data.ordered.items() if test in failing}
    failed = [
        report
        for test, report in reports.items()
        if COMPARABLE_OUTCOMES[report.outcome] == "failed" and test not in disagreeing
    ]
    # `order_target_tests` expects the quickest first. It moves some to the front and keeps this order for the others.
    failed.sort(key=lambda report: (report.outcome == "timeout", report.seconds))
    return tuple(report.test for report in order_target_tests(failed, data.traced)[:MAX_TARGET_TESTS])


def _find_disagreements(data: TraceData, user_outcomes: Mapping[str, str]) -> tuple[TrialDisagreement, ...]:
    """Return tests whose outcome differs from the user's run, as far as it is known there."""
    disagreements: dict[str, TrialDisagreement] = {}
    for test, report in data.ordered.items():
        expected = COMPARABLE_OUTCOMES.get(user_outcomes.get(test, ""))
        if expected is not None and expected != COMPARABLE_OUTCOMES[report.outcome]:
            disagreements[test] = TrialDisagreement(test=test, run=user_outcomes[test], trial=report.outcome)
    for test, report in data.alone.items():
        expected = COMPARABLE_OUTCOMES.get(user_outcomes.get(test, ""))
        # It fails in the user's run, and not without the other tests.
        differs = expected == "failed" and COMPARABLE_OUTCOMES[report.outcome] != "failed"
        if differs and test not in disagreements:
            disagreements[test] = TrialDisagreement(
                test=test, run=user_outcomes[test], trial=report.outcome, only_in_isolation=True
            )
    return tuple(disagreements.values())


def compute_cpu_limits(spectrum: Spectrum) -> dict[str, tuple[float, float]]:
    """Return what each test may take on a candidate, from what it took on the unchanged code.

    Skipped tests, and tests that trials do not judge, have no limit and do not run.

    Returns:
        Test id -> (limit_s, first_limit_s), in CPU seconds. `limit_s` holds if another test of its file ran
        before. `first_limit_s` holds for the first test of a file, which also sets up what its tests share.
    """
    runs = {test.id: test for test in spectrum.tests}
    excluded = {entry.test for entry in spectrum.disagreements if not entry.only_in_isolation}
    longest_in_file_s: dict[str, float] = {}
    for test in spectrum.tests:
        path = test.id.partition("::")[0]
        if test.outcome != "timeout":
            longest_in_file_s[path] = max(longest_in_file_s.get(path, 0.0), test.seconds)
    first_run = runs.get(spectrum.collected[0]) if spectrum.collected else None
    first_s = first_run.seconds if first_run is not None and first_run.outcome != "timeout" else 0.0
    longest_s = max(longest_in_file_s.values(), default=0.0)
    limits: dict[str, tuple[float, float]] = {}
    for test_id in spectrum.collected:
        run = runs.get(test_id)
        if test_id in excluded or (run is not None and run.outcome == "skipped"):
            continue
        if run is None:
            measured_s = UNMEASURED_TEST_CPU_S + longest_s
        else:
            # A test that timed out has no time to scale: it ran until it was stopped.
            measured_s = 0.0 if run.outcome == "timeout" else run.seconds
        limit_s = MIN_TEST_CPU_S + CANDIDATE_SLOWDOWN * measured_s
        # The first test of the whole run may also set up what all files share.
        setup_s = longest_in_file_s.get(test_id.partition("::")[0], 0.0) + first_s
        limits[test_id] = (limit_s, limit_s + CANDIDATE_SLOWDOWN * setup_s)
    return limits


class ParsedImportLines(Mapping[str, frozenset[int]]):
    """Path -> the lines that an import runs: all except the bodies of functions.

    A file is parsed when its lines are asked for: of a large project, the search asks about few files.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._lines: dict[str, frozenset[int]] = {}

    def __getitem__(self, path: str) -> frozenset[int]:
        if path not in self._lines:
            tree = parse_module(self._texts[path])
            if tree is None:
                raise KeyError(path)
            self._lines[path] = _find_lines_outside_functions(tree, self._texts[path])
        return self._lines[path]

    def __iter__(self) -> Iterator[str]:
        return iter([path for path in self._texts if path in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _find_lines_outside_functions(tree: ast.Module, text: str) -> frozenset[int]:
    lines = set(range(1, text.count("\n") + 2))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines -= set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)
