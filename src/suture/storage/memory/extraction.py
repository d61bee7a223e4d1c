"""Extraction of memory items from a run's ledger and folder.

It is a pure function of the run's record, so that lost items can be extracted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suture.core.ledger import Event, RunFolder, first_payload, last_payload, select_events
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    DiagnosisMade,
    LessonsDrawn,
    RunFinished,
    RunStarted,
    SearchFinished,
)
from suture.core.records import Candidate, Result, Task, Verdict
from suture.project.workspace import overlay_candidate, unified_diff
from suture.storage.memory.fingerprints import FailureFingerprint, error_class, fingerprint_failures
from suture.storage.memory.memory_items import MemoryItem, sanitise_item
from suture.storage.tuning import (
    MAX_CHANGED_LINE_CHARS,
    MAX_CHANGED_LINES,
    MAX_FAILURES_PER_RUN,
    MAX_PATTERN_SOLUTION_CHARS,
    MAX_PATTERN_STATEMENT_CHARS,
)


def extract_items(folder: RunFolder, events: Sequence[Event]) -> tuple[MemoryItem, ...]:
    """Return the items that a run contributes; none if it did not end, or replays another run.

    Raises:
        StorageError: A blob cannot be read.
    """
    started, ended = first_payload(events, RunStarted), last_payload(events, RunFinished)
    if started is None or ended is None or started.replayed_run or not (started.task and ended.result):
        return ()
    task, result = folder.load_record(Task, started.task), folder.load_record(Result, ended.result)
    found = [*_failures(folder, events, task, result), *_patterns(folder, events, task, result)]
    found += _lessons(folder, events, task, result)
    return tuple({item.key: item for item in map(sanitise_item, found)}.values())


def _failures(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[MemoryItem]:
    """Yield the failures that the run started with, or that its best candidate repaired."""
    failing = _failing_state(folder, events, task, result)
    if failing is None:
        return
    event, verdict, files = failing
    healed = result.outcome == "healed"
    patch = _patch(files, result) if result.candidate and healed else ""
    diagnosed = _diagnosis(events)
    for fingerprint in fingerprint_failures(verdict, files, task)[:MAX_FAILURES_PER_RUN]:
        yield MemoryItem(
            table="failures",
            run_id=folder.id,
            event_seq=event.seq,
            language=task.language,
            kind=error_class(fingerprint.signature),
            text=render_failure(fingerprint, patch),
            error_signature=fingerprint.signature,
            counterexample=fingerprint.fact,
            diagnosis=diagnosed,
            code_shape=fingerprint.shape,
            patch=patch,
            tests="\n".join(sorted(verdict.failed)),
            repaired=healed,
            created_s=event.time_s,
            details={"operators": list(_operators(events, result))} if healed else {},
            search_text=fingerprint.search_text,
        )


def _failing_state(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> tuple[Event, Verdict, dict[str, bytes]] | None:
    """Return the verdict that shows what was wrong, its event, and the files at that time."""
    wanted = result.candidate.parent if task.kind == "write" and result.candidate else None
    proposed = {one.candidate: one for _, one in select_events(events, CandidateProposed)}
    for event, checked in select_events(events, CandidateChecked):
        if not checked.failed or not checked.verdict:
            continue
        first = proposed.get(checked.candidate)
        if task.kind == "heal" and first is None:  # the user's own code was not proposed by anyone
            return event, folder.load_record(Verdict, checked.verdict), dict(task.files)
        if task.kind == "write" and first is not None and checked.candidate == wanted:
            files = overlay_candidate(task.files, folder.load_record(Candidate, first.blob).files)
            return event, folder.load_record(Verdict, checked.verdict), dict(files)
    return None


def _patterns(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[MemoryItem]:
    """Yield a task that was written and passes: its statement, its solution and its tests."""
    if task.kind != "write" or result.outcome != "healed" or result.candidate is None:
        return
    code = "\n".join(result.candidate.files.values())
    solution = _without_blank_lines(code, MAX_PATTERN_SOLUTION_CHARS)
    asked = " ".join(task.statement.split())[:MAX_PATTERN_STATEMENT_CHARS]
    event = next(event for event, _ in select_events(events, RunFinished))
    yield MemoryItem(
        table="patterns",
        run_id=folder.id,
        event_seq=event.seq,
        language=task.language,
        kind=task.kind,
        text=f"A like task was solved before: {asked}\nIts code: {solution}",
        patch=code,
        tests="\n".join(check.source or check.id for check in task.checks if check.provenance != "oracle"),
        repaired=True,
        created_s=event.time_s,
        search_text=f"{task.entry_point or ''} {task.statement}",
    )


def _lessons(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[MemoryItem]:
    drawn = list(select_events(events, LessonsDrawn))
    for event, last in drawn[-1:]:
        for lesson in last.lessons:
            yield MemoryItem(
                table="lessons",
                run_id=folder.id,
                event_seq=event.seq,
                language=task.language,
                kind=task.kind,
                text=lesson,
                repaired=result.outcome == "healed",
                created_s=event.time_s,
                search_text=lesson,
            )


def _patch(files: dict[str, bytes], result: Result) -> str:
    assert result.candidate is not None
    diff = unified_diff(files, overlay_candidate(files, result.candidate.files))
    return diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _operators(events: Sequence[Event], result: Result) -> tuple[str, ...]:
    """Return the operators that made the best candidate, if the search found it."""
    searched = last_payload(events, SearchFinished)
    if searched is None or result.candidate is None or result.candidate.origin != "mutation":
        return ()
    label = result.candidate.label
    return next((one.operators for one in searched.repairs if label.endswith(one.label)), ())


def _diagnosis(events: Sequence[Event]) -> str:
    diagnosed = last_payload(events, DiagnosisMade)
    return f"{diagnosed.diagnosis.category}: {diagnosed.diagnosis.root_cause}" if diagnosed else ""


def render_failure(fingerprint: FailureFingerprint, patch: str) -> str:
    """Return what a prompt says about a failure: short, with the changed lines.

    Args:
        fingerprint: The failure.
        patch: The unified diff that repaired it; empty if nothing did.
    """
    what = (
        f"{fingerprint.signature} in {fingerprint.function}"
        if fingerprint.function
        else fingerprint.signature
    )
    if not patch:
        return f"A like failure was not mended before: {what}."
    changed = [
        f"{line[0]} {' '.join(line[1:].split())[:MAX_CHANGED_LINE_CHARS]}"
        for line in patch.splitlines()
        if line[:1] in "+-" and line[1:].strip() and not line.startswith(("+++", "---"))
    ]
    shown = " | ".join(changed[:MAX_CHANGED_LINES])
    return f"A like failure ({what}) was mended by: {shown}"


def _without_blank_lines(code: str, most: int) -> str:
    lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    return "\n".join(lines)[:most]
