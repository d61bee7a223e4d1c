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
    """Return the items that a run contributes; none if it did not end, or replays another run."""
    started, ended = first_payload(events, RunStarted), last_payload(events, RunFinished)
    if started is None or ended is None or started.replayed_run or not (started.task and ended.result):
        return ()
    task, result = folder.load_record(Task, started.task), folder.load_record(Result, ended.result)
    items = [
        *_extract_failures(folder, events, task, result),
        *_extract_patterns(folder, events, task, result),
        *_extract_lessons(folder, events, task, result),
    ]
    return tuple({item.key: item for item in map(sanitise_item, items)}.values())


def _extract_failures(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> Iterator[MemoryItem]:
    """Yield the failures that the run started with, or that its best candidate repaired."""
    failing_state = _find_failing_state(folder, events, task, result)
    if failing_state is None:
        return
    event, verdict, files = failing_state
    healed = result.outcome == "healed"
    patch = ""
    if result.candidate and healed:
        diff = unified_diff(files, overlay_candidate(files, result.candidate.files))
        patch = diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    diagnosed = last_payload(events, DiagnosisMade)
    diagnosis = f"{diagnosed.diagnosis.category}: {diagnosed.diagnosis.root_cause}" if diagnosed else ""
    for fingerprint in fingerprint_failures(verdict, files, task)[:MAX_FAILURES_PER_RUN]:
        yield MemoryItem(
            table="failures",
            run_id=folder.id,
            language=task.language,
            kind=error_class(fingerprint.signature),
            text=render_failure(fingerprint, patch),
            error_signature=fingerprint.signature,
            counterexample=fingerprint.counterexample,
            diagnosis=diagnosis,
            code_shape=fingerprint.shape,
            patch=patch,
            tests="\n".join(sorted(verdict.failed)),
            repaired=healed,
            created_s=event.time_s,
            search_text=fingerprint.search_text,
        )


def _find_failing_state(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> tuple[Event, Verdict, dict[str, bytes]] | None:
    """Return `(event, verdict, files)` of the check that shows what was wrong, with the files at that time.

    When code is repaired, that is the check of the user's own code. When code is written, it is the check of
    the candidate from which the best one was made.
    """
    parent = result.candidate.parent if task.kind == "write" and result.candidate else None
    proposals = {proposal.candidate: proposal for _, proposal in select_events(events, CandidateProposed)}
    for event, checked in select_events(events, CandidateChecked):
        if not checked.failed or not checked.verdict:
            continue
        proposal = proposals.get(checked.candidate)
        if task.kind == "heal" and proposal is None:  # the user's own code has no proposal
            return event, folder.load_record(Verdict, checked.verdict), dict(task.files)
        if task.kind == "write" and proposal is not None and checked.candidate == parent:
            files = overlay_candidate(task.files, folder.load_record(Candidate, proposal.blob).files)
            return event, folder.load_record(Verdict, checked.verdict), dict(files)
    return None


def _extract_patterns(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> Iterator[MemoryItem]:
    """Yield a task that was written and passes: its statement, its solution and its tests."""
    if task.kind != "write" or result.outcome != "healed" or result.candidate is None:
        return
    code = "\n".join(result.candidate.files.values())
    code_lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    solution = "\n".join(code_lines)[:MAX_PATTERN_SOLUTION_CHARS]
    statement = " ".join(task.statement.split())[:MAX_PATTERN_STATEMENT_CHARS]
    event = next(event for event, _ in select_events(events, RunFinished))
    yield MemoryItem(
        table="patterns",
        run_id=folder.id,
        language=task.language,
        kind=task.kind,
        text=f"A like task was solved before: {statement}\nIts code: {solution}",
        patch=code,
        tests="\n".join(check.source or check.id for check in task.checks if check.provenance != "oracle"),
        repaired=True,
        created_s=event.time_s,
        search_text=f"{task.entry_point or ''} {task.statement}",
    )


def _extract_lessons(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> Iterator[MemoryItem]:
    """Yield the lessons that were drawn last."""
    for event, drawn in list(select_events(events, LessonsDrawn))[-1:]:
        for lesson in drawn.lessons:
            yield MemoryItem(
                table="lessons",
                run_id=folder.id,
                language=task.language,
                kind=task.kind,
                text=lesson,
                repaired=result.outcome == "healed",
                created_s=event.time_s,
                search_text=lesson,
            )


def render_failure(fingerprint: FailureFingerprint, patch: str) -> str:
    """Return what a prompt says about a failure and the unified diff that repaired it, which may be empty."""
    function = f" in {fingerprint.function}" if fingerprint.function else ""
    failure = f"{fingerprint.signature}{function}"
    if not patch:
        return f"A like failure was not mended before: {failure}."
    changed_lines = [
        f"{line[0]} {' '.join(line[1:].split())[:MAX_CHANGED_LINE_CHARS]}"
        for line in patch.splitlines()
        if line[:1] in "+-" and line[1:].strip() and not line.startswith(("+++", "---"))
    ]
    return f"A like failure ({failure}) was mended by: {' | '.join(changed_lines[:MAX_CHANGED_LINES])}"
