"""Read from a run's ledger which tests fail, where to show them, and the verified change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TypeVar

from lsprotocol import types

from suture.core.ledger import Event, RunFolder, first_payload, last_payload, read_ledger, select_events
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
from suture.interfaces.editor.tuning import MAX_MESSAGE_CHARS, MAX_RELATED
from suture.interfaces.narrative.event_text import UNCHANGED_CODE, counterexample_lines
from suture.interfaces.narrative.plain_text import format_share, sanitize_text
from suture.project.workspace import decode_text

RecordT = TypeVar("RecordT", Task, Verdict, Result)


@dataclass(frozen=True, kw_only=True)
class SourceLocation:
    """A line of a project.

    Attributes:
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
        texts: The files at the start of the run, path -> text.
        failing: The tests that failed then.
        change: A verified change that fixes at least one of them and breaks no passing test.
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
    events = read_ledger(folder.ledger_path).events
    started = first_payload(events, RunStarted)
    task = _load_record(folder, Task, started.task) if started else None
    texts = {path: decode_text(content) for path, content in task.files.items()} if task else {}
    finished = last_payload(events, RunFinished)
    change, passed = _verified_change(_load_record(folder, Result, finished.result) if finished else None)
    search = last_payload(events, SearchFinished)
    suspects = _sort_suspects(search.faults if search else (), texts, change)
    baseline = _load_baseline(folder, events)
    exclusions = _excluded_tests(events)
    failing = tuple(
        _failing_test(outcome, texts, suspects, search, exclusions.get(outcome.check_id, ""), passed)
        for outcome in (baseline.outcomes if baseline else ())
        if not outcome.passed and outcome.status != "skipped"
    )
    return RunFindings(
        run=folder.id,
        root=root,
        texts=texts,
        failing=failing,
        change=change if any(test.is_fixed for test in failing) else None,
        total=len(baseline.outcomes) if baseline else 0,
        passing=len(passed),
    )


def _failing_test(
    outcome: CheckOutcome,
    texts: Mapping[str, str],
    suspects: tuple[SuspectLine, ...],
    search: SearchFinished | None,
    exclusion: str,
    passed: frozenset[str],
) -> FailingTest:
    """Return a failing test; `exclusion` says why the code is not at fault, and is empty if it is."""
    fact = outcome.counterexample or Counterexample(check_id=outcome.check_id)
    test_location = _test_location(outcome.check_id, texts)
    message = "\n".join(counterexample_lines(fact))
    if search is not None and (divergence := search.divergences.get(outcome.check_id)):
        message += f"\n  {divergence}"
    if exclusion:
        return FailingTest(
            test=outcome.check_id,
            message=f"{message}\n  {exclusion}",
            location=test_location or _fallback_location(texts),
            is_excluded=True,
        )
    locations = [_suspect_location(suspect) for suspect in suspects if suspect.path in texts]
    if not locations and fact.file in texts and fact.line:
        locations = [SourceLocation(path=fact.file, line=fact.line, description="raised here")]
    related = (*([test_location] if test_location else ()), *locations[1:])
    return FailingTest(
        test=outcome.check_id,
        message=message,
        location=locations[0] if locations else test_location or _fallback_location(texts),
        related=related[:MAX_RELATED],
        is_fixed=outcome.check_id in passed,
    )


def _sort_suspects(
    suspects: tuple[SuspectLine, ...], texts: Mapping[str, str], change: Candidate | None
) -> tuple[SuspectLine, ...]:
    """Sort suspicious lines: lines of the verified change first, then by score.

    Of lines with the same score, those outside of functions, which run on import, come last.
    """
    changed_lines: set[tuple[str, int]] = set()
    for path, text in (change.files if change else {}).items():
        before, after = texts.get(path, "").split("\n"), text.split("\n")
        for tag, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            changed_lines |= {(path, line + 1) for line in range(start, end) if tag != "equal"}

    def priority(suspect: SuspectLine) -> tuple[bool, float, bool]:
        return (suspect.path, suspect.line) not in changed_lines, -suspect.score, not suspect.function

    return tuple(sorted(suspects, key=priority))


def _suspect_location(suspect: SuspectLine) -> SourceLocation:
    function_text = f" in {suspect.function}" if suspect.function else ""
    description = f"suspicious ({suspect.score:.2f}){function_text}"
    return SourceLocation(path=suspect.path, line=suspect.line, description=description)


def _test_location(test: str, texts: Mapping[str, str]) -> SourceLocation | None:
    """Return the location of a test from its pytest id."""
    path, *names = test.split("::")
    if path not in texts:
        return None
    name = names[-1].partition("[")[0] if names else ""
    definition = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    lines = texts[path].splitlines()
    line = next((number for number, text in enumerate(lines, 1) if name and definition.match(text)), 1)
    return SourceLocation(path=path, line=line, description="the test")


def _fallback_location(texts: Mapping[str, str]) -> SourceLocation | None:
    """Return the first line of the project: a failure without a known line must be shown somewhere."""
    path = next(iter(sorted(texts)), None)
    return SourceLocation(path=path, line=1) if path is not None else None


def _excluded_tests(events: Sequence[Event]) -> Mapping[str, str]:
    """Return test -> why its failure is not the code's fault."""
    triage = last_payload(events, TriageFinished)
    return {
        failure.test: f"not the code's fault: {failure.explanation}"
        for failure in (triage.non_code_failures if triage else ())
    }


def _load_baseline(folder: RunFolder, events: Sequence[Event]) -> Verdict | None:
    """Return the verdict on the unchanged code."""
    for _, checked in select_events(events, CandidateChecked):
        if checked.candidate == UNCHANGED_CODE:
            return _load_record(folder, Verdict, checked.verdict)
    return None


def _verified_change(result: Result | None) -> tuple[Candidate | None, frozenset[str]]:
    """Return (the best candidate if it changes anything, the tests that pass with it)."""
    if result is None or result.candidate is None or result.verdict is None or not result.diff:
        return None, frozenset()
    return result.candidate, result.verdict.passed


def _load_record(folder: RunFolder, kind: type[RecordT], blob: str) -> RecordT | None:
    try:
        return folder.load_record(kind, blob) if blob else None
    except StorageError:
        return None


SOURCE = "suture"
"""What the editor shows as the origin of a diagnostic."""
CodeAction = types.CodeAction | types.Command


def make_diagnostics(
    findings: RunFindings, count_units: Callable[[str], int]
) -> Mapping[str, list[types.Diagnostic]]:
    """Return URI of a file -> the diagnostics in it: one for each failing test, at its most suspicious line.

    `count_units` returns a string's length in the client's character units.
    """
    diagnostics_by_uri: dict[str, list[types.Diagnostic]] = {}
    for failing in findings.failing:
        if failing.location is None:
            continue
        severity = types.DiagnosticSeverity
        diagnostic = types.Diagnostic(
            range=_range(findings, failing.location, count_units),
            message=sanitize_text(failing.message, MAX_MESSAGE_CHARS),
            severity=severity.Warning if failing.is_excluded else severity.Error,
            source=SOURCE,
            code="not the code's fault" if failing.is_excluded else "failing test",
            related_information=[
                types.DiagnosticRelatedInformation(
                    location=types.Location(
                        uri=_uri(findings, location), range=_range(findings, location, count_units)
                    ),
                    message=sanitize_text(location.description, MAX_MESSAGE_CHARS),
                )
                for location in failing.related
            ],
            data={"run": findings.run, "test": failing.test},
        )
        diagnostics_by_uri.setdefault(_uri(findings, failing.location), []).append(diagnostic)
    return diagnostics_by_uri


def make_code_actions(
    findings: RunFindings,
    params: types.CodeActionParams,
    edit: types.WorkspaceEdit | None,
    count_units: Callable[[str], int],
    *,
    asks_model: bool,
) -> list[CodeAction]:
    """Return the actions for the failing tests that are shown in a range.

    Args:
        count_units: Returns a string's length in the client's character units.
        asks_model: Whether a model is configured, which could heal what the search did not.
    """
    diagnostics = make_diagnostics(findings, count_units).get(params.text_document.uri, [])
    failing_by_test = {failing.test: failing for failing in findings.failing}
    actions: list[CodeAction] = []
    for diagnostic in diagnostics:
        if not _share_lines(diagnostic.range, params.range):
            continue
        failing = failing_by_test[(diagnostic.data or {})["test"]]  # set by make_diagnostics
        if failing.is_fixed and edit is not None:
            actions.append(_apply_action(findings, failing, diagnostic, edit))
        elif not failing.is_excluded and asks_model:
            actions.append(_ask_model_action(failing, diagnostic, params.text_document.uri))
    if actions and findings.change is not None:
        actions.append(
            types.Command(
                title="Explain the change's certificate", command="suture.explain", arguments=[findings.run]
            )
        )
    return actions


def _apply_action(
    findings: RunFindings, failing: FailingTest, diagnostic: types.Diagnostic, edit: types.WorkspaceEdit
) -> types.CodeAction:
    return types.CodeAction(
        title=(
            f"Heal {sanitize_text(failing.test, 100)} "
            f"(verified: {format_share(findings.passing, findings.total, 'pass', 'test')})"
        ),
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=findings.passing == findings.total,
        edit=edit,
    )


def _ask_model_action(failing: FailingTest, diagnostic: types.Diagnostic, uri: str) -> types.CodeAction:
    title = f"Heal {sanitize_text(failing.test, 100)} with a model"
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title=title, command="suture.heal", arguments=[uri]),
    )


def _uri(findings: RunFindings, location: SourceLocation) -> str:
    return (findings.root / location.path).as_uri()


def _range(findings: RunFindings, location: SourceLocation, count_units: Callable[[str], int]) -> types.Range:
    """Return the range of a line from its first letter to its end, as the run read it."""
    lines = findings.texts.get(location.path, "").split("\n")
    text = lines[location.line - 1] if 0 < location.line <= len(lines) else ""
    start = len(text) - len(text.lstrip())
    line = max(0, location.line - 1)
    return types.Range(
        start=types.Position(line=line, character=count_units(text[:start])),
        end=types.Position(line=line, character=count_units(text)),
    )


def _share_lines(first: types.Range, second: types.Range) -> bool:
    return first.start.line <= second.end.line and second.start.line <= first.end.line
