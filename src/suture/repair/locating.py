"""Trials of the unchanged code: which tests fail here too, what each takes, and which lines it runs.

Two processes: in one the tests run in their own order, and what they say is compared with the user's run; in
the other, lines are noted of the tests that fail, then of those near them, as long as there is time.
"""

from __future__ import annotations

import ast
import asyncio
import posixpath
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from suture.checks.parsing import parsed
from suture.checks.test_command import TestCommand
from suture.repair.reading import Collected, Seen, lines_of, places_of
from suture.repair.trials import Call, Disagreement, Spectrum, TestRun
from suture.repair.worker import Worker

__all__ = ["limits_of", "locate", "look"]

MOST_GUIDING = 24
"""Failing tests that a candidate runs before all others."""
MOST_TRACED_FAILING = 80
LARGE = 5000
"""Tests from which on the collection itself is not traced."""
HANG_SHARE, LEAST_HANG_S = 0.03, 1.0
"""Of the seconds, what a failing test may take before it counts as endless; and at least."""
NEAR_SHARE = 0.3
"""Of the seconds for localisation, the most for the lines of passing tests."""
LEAST_S = 0.1
"""CPU seconds of one test of a candidate, at least: pytest itself takes a few hundredths."""
SLOWER = 3.0
"""How much longer a candidate may take than the code as it is."""
TRACED_SLOWER = 20.0
"""How much longer a failing test may take while its lines are noted; what it showed by then counts."""
UNMEASURED_S = 2.0
FAILED = {
    "failed": "failed",
    "error": "failed",
    "timeout": "failed",
    "passed": "passed",
    "skipped": "skipped",
}
"""An outcome -> what it counts as; one that is not here was not seen in the run."""


async def locate(
    command: TestCommand, files: Sequence[str], failing: Collection[str], seconds: float
) -> Spectrum:
    """As `look`, with processes of its own.

    Args:
        command: A pytest command.
        files: The project's files to look at.
        failing: Ids of tests that fail.
        seconds: Wall-clock seconds, after which what was seen must do.

    Raises:
        SandboxError: The wall failed.
    """
    workers = [Worker(command, {}, files, 2 * seconds + 30) for _ in range(2)]
    try:
        await asyncio.gather(*(worker.start() for worker in workers))
        return await look(workers, {}, failing, None, seconds)
    finally:
        await asyncio.gather(*(worker.close() for worker in workers))


@dataclass
class _Sight:
    """What was seen up to now: by test, in the order of the run, alone, and traced."""

    ordered: dict[str, Seen] = field(default_factory=dict)
    alone: dict[str, Seen] = field(default_factory=dict)
    traced: dict[str, Seen] = field(default_factory=dict)


async def look(
    workers: Sequence[Worker],
    texts: Mapping[str, str],
    failing: Collection[str],
    baseline: Mapping[str, str] | None,
    seconds: float,
) -> Spectrum:
    """Collect the tests in both processes and run them on the code as it is.

    Args:
        workers: Two, started.
        texts: Path -> text of the files that may change.
        failing: Ids of tests that fail in the user's run; where there are none, those that fail here.
        baseline: Id -> how it ended in the user's run.
        seconds: Wall-clock seconds, after which what was seen must do.

    Raises:
        SandboxError: The wall failed.
    """
    end_s = time.monotonic() + seconds
    small = len(baseline or ()) <= LARGE
    tracing, plain = workers
    first, second = await asyncio.gather(
        tracing.collect(trace=small, seconds=seconds), plain.collect(trace=False, seconds=seconds)
    )
    told = first or second
    if told is None:
        shown = tuple(sorted(failing))[:MOST_GUIDING]
        return Spectrum(errors=1, known=frozenset(failing), imported=_importing(texts), guiding=shown)
    sight = _Sight()
    ids = list(dict.fromkeys(told.collected))
    wanted = _wanted(failing, ids)
    hang_s = max(LEAST_HANG_S, HANG_SHARE * seconds)
    in_order = asyncio.create_task(
        _walk(plain, sight.ordered, None, wanted or ids, hang_s, end_s - time.monotonic())
    )
    try:
        if not wanted:
            await in_order
            wanted = [test for test, seen in sight.ordered.items() if FAILED[seen.outcome] == "failed"]
        await _near(tracing, sight, wanted, ids, hang_s, end_s)
        await in_order
    finally:
        in_order.cancel()
    return _spectrum(told, sight, texts, frozenset(failing), baseline)


def _wanted(failing: Collection[str], ids: Sequence[str]) -> list[str]:
    """The collected tests among those that fail; one may be known only by its function, or by its file."""
    own = [test for test in ids if test in failing]
    return own or [t for t in ids if t.partition("[")[0] in failing or t.partition("::")[0] in failing]


async def _near(
    worker: Worker,
    sight: _Sight,
    failing: Sequence[str],
    ids: Sequence[str],
    hang_s: float,
    end_s: float,
) -> None:
    """The failing tests without the others, then their lines, then those of the tests near them."""
    left_s = end_s - time.monotonic()
    shown = failing[:MOST_TRACED_FAILING]
    await _walk(worker, sight.alone, shown, shown, hang_s, left_s / 3)
    traced = [test for test in shown if test in sight.alone] or shown
    took = [seen.seconds for seen in sight.alone.values() if seen.outcome != "timeout"]
    trace_s = max(hang_s, min(TRACED_SLOWER * max(took, default=0.0), left_s / 4))
    await _walk(worker, sight.traced, traced, traced, trace_s, left_s / 3, trace=True)
    others = _by_nearness(failing, ids)
    near_s = min(NEAR_SHARE * left_s, end_s - time.monotonic())
    await _walk(worker, sight.traced, others, failing, hang_s, near_s, trace=True)


def _by_nearness(failing: Sequence[str], ids: Sequence[str]) -> list[str]:
    """The other tests: those of the same files first, then of the same folders."""
    known = set(failing)
    files = {test.partition("::")[0] for test in failing}
    folders = {posixpath.dirname(path) for path in files}

    def distance(test: str) -> int:
        path = test.partition("::")[0]
        return 0 if path in files else 1 if posixpath.dirname(path) in folders else 2

    return sorted((test for test in ids if test not in known), key=distance)


async def _walk(
    worker: Worker,
    into: dict[str, Seen],
    tests: Sequence[str] | None,
    slow: Sequence[str],
    hang_s: float,
    seconds: float,
    *,
    trace: bool = False,
) -> None:
    """Run tests; a test that is reported twice, as one that two items stand for, keeps its failure."""
    if seconds <= 0 or tests == []:
        return
    limit_s = max(seconds, 1.0)
    entries = worker.walk(tests, trace=trace, slow=slow, hang_s=hang_s, limit_s=limit_s, seconds=seconds)
    async for seen in entries:
        before = into.get(seen.test)
        if before is None or FAILED[before.outcome] != "failed":
            into[seen.test] = seen


def _spectrum(
    told: Collected,
    sight: _Sight,
    texts: Mapping[str, str],
    failing: frozenset[str],
    baseline: Mapping[str, str] | None,
) -> Spectrum:
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
                fault=own.fault or (traced.fault if traced else ""),
                reached=places_of(own.reached or (traced.reached if traced else ())),
                lines={path: lines_of(packed) for path, packed in traced.lines.items()} if traced else {},
                frames=places_of(frames),
            )
        )
    if told.frames and not any(test.failed for test in tests):
        tests.append(_importing_failed(told, failing))
    differing = _disagreements(sight, baseline) if baseline is not None else ()
    away = {one.test for one in differing}
    imported = {path: lines_of(packed) for path, packed in told.lines.items()} or _importing(texts)
    untraced = len(set(told.collected)) - len(sight.traced)
    guiding = _guiding(sight, failing, away)
    if not guiding and failing and not sight.ordered and not sight.alone:
        guiding = tuple(sorted(failing))[:MOST_GUIDING]  # nothing could be collected
    if told.frames and not guiding:
        guiding = tuple(sorted(failing))[:MOST_GUIDING]
    return Spectrum(
        tests=tuple(tests),
        imported=imported,
        collect_s=told.seconds,
        errors=told.errors,
        calls=tuple(Call(path=c[0], function=c[1], line=c[2], arguments=c[3]) for c in calls),
        collected=tuple(dict.fromkeys(told.collected)),
        known=failing,
        guiding=guiding,
        disagreements=differing,
        compared=len(sight.ordered.keys() & (baseline or {}).keys()),
        traced=len(sight.traced),
        partly=f"{untraced} of {len(set(told.collected))} tests were not traced: the time for it was up"
        if untraced > 0
        else "",
        suite_s=sum(seen.wall_s for seen in sight.ordered.values()),
    )


def _importing_failed(told: Collected, failing: Collection[str]) -> TestRun:
    """Tests that could not be imported, as one: the lines on which that went wrong."""
    frames = places_of(told.frames)
    lines: dict[str, set[int]] = {}
    for path, line in frames:
        lines.setdefault(path, set()).add(line)
    return TestRun(
        id=min(failing, default="the import of the tests"),
        outcome="failed",
        seconds=0.0,
        lines={path: frozenset(own) for path, own in lines.items()},
        frames=frames,
        fault=told.fault,
    )


def _is_call(call: tuple[object, ...]) -> bool:
    return tuple(map(type, call)) == (str, str, int, str)


def _guiding(sight: _Sight, failing: frozenset[str], away: Collection[str]) -> tuple[str, ...]:
    """Tests that fail in every trial, the quickest first; of those that never end, after all others."""
    failed = [
        seen for test, seen in sight.alone.items() if FAILED[seen.outcome] == "failed" and test not in away
    ]
    failed.sort(key=lambda seen: (seen.outcome == "timeout", seen.seconds))
    return tuple(seen.test for seen in failed[:MOST_GUIDING])


def _disagreements(sight: _Sight, baseline: Mapping[str, str]) -> tuple[Disagreement, ...]:
    """Tests that end otherwise than in the user's run; one that was not seen there is not compared."""
    found = []
    for test, seen in sight.ordered.items():
        run = FAILED.get(baseline.get(test, ""))
        if run is not None and run != FAILED[seen.outcome]:
            found.append(Disagreement(test=test, run=baseline[test], trial=seen.outcome))
    known = {one.test for one in found}
    for test, seen in sight.alone.items():
        run = FAILED.get(baseline.get(test, ""))
        if run == "failed" and FAILED[seen.outcome] != "failed" and test not in known:
            found.append(Disagreement(test=test, run=baseline[test], trial=seen.outcome, alone=True))
    return tuple(found)


def limits_of(spectrum: Spectrum) -> dict[str, tuple[float, float]]:
    """What each test of a candidate may take, from what it took on the code as it is.

    Skipped tests, and those that are left to the verdict, have no limit: they are not run.

    Returns:
        Id -> CPU seconds behind another test of its file, and as the first of its file, where it also makes
        what that file's tests share.
    """
    seen = {test.id: test for test in spectrum.tests}
    away = {one.test for one in spectrum.disagreements if not one.alone}
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


def _importing(texts: Mapping[str, str]) -> dict[str, frozenset[int]]:
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
