"""What a run found out about a project's tests: the failures, their locations, and a verified change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TypeVar

from suture.core.ledger import (
    LedgerContents,
    Payload,
    RunFolder,
    first_payload,
    last_payload,
    read_ledger,
    select_events,
)
from suture.core.ledger.kinds import (
    CandidateChecked,
    RunFinished,
    RunStarted,
    SearchFinished,
    SuspectLine,
    TriageFinished,
)
from suture.core.records import Candidate, CheckOutcome, Counterexample, Result, Task, Verdict
from suture.errors import StorageError
from suture.interfaces.narrative.event_text import counterexample_lines
from suture.interfaces.narrative.run_progress_text import UNCHANGED_CODE
from suture.project.workspace import decode_text

MAX_RELATED = 5
RecordT = TypeVar("RecordT", Task, Verdict, Result)


@dataclass(frozen=True, kw_only=True)
class SourceLocation:
    """A line of a project.

    Attributes:
        path: The file, relative to the project.
        line: The line, counted from 1.
        description: Why it is shown.
    """

    path: str
    line: int
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class FailingTest:
    """A failing test.

    Attributes:
        test: Its id.
        message: What is known about the failure.
        location: Where it is shown; `None` if no line of the project is known.
        related: The test itself, and other suspicious lines.
        is_fixed: Whether the verified change makes it pass.
        is_excluded: Whether the failure is not the code's fault.
    """

    test: str
    message: str
    location: SourceLocation | None
    related: tuple[SourceLocation, ...] = ()
    is_fixed: bool = False
    is_excluded: bool = False


@dataclass(frozen=True, kw_only=True)
class RunFindings:
    """The findings of a run.

    Attributes:
        run: The run's id.
        root: The project.
        texts: The files at the start of the run, path -> text.
        failing: The tests that failed then.
        change: A verified change that fixes at least one of them and breaks no passing test.
        total: The number of tests.
        passing: The number of tests that pass with the change.
    """

    run: str
    root: Path
    texts: Mapping[str, str]
    failing: tuple[FailingTest, ...]
    change: Candidate | None = None
    total: int = 0
    passing: int = 0


def read_findings(folder: RunFolder, root: Path) -> RunFindings:
    """Return the findings of a run; if its folder is damaged, those that can be read.

    Raises:
        StorageError: Nothing can be read.
    """
    reading = read_ledger(folder.ledger_path)
    task = _load_task(folder, reading)
    texts = {path: decode_text(content) for path, content in task.files.items()} if task else {}
    result = _load_result(folder, reading)
    change, passed = _verified_change(result)
    searched = last_payload(reading.events, SearchFinished)
    suspects = _sort_suspects(searched.faults if searched else (), texts, change)
    verdict = _load_baseline(folder, reading)
    is_excluded = _excluded_tests(reading)
    failing = tuple(
        _failing_test(outcome, texts, suspects, searched, is_excluded.get(outcome.check_id, ""), passed)
        for outcome in (verdict.outcomes if verdict else ())
        if not outcome.passed and outcome.status != "skipped"
    )
    return RunFindings(
        run=folder.id,
        root=root,
        texts=texts,
        failing=failing,
        change=change if any(one.is_fixed for one in failing) else None,
        total=len(verdict.outcomes) if verdict else 0,
        passing=len(passed),
    )


def _failing_test(
    outcome: CheckOutcome,
    texts: Mapping[str, str],
    suspects: tuple[SuspectLine, ...],
    searched: SearchFinished | None,
    exclusion: str,
    passed: frozenset[str],
) -> FailingTest:
    fact = outcome.counterexample or Counterexample(check_id=outcome.check_id)
    test = _test_location(outcome.check_id, texts)
    message = "\n".join(counterexample_lines(fact))
    if searched is not None and (divergence := searched.divergences.get(outcome.check_id)):
        message += f"\n  {divergence}"
    if exclusion:
        return FailingTest(
            test=outcome.check_id,
            message=f"{message}\n  {exclusion}",
            location=test or _fallback_location(texts),
            is_excluded=True,
        )
    lines = [_suspect_location(one) for one in suspects if one.path in texts]
    if not lines and fact.file in texts and fact.line:
        lines = [SourceLocation(path=fact.file, line=fact.line, description="raised here")]
    related = (*([test] if test else ()), *lines[1:])
    return FailingTest(
        test=outcome.check_id,
        message=message,
        location=lines[0] if lines else test or _fallback_location(texts),
        related=related[:MAX_RELATED],
        is_fixed=outcome.check_id in passed,
    )


def _sort_suspects(
    suspects: tuple[SuspectLine, ...], texts: Mapping[str, str], change: Candidate | None
) -> tuple[SuspectLine, ...]:
    """Sort suspicious lines: lines of the verified change first, lines that only run on import last."""
    touched: set[tuple[str, int]] = set()
    for path, text in (change.files if change else {}).items():
        before, after = texts.get(path, "").split("\n"), text.split("\n")
        for tag, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            touched |= {(path, line + 1) for line in range(start, end) if tag != "equal"}
    return tuple(
        sorted(suspects, key=lambda one: ((one.path, one.line) not in touched, -one.score, not one.function))
    )


def _suspect_location(one: SuspectLine) -> SourceLocation:
    where = f" in {one.function}" if one.function else ""
    return SourceLocation(path=one.path, line=one.line, description=f"suspicious ({one.score:.2f}){where}")


def _test_location(test: str, texts: Mapping[str, str]) -> SourceLocation | None:
    """Return the location of a test from its pytest id."""
    path, *names = test.split("::")
    if path not in texts:
        return None
    name = names[-1].partition("[")[0] if names else ""
    defined = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    lines = texts[path].splitlines()
    line = next((number for number, text in enumerate(lines, 1) if name and defined.match(text)), 1)
    return SourceLocation(path=path, line=line, description="the test")


def _fallback_location(texts: Mapping[str, str]) -> SourceLocation | None:
    """Return a location for a failure without a known line."""
    path = next(iter(sorted(texts)), None)
    return SourceLocation(path=path, line=1) if path is not None else None


def _excluded_tests(reading: LedgerContents) -> Mapping[str, str]:
    triaged = last_payload(reading.events, TriageFinished)
    return {
        one.test: f"not the code's fault: {one.explanation}"
        for one in (triaged.non_code_failures if triaged else ())
    }


def _load_baseline(folder: RunFolder, reading: LedgerContents) -> Verdict | None:
    checked = (one for _, one in select_events(reading.events, CandidateChecked))
    first = next((one for one in checked if one.candidate == UNCHANGED_CODE), None)
    return _load_record(folder, Verdict, first.verdict) if first else None


def _verified_change(result: Result | None) -> tuple[Candidate | None, frozenset[str]]:
    """Return the best candidate if it changes anything, and the tests that pass with it."""
    if result is None or result.candidate is None or result.verdict is None or not result.diff:
        return None, frozenset()
    return result.candidate, result.verdict.passed


def _load_result(folder: RunFolder, reading: LedgerContents) -> Result | None:
    finished: Payload | None = last_payload(reading.events, RunFinished)
    return _load_record(folder, Result, finished.result) if isinstance(finished, RunFinished) else None


def _load_task(folder: RunFolder, reading: LedgerContents) -> Task | None:
    started = first_payload(reading.events, RunStarted)
    return _load_record(folder, Task, started.task) if started else None


def _load_record(folder: RunFolder, kind: type[RecordT], blob: str) -> RecordT | None:
    try:
        return folder.load_record(kind, blob) if blob else None
    except StorageError:
        return None
