"""What a run found out of a project's tests, from its ledger: what fails, where, and what would mend it."""

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
    last_of,
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
from suture.interfaces.narrative.run_progress_text import AS_IT_IS
from suture.project.workspace import text_of

MOST_RELATED = 5
RecordT = TypeVar("RecordT", Task, Verdict, Result)


@dataclass(frozen=True, kw_only=True)
class SourceLocation:
    """A line of a project.

    Attributes:
        path: The file, relative to the project.
        line: Counted from 1.
        why: In words.
    """

    path: str
    line: int
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class FailingTest:
    """A failing test.

    Attributes:
        test: Its id.
        words: What is known of the failure.
        place: Where it is shown; `None` where no line of the project is known.
        related: The test itself, and other suspicious lines.
        mended: Whether the change of the findings makes it pass.
        apart: Whether it is no fault of the code.
    """

    test: str
    words: str
    place: SourceLocation | None
    related: tuple[SourceLocation, ...] = ()
    mended: bool = False
    apart: bool = False


@dataclass(frozen=True, kw_only=True)
class RunFindings:
    """What a run found out.

    Attributes:
        run: Its id.
        root: The project.
        texts: The files that the run began with, path -> text.
        failing: The tests that failed then.
        change: What would mend them, or some of them; verified, and no test that passed fails with it.
        total: How many tests there are.
        passing: How many pass with the change.
    """

    run: str
    root: Path
    texts: Mapping[str, str]
    failing: tuple[FailingTest, ...]
    change: Candidate | None = None
    total: int = 0
    passing: int = 0


def read_findings(folder: RunFolder, root: Path) -> RunFindings:
    """What a run found out; where its folder is damaged, as much as is left.

    Raises:
        StorageError: Nothing of it can be read.
    """
    reading = read_ledger(folder.ledger_path)
    task = _task_of(folder, reading)
    texts = {path: text_of(content) for path, content in task.files.items()} if task else {}
    result = _result_of(folder, reading)
    change, passed = _change_of(result)
    searched = last_of(reading.events, SearchFinished)
    suspects = _likeliest_first(searched.faults if searched else (), texts, change)
    verdict = _baseline_of(folder, reading)
    apart = _apart(reading)
    failing = tuple(
        _failing(outcome, texts, suspects, searched, apart.get(outcome.check_id, ""), passed)
        for outcome in (verdict.outcomes if verdict else ())
        if not outcome.passed and outcome.status != "skipped"
    )
    return RunFindings(
        run=folder.id,
        root=root,
        texts=texts,
        failing=failing,
        change=change if any(one.mended for one in failing) else None,
        total=len(verdict.outcomes) if verdict else 0,
        passing=len(passed),
    )


def _failing(
    outcome: CheckOutcome,
    texts: Mapping[str, str],
    suspects: tuple[SuspectLine, ...],
    searched: SearchFinished | None,
    apart: str,
    passed: frozenset[str],
) -> FailingTest:
    fact = outcome.counterexample or Counterexample(check_id=outcome.check_id)
    test = _test_place(outcome.check_id, texts)
    words = "\n".join(counterexample_lines(fact))
    if searched is not None and (divergence := searched.divergences.get(outcome.check_id)):
        words += f"\n  {divergence}"
    if apart:
        return FailingTest(
            test=outcome.check_id, words=f"{words}\n  {apart}", place=test or _first_place(texts), apart=True
        )
    lines = [_suspect_place(one) for one in suspects if one.path in texts]
    if not lines and fact.file in texts and fact.line:
        lines = [SourceLocation(path=fact.file, line=fact.line, why="raised here")]
    related = (*([test] if test else ()), *lines[1:])
    return FailingTest(
        test=outcome.check_id,
        words=words,
        place=lines[0] if lines else test or _first_place(texts),
        related=related[:MOST_RELATED],
        mended=outcome.check_id in passed,
    )


def _likeliest_first(
    suspects: tuple[SuspectLine, ...], texts: Mapping[str, str], change: Candidate | None
) -> tuple[SuspectLine, ...]:
    """The search's ranking, with what a verified change touches first, and what only runs on import last."""
    touched: set[tuple[str, int]] = set()
    for path, text in (change.files if change else {}).items():
        before, after = texts.get(path, "").split("\n"), text.split("\n")
        for tag, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            touched |= {(path, line + 1) for line in range(start, end) if tag != "equal"}
    return tuple(
        sorted(suspects, key=lambda one: ((one.path, one.line) not in touched, -one.score, not one.function))
    )


def _suspect_place(one: SuspectLine) -> SourceLocation:
    where = f" in {one.function}" if one.function else ""
    return SourceLocation(path=one.path, line=one.line, why=f"suspicious ({one.score:.2f}){where}")


def _test_place(test: str, texts: Mapping[str, str]) -> SourceLocation | None:
    """Where a test stands, by its id as pytest has it."""
    path, *names = test.split("::")
    if path not in texts:
        return None
    name = names[-1].partition("[")[0] if names else ""
    defined = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    lines = texts[path].splitlines()
    line = next((number for number, text in enumerate(lines, 1) if name and defined.match(text)), 1)
    return SourceLocation(path=path, line=line, why="the test")


def _first_place(texts: Mapping[str, str]) -> SourceLocation | None:
    """Some line to show a failure at of which no line is known."""
    path = next(iter(sorted(texts)), None)
    return SourceLocation(path=path, line=1) if path is not None else None


def _apart(reading: LedgerContents) -> Mapping[str, str]:
    triaged = last_of(reading.events, TriageFinished)
    return {one.test: f"not the code's fault: {one.why}" for one in (triaged.set_apart if triaged else ())}


def _baseline_of(folder: RunFolder, reading: LedgerContents) -> Verdict | None:
    checked = (one for _, one in select_events(reading.events, CandidateChecked))
    first = next((one for one in checked if one.label == AS_IT_IS), None)
    return _record(folder, Verdict, first.verdict) if first else None


def _change_of(result: Result | None) -> tuple[Candidate | None, frozenset[str]]:
    """The best candidate, where it changes anything, and the tests that pass with it."""
    if result is None or result.candidate is None or result.verdict is None or not result.diff:
        return None, frozenset()
    return result.candidate, result.verdict.passed


def _result_of(folder: RunFolder, reading: LedgerContents) -> Result | None:
    finished: Payload | None = last_of(reading.events, RunFinished)
    return _record(folder, Result, finished.result) if isinstance(finished, RunFinished) else None


def _task_of(folder: RunFolder, reading: LedgerContents) -> Task | None:
    started = first_payload(reading.events, RunStarted)
    return _record(folder, Task, started.task) if started else None


def _record(folder: RunFolder, kind: type[RecordT], blob: str) -> RecordT | None:
    try:
        return folder.get_record(kind, blob) if blob else None
    except StorageError:
        return None
