"""The full story of a run from its ledger and folder, also of one that still runs or was killed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from suture.core.ledger import (
    Event,
    LedgerContents,
    RunFolder,
    decision_after,
    encode_event,
    events_until,
    find_final_event,
    first_payload,
    get_run_state,
    get_run_status,
    last_step,
    read_ledger,
    select_events,
    spend_by_group,
    total_spend,
)
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    MovesDecided,
    RunFinished,
    RunStarted,
)
from suture.core.records import Candidate, Task, Verdict, VerdictNote, render_reason
from suture.errors import StorageError, UsageError
from suture.interfaces.narrative.event_text import counterexample_lines, render_event
from suture.interfaces.narrative.plain_text import join_lines, render_label
from suture.interfaces.narrative.spend_text import describe_share, describe_spend
from suture.interfaces.narrative.wording import EVIDENCE_TEXTS, render_verdict_note
from suture.project.workspace import unified_diff

MAX_COUNTEREXAMPLES = 5
MAX_TASK_CHARS = 60
"""Length of a task's first line in a list of runs."""
SPEND_GROUPS: tuple[Literal["role", "move"], ...] = ("role", "move")
"""How the spend is broken down."""


def run_summary_row(run: RunFolder) -> tuple[str, str, str, str]:
    """Return a run as a row of a list: id, state, tokens used, first line of the task."""
    try:
        reading = read_ledger(run.ledger_path)
    except StorageError as fault:  # one damaged run must not hide the others
        return run.id, "damaged", "", fault.message
    statement = _task_statement(reading)
    tokens = total_spend(reading.events).tokens
    first = (statement.splitlines() or [""])[0]
    shown = first if len(first) <= MAX_TASK_CHARS else f"{first[:MAX_TASK_CHARS].rpartition(' ')[0]} ..."
    return run.id, get_run_status(run, reading), f"{tokens:,} tokens", shown


def run_as_json(run: RunFolder) -> dict[str, Any]:
    """Return a run with its whole ledger as one JSON value."""
    reading = read_ledger(run.ledger_path)
    spend = total_spend(reading.events)
    end = find_final_event(reading.events)
    ended = end.payload if end is not None and isinstance(end.payload, RunFinished) else None
    return {
        "run": run.id,
        "folder": str(run.path),
        "state": get_run_state(run, reading),
        "outcome": ended.outcome if ended else None,
        "reason": render_reason(ended.reason) if ended else None,
        "reason_code": ended.reason.code if ended else None,
        "spend": {
            "attempts": spend.attempts,
            "tokens": spend.tokens,
            "model_calls": spend.model_calls,
            "money": spend.money,
            "unpriced_calls": spend.unpriced_calls,
            "seconds": round(spend.seconds, 3),
            **{f"by_{group}": _spend_by(reading, group) for group in SPEND_GROUPS},
        },
        "torn_lines": list(reading.torn_lines),
        "events": [encode_event(event) for event in reading.events],
    }


def run_as_text(run: RunFolder) -> str:
    """Return the story of a run for people. It can hold control characters: escape it before printing."""
    return join_lines(_story_lines(run, read_ledger(run.ledger_path)))


def _story_lines(run: RunFolder, reading: LedgerContents) -> Iterator[str]:
    state = get_run_state(run, reading)
    yield f"run {run.id} ({state})"
    yield f"folder: {run.path}"
    if reading.torn_lines:
        lines = ", ".join(map(str, reading.torn_lines))
        yield f"note: ledger line {lines} is incomplete (a crash, or still being written) and is skipped"
    if statement := _task_statement(reading):
        yield "task:"
        yield from (f"  {line}" for line in statement.splitlines())
    start_s = reading.events[0].time_s if reading.events else 0.0
    base = _task_files(run, reading)
    shown_candidates: set[str] = set()
    shown_notes: set[VerdictNote] = set()
    for event in reading.events:
        line = render_event(event)
        if line is None:
            continue
        yield ""
        yield f"{_elapsed(event.time_s - start_s)}  {line}"
        proposed = event.payload.candidate if isinstance(event.payload, CandidateProposed) else ""
        if proposed in shown_candidates:
            yield "         the same code as before"
            continue
        yield from (f"         {detail}" for detail in _event_details(run, event, base, shown_notes))
        if proposed:
            shown_candidates.add(proposed)
    yield ""
    if state == "running":
        yield "the run is still in progress"
    elif state == "waiting":
        yield f"the run waits for your answer: suture review {run.id}"
    elif state == "stopped":
        yield "the run has no result: its process was killed, or the machine went down"
    yield f"spent: {describe_spend(total_spend(reading.events), {})}"
    for group in SPEND_GROUPS:
        for name, spend in spend_by_group(reading.events, group).items():
            yield f"  {group} {name}: {describe_share(spend)}"


def _spend_by(reading: LedgerContents, group: Literal["role", "move"]) -> dict[str, Any]:
    """Return what each role, or each kind of move, has used."""
    left_out = ("seconds", "prompt_tokens", "completion_tokens")
    return {
        name: {key: value for key, value in vars(spend).items() if key not in left_out}
        for name, spend in spend_by_group(reading.events, group).items()
    }


def _task_statement(reading: LedgerContents) -> str:
    started = first_payload(reading.events, RunStarted)
    return started.statement.strip() if started else ""


def _elapsed(seconds: float) -> str:
    return time.strftime("%M:%S", time.gmtime(seconds)) if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _event_details(
    run: RunFolder, event: Event, base: Mapping[str, bytes], shown_notes: set[VerdictNote]
) -> list[str]:
    """Return the lines below an event's line: a candidate's code, or a verdict's facts.

    Each remark of a verdict appears once per run.
    """
    try:
        match event.payload:
            case CandidateProposed(blob=blob):
                return list(_candidate_code_lines(run.load_record(Candidate, blob), base))
            case CandidateChecked(verdict=blob):
                return list(_verdict_lines(run.load_record(Verdict, blob), shown_notes))
    except (StorageError, ValueError, KeyError, TypeError) as fault:
        return [f"(unreadable: {fault})"]
    return []


def _candidate_code_lines(candidate: Candidate, base: Mapping[str, bytes]) -> Iterator[str]:
    """Yield new files in full and changed files as a diff."""
    for path, text in sorted(candidate.files.items()):
        if path in base:
            sides = (base[path].decode("utf-8", "replace"), text)
            old, new = ("".join(f"{line}\n" for line in side.splitlines()) for side in sides)
            diff = unified_diff(
                {path: old.encode("utf-8", "replace")}, {path: new.encode("utf-8", "replace")}
            )
            yield from diff.split("\n")[1:-1]  # without the header line of git
        else:
            yield f"{path}:"
            yield from (f"  {line}" for line in text.splitlines())


def _verdict_lines(verdict: Verdict, shown_notes: set[VerdictNote]) -> Iterator[str]:
    facts = verdict.counterexamples
    for fact in facts[:MAX_COUNTEREXAMPLES]:
        yield from counterexample_lines(fact)
    if len(facts) > MAX_COUNTEREXAMPLES:
        yield f"and {len(facts) - MAX_COUNTEREXAMPLES} more"
    if verdict.failed and not facts:
        yield from (f"| {line}" for line in verdict.output.strip().splitlines()[-15:])
    yield from (f"note: {render_verdict_note(note)}" for note in verdict.notes if note not in shown_notes)
    shown_notes.update(verdict.notes)
    if verdict.all_passed:
        yield f"judged by {EVIDENCE_TEXTS[verdict.evidence]}"


def _task_files(run: RunFolder, reading: LedgerContents) -> Mapping[str, bytes]:
    """Return the task's own files; empty if the run folder no longer has them."""
    try:
        started = first_payload(reading.events, RunStarted)
        return run.load_record(Task, started.task).files if started else {}
    except StorageError:
        return {}


def step_as_json(run: RunFolder, step: int) -> dict[str, Any]:
    """Return the run as it was after a step as JSON values; raises as `step_as_text` does."""
    events, best, following = _state_after_step(run, step)
    verdict = _best_verdict(run, events, best)
    spend = total_spend(events)
    return {
        "run": run.id,
        "step": step,
        "last_step": last_step(read_ledger(run.ledger_path).events),
        "best": best,
        "label": _best_label(events, best),
        "files": dict(_best_files(run, events, best)),
        "passed": len(verdict.passed) if verdict else 0,
        "failed": len(verdict.failed) if verdict else 0,
        "facts": [vars(fact) for fact in verdict.counterexamples] if verdict else [],
        "spend": {name: getattr(spend, name) for name in ("attempts", "tokens", "model_calls", "money")}
        | {"seconds": round(spend.seconds, 3)},
        "decided_next": encode_event(following)["data"] if following else None,
        "next_text": render_event(following) if following else None,
    }


def step_as_text(run: RunFolder, step: int) -> str:
    """Return the run as it was after a step, for people.

    The text has the best candidate at that step, its counterexamples, the spend and the next decision.

    Raises:
        UsageError: There is no such step.
        StorageError: The run folder is damaged.
    """
    return join_lines(_step_lines(run, step))


def _step_lines(run: RunFolder, step: int) -> Iterator[str]:
    events, best, following = _state_after_step(run, step)
    verdict = _best_verdict(run, events, best)
    yield f"run {run.id} after step {step} of {last_step(read_ledger(run.ledger_path).events)}"
    if best is None:
        yield "best: no candidate yet"
    else:
        total = len(verdict.passed) + len(verdict.failed) if verdict else 0
        passed = f"{len(verdict.passed)} of {total} checks pass" if verdict and total else "not checked"
        yield f"best: candidate {best[:8]} ({render_label(_best_label(events, best))}): {passed}"
        for path, text in sorted(_best_files(run, events, best)):
            yield f"  {path}:"
            yield from (f"    {line}" for line in text.splitlines())
    if verdict:
        yield from (f"  {line}" for fact in verdict.counterexamples for line in counterexample_lines(fact))
    yield f"spent: {describe_spend(total_spend(events), {})}"
    if following:
        yield f"next: {render_event(following)}"
    yield f"continue from here: suture fork {run.id} --at {step} --set KEY=VALUE"


def _state_after_step(run: RunFolder, step: int) -> tuple[Sequence[Event], str | None, Event | None]:
    """Return the events up to a step, the best candidate then, and the decision that followed."""
    everything = read_ledger(run.ledger_path).events
    last = last_step(everything)
    if not 0 <= step <= last:
        raise UsageError(f"run {run.id} has no step {step}", remedy=f"its steps are 0 to {last}")
    events, following = events_until(everything, step), decision_after(everything, step)
    if following is not None:
        decided = following.payload
        return events, decided.best if isinstance(decided, MovesDecided) else None, following
    judged = [checked for _, checked in select_events(events, CandidateChecked)]
    best = max(judged, key=lambda checked: (checked.passed, -checked.failed), default=None)
    return events, best.candidate if best else None, None


def _first_check(events: Sequence[Event], best: str | None) -> CandidateChecked | None:
    """Return how the best candidate was first judged."""
    judged = select_events(events, CandidateChecked)
    return next((checked for _, checked in judged if checked.candidate == best), None)


def _best_label(events: Sequence[Event], best: str | None) -> str:
    checked = _first_check(events, best)
    return checked.label if checked else ""


def _best_verdict(run: RunFolder, events: Sequence[Event], best: str | None) -> Verdict | None:
    checked = _first_check(events, best)
    return run.load_record(Verdict, checked.verdict) if checked else None


def _best_files(run: RunFolder, events: Sequence[Event], best: str | None) -> Iterator[tuple[str, str]]:
    for _, proposed in select_events(events, CandidateProposed):
        if proposed.candidate == best:
            yield from run.load_record(Candidate, proposed.blob).files.items()
            return
