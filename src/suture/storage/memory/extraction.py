"""What one run taught, out of its ledger and its folder: failures, patterns and lessons.

It is a pure function of the run's record, so that what was lost can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suture.core.ledger import Event, RunFolder, first_payload, last_of, select_events
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    Diagnosed,
    LessonsDrawn,
    RunFinished,
    RunStarted,
    SearchFinished,
)
from suture.core.records import Candidate, Result, Task, Verdict
from suture.project.workspace import overlay, unified_diff
from suture.storage.memory.fingerprints import FailureClue, clues_of_failure, kind_of
from suture.storage.memory.memory_items import Item, bounded

MOST_FAILURES = 5
"""Kinds of failures that one run leaves."""
MOST_CHANGED = 12
"""Changed lines of a patch that a prompt shows."""
MOST_LINE_CHARS = 120
MOST_STATEMENT_CHARS = 300
MOST_SOLUTION_CHARS = 700


def items_of(folder: RunFolder, events: Sequence[Event]) -> tuple[Item, ...]:
    """All that a run taught; nothing where it did not end, or does another again.

    Raises:
        StorageError: A blob cannot be read.
    """
    started, ended = first_payload(events, RunStarted), last_of(events, RunFinished)
    if started is None or ended is None or started.replays or not (started.task and ended.result):
        return ()
    task, result = folder.get_record(Task, started.task), folder.get_record(Result, ended.result)
    found = [*_failures(folder, events, task, result), *_patterns(folder, events, task, result)]
    found += _lessons(folder, events, task, result)
    return tuple({item.key: item for item in map(bounded, found)}.values())


def _failures(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[Item]:
    """The failures that the run began with, or that its best candidate was a repair of."""
    seen = _failing(folder, events, task, result)
    if seen is None:
        return
    event, verdict, files = seen
    healed = result.outcome == "healed"
    patch = _patch(files, result) if result.candidate and healed else ""
    said = _diagnosis(events)
    for clue in clues_of_failure(verdict, files, task)[:MOST_FAILURES]:
        yield Item(
            table="failures",
            run_id=folder.id,
            event_seq=event.seq,
            language=task.language,
            kind=kind_of(clue.signature),
            text=told_of_failure(clue, patch),
            error_signature=clue.signature,
            counterexample=clue.fact,
            diagnosis=said,
            code_shape=clue.shape,
            patch=patch,
            tests="\n".join(sorted(verdict.failed)),
            mended=healed,
            created_s=event.time_s,
            details={"operators": list(_operators(events, result))} if healed else {},
            searched=clue.searched,
        )


def _failing(
    folder: RunFolder, events: Sequence[Event], task: Task, result: Result
) -> tuple[Event, Verdict, dict[str, bytes]] | None:
    """The verdict that tells what was wrong, its event, and the files as they were then."""
    wanted = result.candidate.parent if task.kind == "write" and result.candidate else None
    proposed = {one.candidate: one for _, one in select_events(events, CandidateProposed)}
    for event, checked in select_events(events, CandidateChecked):
        if not checked.failed or not checked.verdict:
            continue
        first = proposed.get(checked.candidate)
        if task.kind == "heal" and first is None:  # nobody proposed the user's own code
            return event, folder.get_record(Verdict, checked.verdict), dict(task.files)
        if task.kind == "write" and first is not None and checked.candidate == wanted:
            files = overlay(task.files, folder.get_record(Candidate, first.blob).files)
            return event, folder.get_record(Verdict, checked.verdict), dict(files)
    return None


def _patterns(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[Item]:
    """A task that was written and passes: what was asked, what solved it, and what guarded it."""
    if task.kind != "write" or result.outcome != "healed" or result.candidate is None:
        return
    code = "\n".join(result.candidate.files.values())
    asked = " ".join(task.statement.split())[:MOST_STATEMENT_CHARS]
    event = next(event for event, _ in select_events(events, RunFinished))
    yield Item(
        table="patterns",
        run_id=folder.id,
        event_seq=event.seq,
        language=task.language,
        kind=task.kind,
        text=f"A like task was solved before: {asked}\nIts code: {_squeezed(code, MOST_SOLUTION_CHARS)}",
        patch=code,
        tests="\n".join(check.source or check.id for check in task.checks if check.provenance != "oracle"),
        mended=True,
        created_s=event.time_s,
        searched=f"{task.entry_point or ''} {task.statement}",
    )


def _lessons(folder: RunFolder, events: Sequence[Event], task: Task, result: Result) -> Iterator[Item]:
    drawn = list(select_events(events, LessonsDrawn))
    for event, last in drawn[-1:]:
        for lesson in last.lessons:
            yield Item(
                table="lessons",
                run_id=folder.id,
                event_seq=event.seq,
                language=task.language,
                kind=task.kind,
                text=lesson,
                mended=result.outcome == "healed",
                created_s=event.time_s,
                searched=lesson,
            )


def _patch(files: dict[str, bytes], result: Result) -> str:
    assert result.candidate is not None
    diff = unified_diff(files, overlay(files, result.candidate.files))
    return diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _operators(events: Sequence[Event], result: Result) -> tuple[str, ...]:
    """The operators that made the best candidate, where the search did."""
    searched = last_of(events, SearchFinished)
    if searched is None or result.candidate is None or result.candidate.origin != "mutation":
        return ()
    label = result.candidate.label
    return next((one.operators for one in searched.repairs if label.endswith(one.label)), ())


def _diagnosis(events: Sequence[Event]) -> str:
    said = last_of(events, Diagnosed)
    return f"{said.diagnosis.category}: {said.diagnosis.root_cause}" if said else ""


def told_of_failure(clue: FailureClue, patch: str) -> str:
    """What a prompt says of a failure: short, and the change as lines that go and come.

    Args:
        clue: The failure.
        patch: The unified diff that mended it; empty where nothing did.
    """
    what = f"{clue.signature} in {clue.function}" if clue.function else clue.signature
    if not patch:
        return f"A like failure was not mended before: {what}."
    changed = [
        f"{line[0]} {' '.join(line[1:].split())[:MOST_LINE_CHARS]}"
        for line in patch.splitlines()
        if line[:1] in "+-" and line[1:].strip() and not line.startswith(("+++", "---"))
    ]
    shown = " | ".join(changed[:MOST_CHANGED])
    return f"A like failure ({what}) was mended by: {shown}"


def _squeezed(code: str, most: int) -> str:
    lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    return "\n".join(lines)[:most]
