"""A run told from its ledger and its folder alone: also one that still goes on, or that was killed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from suture.core.ledger import (
    Event,
    LedgerReading,
    RunFolder,
    decision_after,
    event_as_json,
    events_until,
    first_payload,
    find_final_event,
    last_step,
    read_ledger,
    select_events,
    spend_by,
    spend_of,
    get_run_status,
    get_run_state,
)
from suture.core.ledger.kinds import CandidateChecked, CandidateProposed, Decided, RunFinished, RunStarted
from suture.core.records import Candidate, Task, Verdict
from suture.errors import StorageError, UsageError
from suture.interfaces.narrative.event_text import EVIDENCE_TEXTS, counterexample_lines, render_event
from suture.interfaces.narrative.plain_text import join_lines, render_label
from suture.interfaces.narrative.spend_text import describe_share, describe_spend
from suture.project.workspace import unified_diff

FACTS_SHOWN = 5
MAX_TASK_CHARS = 60
"""Characters of a task in a list of runs."""
SHARES: tuple[Literal["role", "move"], ...] = ("role", "move")
"""By what the spend is split."""


def run_summary_row(run: RunFolder) -> tuple[str, str, str, str]:
    """One run in a list: id, how it stands, tokens used, the first line of the task."""
    try:
        reading = read_ledger(run.ledger_path)
    except StorageError as fault:  # one run's damage hides no other run
        return run.id, "damaged", "", fault.message
    statement = _statement(reading)
    tokens = spend_of(reading.events).tokens
    first = (statement.splitlines() or [""])[0]
    shown = first if len(first) <= MAX_TASK_CHARS else f"{first[:MAX_TASK_CHARS].rpartition(' ')[0]} ..."
    return run.id, get_run_status(run, reading), f"{tokens:,} tokens", shown


def run_as_json(run: RunFolder) -> dict[str, Any]:
    """A run as one JSON value."""
    reading = read_ledger(run.ledger_path)
    spend = spend_of(reading.events)
    end = find_final_event(reading.events)
    ended = end.payload if end is not None and isinstance(end.payload, RunFinished) else None
    return {
        "run": run.id,
        "folder": str(run.path),
        "state": get_run_state(run, reading),
        "outcome": ended.outcome if ended else None,
        "reason": ended.reason if ended else None,
        "spend": {
            "attempts": spend.attempts,
            "tokens": spend.tokens,
            "model_calls": spend.model_calls,
            "money": spend.money,
            "unpriced_calls": spend.unpriced_calls,
            "seconds": round(spend.seconds, 3),
            **{f"by_{what}": _shares(reading, what) for what in SHARES},
        },
        "torn_lines": list(reading.torn_lines),
        "events": [event_as_json(event) for event in reading.events],
    }


def run_as_text(run: RunFolder) -> str:
    """A run as a story for people. It may hold control characters: escape it before it is printed."""
    return join_lines(_lines(run, read_ledger(run.ledger_path)))


def _lines(run: RunFolder, reading: LedgerReading) -> Iterator[str]:
    state = get_run_state(run, reading)
    yield f"run {run.id} ({state})"
    yield f"folder: {run.path}"
    if reading.torn_lines:
        lines = ", ".join(map(str, reading.torn_lines))
        yield f"note: ledger line {lines} was cut short by a crash, or is being written; it is left out"
    if statement := _statement(reading):
        yield "task:"
        yield from (f"  {line}" for line in statement.splitlines())
    start_s = reading.events[0].time_s if reading.events else 0.0
    base = _base_files(run, reading)
    seen: set[str] = set()
    remarks: set[str] = set()
    for event in reading.events:
        line = render_event(event)
        if line is None:
            continue
        yield ""
        yield f"{_offset(event.time_s - start_s)}  {line}"
        proposed = event.payload.candidate if isinstance(event.payload, CandidateProposed) else ""
        if proposed in seen:
            yield "         the same code as before"
            continue
        yield from (f"         {detail}" for detail in _details(run, event, base, remarks))
        if proposed:
            seen.add(proposed)
    yield ""
    if state == "running":
        yield "the run still goes on"
    elif state == "waiting":
        yield f"the run waits for a person: suture review {run.id}"
    elif state == "stopped":
        yield "the run has no end: its process was killed, or the machine went down"
    yield f"spent: {describe_spend(spend_of(reading.events), {})}"
    for what in SHARES:
        for name, spend in spend_by(reading.events, what).items():
            yield f"  {what} {name}: {describe_share(spend)}"


def _shares(reading: LedgerReading, what: Literal["role", "move"]) -> dict[str, Any]:
    """What each role, or each kind of move, has used."""
    left_out = ("seconds", "prompt_tokens", "completion_tokens")
    return {
        name: {key: value for key, value in vars(spend).items() if key not in left_out}
        for name, spend in spend_by(reading.events, what).items()
    }


def _statement(reading: LedgerReading) -> str:
    started = first_payload(reading.events, RunStarted)
    return started.statement.strip() if started else ""


def _offset(seconds: float) -> str:
    return time.strftime("%M:%S", time.gmtime(seconds)) if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _details(run: RunFolder, event: Event, base: Mapping[str, bytes], remarks: set[str]) -> list[str]:
    """What stands under an event's line: a candidate's code, or a verdict's facts, each remark once a run."""
    try:
        match event.payload:
            case CandidateProposed(blob=blob):
                return list(_code(run.get_record(Candidate, blob), base))
            case CandidateChecked(verdict=blob):
                return list(_facts(run.get_record(Verdict, blob), remarks))
    except (StorageError, ValueError, KeyError, TypeError) as fault:
        return [f"(not readable: {fault})"]
    return []


def _code(candidate: Candidate, base: Mapping[str, bytes]) -> Iterator[str]:
    """New files in full, changed ones as a diff."""
    for path, text in sorted(candidate.files.items()):
        if path in base:
            sides = (base[path].decode("utf-8", "replace"), text)
            old, new = ("".join(f"{line}\n" for line in side.splitlines()) for side in sides)
            diff = unified_diff(
                {path: old.encode("utf-8", "replace")}, {path: new.encode("utf-8", "replace")}
            )
            yield from diff.split("\n")[1:-1]  # but for the line that is git's alone
        else:
            yield f"{path}:"
            yield from (f"  {line}" for line in text.splitlines())


def _facts(verdict: Verdict, remarks: set[str]) -> Iterator[str]:
    facts = verdict.counterexamples
    for fact in facts[:FACTS_SHOWN]:
        yield from counterexample_lines(fact)
    if len(facts) > FACTS_SHOWN:
        yield f"and {len(facts) - FACTS_SHOWN} more"
    if verdict.failed and not facts:
        yield from (f"| {line}" for line in verdict.output.strip().splitlines()[-15:])
    yield from (f"note: {remark}" for remark in verdict.notes if remark not in remarks)
    remarks.update(verdict.notes)
    if verdict.all_passed:
        yield f"checked by {EVIDENCE_TEXTS[verdict.evidence]}"


def _base_files(run: RunFolder, reading: LedgerReading) -> Mapping[str, bytes]:
    """The task's own files, where the run folder still has them."""
    try:
        started = first_payload(reading.events, RunStarted)
        return run.get_record(Task, started.task).files if started else {}
    except StorageError:
        return {}


def step_as_json(run: RunFolder, step: int) -> dict[str, Any]:
    """A step as one JSON value; raises as `step_as_text` does."""
    events, best, following = _at(run, step)
    verdict = _verdict(run, events, best)
    spend = spend_of(events)
    return {
        "run": run.id,
        "step": step,
        "last_step": last_step(read_ledger(run.ledger_path).events),
        "best": best,
        "label": _label(events, best),
        "files": dict(_files(run, events, best)),
        "passed": len(verdict.passed) if verdict else 0,
        "failed": len(verdict.failed) if verdict else 0,
        "facts": [vars(fact) for fact in verdict.counterexamples] if verdict else [],
        "spend": {name: getattr(spend, name) for name in ("attempts", "tokens", "model_calls", "money")}
        | {"seconds": round(spend.seconds, 3)},
        "decided_next": event_as_json(following)["data"] if following else None,
    }


def step_as_text(run: RunFolder, step: int) -> str:
    """A step for people: the best candidate then, the facts about it, the spend, and what was decided next.

    Raises:
        UsageError: There is no such step.
        StorageError: The run folder is damaged.
    """
    return join_lines(_step_lines(run, step))


def _step_lines(run: RunFolder, step: int) -> Iterator[str]:
    events, best, following = _at(run, step)
    verdict = _verdict(run, events, best)
    yield f"run {run.id} after step {step} of {last_step(read_ledger(run.ledger_path).events)}"
    if best is None:
        yield "best: no candidate yet"
    else:
        total = len(verdict.passed) + len(verdict.failed) if verdict else 0
        passed = f"{len(verdict.passed)} of {total} checks pass" if verdict and total else "not checked"
        yield f"best: candidate {best[:8]} ({render_label(_label(events, best))}): {passed}"
        for path, text in sorted(_files(run, events, best)):
            yield f"  {path}:"
            yield from (f"    {line}" for line in text.splitlines())
    if verdict:
        yield from (f"  {line}" for fact in verdict.counterexamples for line in counterexample_lines(fact))
    yield f"spent: {describe_spend(spend_of(events), {})}"
    if following:
        yield f"next: {render_event(following)}"
    yield f"from here: suture fork {run.id} --at {step} --set KEY=VALUE"


def _at(run: RunFolder, step: int) -> tuple[Sequence[Event], str | None, Event | None]:
    """The events up to a step, the best candidate then, and the decision that came after it."""
    everything = read_ledger(run.ledger_path).events
    last = last_step(everything)
    if not 0 <= step <= last:
        raise UsageError(f"run {run.id} has no step {step}", remedy=f"there are 0 to {last}")
    events, following = events_until(everything, step), decision_after(everything, step)
    if following is not None:
        decided = following.payload
        return events, decided.best if isinstance(decided, Decided) else None, following
    judged = [checked for _, checked in select_events(events, CandidateChecked)]
    best = max(judged, key=lambda checked: (checked.passed, -checked.failed), default=None)
    return events, best.candidate if best else None, None


def _checked(events: Sequence[Event], best: str | None) -> CandidateChecked | None:
    """How the best candidate was first judged."""
    judged = select_events(events, CandidateChecked)
    return next((checked for _, checked in judged if checked.candidate == best), None)


def _label(events: Sequence[Event], best: str | None) -> str:
    checked = _checked(events, best)
    return checked.label if checked else ""


def _verdict(run: RunFolder, events: Sequence[Event], best: str | None) -> Verdict | None:
    checked = _checked(events, best)
    return run.get_record(Verdict, checked.verdict) if checked else None


def _files(run: RunFolder, events: Sequence[Event], best: str | None) -> Iterator[tuple[str, str]]:
    for _, proposed in select_events(events, CandidateProposed):
        if proposed.candidate == best:
            yield from run.get_record(Candidate, proposed.blob).files.items()
            return
