"""A run told from its ledger and its folder alone: also one that still goes on, or that was killed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from suture.core.ledger import (
    Event,
    LedgerReading,
    RunFolder,
    event_as_json,
    first_of,
    last_end,
    read_ledger,
    spend_by,
    spend_of,
    stands,
    state_of,
)
from suture.core.ledger.kinds import CandidateChecked, CandidateProposed, RunFinished, RunStarted
from suture.core.records import Candidate, Task, Verdict
from suture.errors import StorageError
from suture.interfaces.narrative.event_text import EVIDENCE_WORDS, fact_lines, tell
from suture.interfaces.narrative.lines import as_lines
from suture.interfaces.narrative.spend_text import describe_share, describe_spend
from suture.project.workspace import unified_diff

FACTS_SHOWN = 5
MOST_SHOWN = 60
"""Characters of a task in a list of runs."""
SHARES: tuple[Literal["role", "move"], ...] = ("role", "move")
"""By what the spend is split."""


def summary_row(run: RunFolder) -> tuple[str, str, str, str]:
    """One run in a list: id, how it stands, tokens used, the first line of the task."""
    try:
        reading = read_ledger(run.ledger_path)
    except StorageError as fault:  # one run's damage hides no other run
        return run.id, "damaged", "", fault.message
    statement = _statement(reading)
    tokens = spend_of(reading.events).tokens
    first = (statement.splitlines() or [""])[0]
    shown = first if len(first) <= MOST_SHOWN else f"{first[:MOST_SHOWN].rpartition(' ')[0]} ..."
    return run.id, stands(run, reading), f"{tokens:,} tokens", shown


def run_as_json(run: RunFolder) -> dict[str, Any]:
    """A run as one JSON value."""
    reading = read_ledger(run.ledger_path)
    spend = spend_of(reading.events)
    end = last_end(reading.events)
    ended = end.payload if end is not None and isinstance(end.payload, RunFinished) else None
    return {
        "run": run.id,
        "folder": str(run.path),
        "state": state_of(run, reading),
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
    return as_lines(_lines(run, read_ledger(run.ledger_path)))


def _lines(run: RunFolder, reading: LedgerReading) -> Iterator[str]:
    state = state_of(run, reading)
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
        line = tell(event)
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
    started = first_of(reading.events, RunStarted)
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
        yield from fact_lines(fact)
    if len(facts) > FACTS_SHOWN:
        yield f"and {len(facts) - FACTS_SHOWN} more"
    if verdict.failed and not facts:
        yield from (f"| {line}" for line in verdict.output.strip().splitlines()[-15:])
    yield from (f"note: {remark}" for remark in verdict.notes if remark not in remarks)
    remarks.update(verdict.notes)
    if verdict.all_passed:
        yield f"checked by {EVIDENCE_WORDS[verdict.evidence]}"


def _base_files(run: RunFolder, reading: LedgerReading) -> Mapping[str, bytes]:
    """The task's own files, where the run folder still has them."""
    try:
        started = first_of(reading.events, RunStarted)
        return run.get_record(Task, started.task).files if started else {}
    except StorageError:
        return {}
