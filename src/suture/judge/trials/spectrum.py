"""What trials of the unchanged code add up to: which tests fail here too, what each takes, what differs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from suture.core.ledger.kinds import TrialDisagreement
from suture.judge.trials.process_reports import CollectionReport, TestReport, lines_of, valid_places
from suture.judge.trials.target_tests import MOST_GUIDING, order_target_tests
from suture.judge.trials.trial_records import ObservedCall, Spectrum, TestRun
from suture.project.python_source.parsing import parsed

LEAST_S = 0.1
"""CPU seconds of one test of a candidate, at least: pytest itself takes a few hundredths."""
SLOWER = 3.0
"""How much longer a candidate may take than the code as it is."""
UNMEASURED_S = 2.0
"""Beyond the longest test that was seen, for one that was not."""
FAILED = {
    "failed": "failed",
    "error": "failed",
    "timeout": "failed",
    "passed": "passed",
    "skipped": "skipped",
}
"""An outcome -> what it counts as; one that is not here was not seen in the run."""


@dataclass
class TraceData:
    """What was seen up to now: by test, in the order of the run, alone, and traced."""

    collection: CollectionReport | None = None
    imported: dict[str, frozenset[int]] = field(default_factory=dict)
    ordered: dict[str, TestReport] = field(default_factory=dict)
    alone: dict[str, TestReport] = field(default_factory=dict)
    traced: dict[str, TestReport] = field(default_factory=dict)


def unseen(failing: frozenset[str], texts: Mapping[str, str]) -> Spectrum:
    """Where nothing could be collected: what can be said by reading."""
    shown = tuple(sorted(failing))[:MOST_GUIDING]
    return Spectrum(
        collection_errors=1, failing_in_suite=failing, import_lines=importing(texts), target_tests=shown
    )


def build_spectrum(
    collection: CollectionReport,
    sight: TraceData,
    texts: Mapping[str, str],
    failing: frozenset[str],
    baseline: Mapping[str, str] | None,
) -> Spectrum:
    """What was seen up to now as one.

    Args:
        collection: What one of the processes said when it had collected.
        sight: What was seen.
        texts: Path -> text of the files that may change.
        failing: Ids of tests that fail in the user's run.
        baseline: Id -> how it ended there.
    """
    measured = {**sight.ordered, **sight.alone}
    tests, calls = [], []
    for test, seen in {**sight.ordered, **sight.alone, **sight.traced}.items():
        own = measured.get(test, seen)
        traced = sight.traced.get(test)
        frames = own.frames or (traced.frames if traced else ())
        # In the run of all, a test may fail for what those before it left: that run is the user's.
        outcome = sight.ordered[test].outcome if test in sight.ordered else own.outcome
        calls += [call for call in (traced.calls if traced else ()) if _is_call(call)]
        tests.append(
            TestRun(
                id=test,
                outcome=outcome,
                seconds=own.seconds,
                wall_s=own.wall_s,
                error=own.fault or (traced.fault if traced else ""),
                traceback=valid_places(own.reached or (traced.reached if traced else ())),
                lines={path: lines_of(packed) for path, packed in traced.lines.items()} if traced else {},
                frames=valid_places(frames),
            )
        )
    if collection.frames and not any(test.failed for test in tests):
        tests.append(_importing_failed(collection, failing))
    differing = _disagreements(sight, baseline) if baseline is not None else ()
    away = {one.test for one in differing}
    imported = sight.imported or importing(texts)
    untraced = len(set(collection.collected)) - len(sight.traced)
    guiding = _guiding(sight, failing, away)
    if not guiding and failing and not sight.ordered and not sight.alone:
        guiding = tuple(sorted(failing))[:MOST_GUIDING]  # nothing could be collected
    if collection.frames and not guiding:
        guiding = tuple(sorted(failing))[:MOST_GUIDING]
    return Spectrum(
        tests=tuple(tests),
        import_lines=imported,
        collect_s=collection.seconds,
        collection_errors=collection.errors,
        calls=tuple(ObservedCall(path=c[0], function=c[1], line=c[2], arguments=c[3]) for c in calls),
        collected=tuple(dict.fromkeys(collection.collected)),
        failing_in_suite=failing,
        target_tests=guiding,
        disagreements=differing,
        compared=len(sight.ordered.keys() & (baseline or {}).keys()),
        traced=len(sight.traced),
        partly=f"{untraced} of {len(set(collection.collected))} tests were not traced: the time for it was up"
        if untraced > 0
        else "",
        suite_s=sum(seen.wall_s for seen in sight.ordered.values()),
    )


def _importing_failed(collection: CollectionReport, failing: Collection[str]) -> TestRun:
    """Tests that could not be imported, as one: the lines on which that went wrong."""
    frames = valid_places(collection.frames)
    lines: dict[str, set[int]] = {}
    for path, line in frames:
        lines.setdefault(path, set()).add(line)
    return TestRun(
        id=min(failing, default="the import of the tests"),
        outcome="failed",
        seconds=0.0,
        lines={path: frozenset(own) for path, own in lines.items()},
        frames=frames,
        error=collection.fault,
        traceback=valid_places(collection.reached),
    )


def _is_call(call: tuple[object, ...]) -> bool:
    return tuple(map(type, call)) == (str, str, int, str)


def _guiding(sight: TraceData, failing: frozenset[str], away: Collection[str]) -> tuple[str, ...]:
    """Tests that fail in every trial, as `order_target_tests`; of those that never end, after all others."""
    looked_at = sight.alone or {test: seen for test, seen in sight.ordered.items() if test in failing}
    failed = [
        seen for test, seen in looked_at.items() if FAILED[seen.outcome] == "failed" and test not in away
    ]
    failed.sort(key=lambda seen: (seen.outcome == "timeout", seen.seconds))
    return tuple(seen.test for seen in order_target_tests(failed, sight.traced)[:MOST_GUIDING])


def _disagreements(sight: TraceData, baseline: Mapping[str, str]) -> tuple[TrialDisagreement, ...]:
    """Tests that end otherwise than in the user's run; one that was not seen there is not compared."""
    found = []
    for test, seen in sight.ordered.items():
        run = FAILED.get(baseline.get(test, ""))
        if run is not None and run != FAILED[seen.outcome]:
            found.append(TrialDisagreement(test=test, run=baseline[test], trial=seen.outcome))
    known = {one.test for one in found}
    for test, seen in sight.alone.items():
        run = FAILED.get(baseline.get(test, ""))
        if run == "failed" and FAILED[seen.outcome] != "failed" and test not in known:
            found.append(
                TrialDisagreement(test=test, run=baseline[test], trial=seen.outcome, only_in_isolation=True)
            )
    return tuple(found)


def compute_cpu_limits(spectrum: Spectrum) -> dict[str, tuple[float, float]]:
    """What each test of a candidate may take, from what it took on the code as it is.

    Skipped tests, and those that are left to the verdict, have no limit: they are not run.

    Returns:
        Id -> CPU seconds behind another test of its file, and as the first of its file, where it also makes
        what that file's tests share.
    """
    seen = {test.id: test for test in spectrum.tests}
    away = {one.test for one in spectrum.disagreements if not one.only_in_isolation}
    shared: dict[str, float] = {}
    for test in spectrum.tests:
        path = test.id.partition("::")[0]
        if test.outcome != "timeout":
            shared[path] = max(shared.get(path, 0.0), test.seconds)
    first = [seen[test] for test in spectrum.collected[:1] if test in seen]
    first_s = max((test.seconds for test in first if test.outcome != "timeout"), default=0.0)
    longest = max(shared.values(), default=0.0)
    limits: dict[str, tuple[float, float]] = {}
    for name in spectrum.collected:
        own = seen.get(name)
        if name in away or (own is not None and own.outcome == "skipped"):
            continue
        took_s = UNMEASURED_S + longest if own is None else 0.0 if own.outcome == "timeout" else own.seconds
        near = LEAST_S + SLOWER * took_s
        limits[name] = (near, near + SLOWER * (shared.get(name.partition("::")[0], 0.0) + first_s))
    return limits


def importing(texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Lines that an import runs, by reading: those outside of functions, and the heads of functions."""
    found = {}
    for path, text in texts.items():
        tree = parsed(text)
        if tree is None:
            continue
        lines = set(range(1, text.count("\n") + 2))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines -= set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        found[path] = frozenset(lines)
    return found
