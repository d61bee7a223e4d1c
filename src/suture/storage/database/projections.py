"""What went wrong in a verdict: its kind in a word, and the smallest fact in a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suture.core.ledger import (
    Event,
    LedgerReading,
    RunFolder,
    first_payload,
    get_run_status,
    last_of,
    read_ledger,
    select_events,
    spend_by,
    spend_of,
)
from suture.core.ledger.kinds import (
    BudgetSettled,
    CandidateChecked,
    CandidateProposed,
    Decided,
    ModelCalled,
    ReviewAnswered,
    ReviewAsked,
    RunFinished,
    RunParked,
    RunRefused,
    RunStarted,
    SearchFinished,
    TaskPrepared,
)
from suture.core.records import CheckOutcome, Verdict
from suture.errors import StorageError
from suture.storage.database.full_text_search import searched_words

EXCEPTION = re.compile(r"(?:^|[\s.])([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b")
WRONG = "wrong answer"
STATUS_WORDS = {"timeout": "timeout", "missing": "not collected", "error": "error"}
MOST_CHARS = 2000


def error_of(verdict: Verdict) -> tuple[str, str]:
    """The kind and the text of the first failure; both empty where nothing failed."""
    failed = [outcome for outcome in verdict.outcomes if not outcome.passed and outcome.status != "skipped"]
    if not failed:
        return "", ""
    first = min(failed, key=lambda outcome: outcome.counterexample is None)  # one that says something, if any
    return error_kind(first), _text(first)[:MOST_CHARS]


def error_kind(outcome: CheckOutcome) -> str:
    """An exception's type, `wrong answer`, `timeout` or `not collected`."""
    fact = outcome.counterexample
    if outcome.status in ("timeout", "missing"):
        return STATUS_WORDS[outcome.status]
    if fact is not None and fact.exception:
        found = EXCEPTION.search(fact.exception)
        kind = found[1] if found else fact.exception.partition(":")[0].strip()
        return WRONG if kind == "AssertionError" else kind[:80] or "error"
    return STATUS_WORDS.get(outcome.status, WRONG)


def _text(outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    if fact is None:
        return f"{outcome.check_id}: {outcome.status}"
    where = f" ({fact.file} line {fact.line})" if fact.line else ""
    said = (
        fact.call,
        f"expected {fact.expected}" if fact.expected else "",
        f"got {fact.actual}" if fact.actual else "",
        f"raised {fact.exception}{where}" if fact.exception else "",
    )
    return f"{outcome.check_id}: " + "; ".join(part for part in said if part)


Row = dict[str, Any]
DEFAULT_NAMESPACE = "default"
MOST_STATEMENT = 2000


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """What the tables hold of one run.

    Attributes:
        namespace: Whose run it is.
        run_id: The run.
        task: The row of `tasks`.
        iterations: Rows of `iterations`, in order.
        metrics: Rows of `metrics`.
        approvals: Rows of `approvals`, in order.
    """

    namespace: str
    run_id: str
    task: Row
    iterations: tuple[Row, ...] = ()
    metrics: tuple[Row, ...] = ()
    approvals: tuple[Row, ...] = ()


@dataclass(kw_only=True)
class _Step:
    """An iteration as it is read: what stands between one decision and the next."""

    number: int
    round: int
    move: str
    started_s: float
    ended_s: float
    candidates: int = 0
    passed: int = -1
    failed: int = 0
    tokens: int = 0
    model_calls: int = 0
    verdict: str = ""


def rows_of(run: RunFolder) -> RunRows:
    """What the tables are to hold of a run, from its ledger and its blobs alone.

    A ledger that cannot be read makes one row with the outcome `damaged`: it hides no other run.
    """
    size = _size_of(run)
    try:
        reading = read_ledger(run.ledger_path)
    except StorageError as fault:
        task = {"outcome": "damaged", "statement": fault.message, "ledger_bytes": size}
        return RunRows(namespace=DEFAULT_NAMESPACE, run_id=run.id, task=task)
    events = reading.events
    started = first_payload(events, RunStarted)
    steps = list(_steps(events))
    iterations = tuple(_iteration(step, run) for step in steps)
    return RunRows(
        namespace=started.namespace if started else DEFAULT_NAMESPACE,
        run_id=run.id,
        task={**_task(run, reading, iterations), "ledger_bytes": size},
        iterations=iterations,
        metrics=tuple(_metrics(events, iterations)),
        approvals=tuple(_approvals(events)),
    )


def _size_of(run: RunFolder) -> int:
    """Bytes of the ledger, asked before it is read: what is written meanwhile is read the next time."""
    try:
        return run.ledger_path.stat().st_size
    except OSError:
        return 0


def _task(run: RunFolder, reading: LedgerReading, iterations: Sequence[Row]) -> Row:
    events = reading.events
    started, prepared = first_payload(events, RunStarted), first_payload(events, TaskPrepared)
    end = last_of(events, RunFinished) or last_of(events, RunParked)
    refused = last_of(events, RunRefused)
    checked = last_of(events, CandidateChecked)
    spend = spend_of(events)
    forks = started.forks if started else None
    outcome = get_run_status(run, reading)
    statement = (started.statement if started else "")[:MOST_STATEMENT]
    reason = end.reason if end else f"{refused.kind}: {refused.message}" if refused else ""
    project = started.project if started else ""
    errors = " ".join(row["error"] for row in iterations)
    return {
        "kind": started.kind if started else "",
        "statement": statement,
        "language": (prepared.language or "python") if prepared else "",
        "recipe": started.recipe if started else "",
        "model": started.model if started else "",
        "sandbox": started.sandbox if started else "",
        "project": project,
        "outcome": outcome,
        "reason": reason,
        "evidence": checked.evidence if checked else "",
        "confidence": end.confidence if end else 0.0,
        "attempts": spend.attempts,
        "tokens": spend.tokens,
        "prompt_tokens": spend.prompt_tokens,
        "completion_tokens": spend.completion_tokens,
        "model_calls": spend.model_calls,
        "money": spend.money,
        "seconds": round(spend.seconds, 3),
        "started_s": events[0].time_s if events else None,
        "ended_s": events[-1].time_s if events and outcome not in ("running", "waiting") else None,
        "fork_of": forks.run if forks else "",
        "fork_at": forks.at if forks else None,
        "replay_of": started.replays if started else "",
        "events": len(events),
        "searched": searched_words(statement, project, outcome, reason, errors),
    }


def _steps(events: Sequence[Event]) -> Iterator[_Step]:
    """The iterations: number 0 is the run of the checks on the code as it is, before anything is decided."""
    step: _Step | None = None
    decisions = 0
    for event in events:
        payload = event.payload
        if isinstance(payload, Decided):
            if step is not None:
                yield step
            decisions += 1
            stops = payload.moves[0].kind == "stop"
            step = None if stops else _begun(decisions, payload, event.time_s)
            continue
        if step is None:
            if decisions or not isinstance(payload, CandidateChecked):
                continue
            step = _Step(number=0, round=0, move="start", started_s=event.time_s, ended_s=event.time_s)
            step.started_s -= payload.seconds
        _take_in(step, event)
    if step is not None:
        yield step


def _begun(number: int, decided: Decided, now_s: float) -> _Step:
    kinds = ", ".join(dict.fromkeys(move.kind for move in decided.moves))
    return _Step(number=number, round=decided.round, move=kinds, started_s=now_s, ended_s=now_s)


def _take_in(step: _Step, event: Event) -> None:
    step.ended_s = max(step.ended_s, event.time_s)
    match event.payload:
        case CandidateProposed():
            step.candidates += 1
        case BudgetSettled() as settled:
            step.tokens += settled.prompt_tokens + settled.completion_tokens
            step.model_calls += settled.model_calls
        case CandidateChecked() as checked if checked.passed > step.passed:
            step.passed, step.failed, step.verdict = checked.passed, checked.failed, checked.verdict


def _iteration(step: _Step, run: RunFolder) -> Row:
    kind, error = _error(step, run)
    return {
        "number": step.number,
        "round": step.round,
        "move": step.move,
        "candidates": step.candidates,
        "passed": max(step.passed, 0),
        "failed": step.failed,
        "tokens": step.tokens,
        "model_calls": step.model_calls,
        "started_s": step.started_s,
        "seconds": round(step.ended_s - step.started_s, 3),
        "error_kind": kind,
        "error": error,
        "searched": searched_words(kind, error),
    }


def _error(step: _Step, run: RunFolder) -> tuple[str, str]:
    if not step.failed or not step.verdict:
        return "", ""
    try:
        return error_of(run.get_record(Verdict, step.verdict))
    except StorageError:  # the ledger says that it failed, and the blob is damaged or gone
        return "unknown", ""


def _metrics(events: Sequence[Event], iterations: Iterable[Row]) -> Iterator[Row]:
    for what in ("role", "move"):
        for phase, spend in spend_by(events, what).items():
            yield _metric(f"tokens by {what}", phase, spend.tokens)
            yield _metric(f"calls by {what}", phase, spend.model_calls)
    yield from (_metric("seconds", phase, value) for phase, value in _seconds(events).items() if value)
    kinds = Counter(row["error_kind"] for row in iterations if row["error_kind"])
    yield from (_metric("errors", kind, count) for kind, count in kinds.items())
    origins = Counter(payload.origin for _, payload in select_events(events, CandidateProposed))
    yield from (_metric("candidates", origin, count) for origin, count in origins.items())


def _metric(name: str, phase: str, value: float) -> Row:
    return {"name": name, "phase": phase[:200], "value": round(float(value), 6)}


def _seconds(events: Sequence[Event]) -> Mapping[str, float]:
    """Wall-clock seconds by phase. Calls and checks that went on side by side count each."""
    if not events:
        return {}
    decisions = [event for event, _ in select_events(events, Decided)]
    first = decisions[0].time_s if decisions else events[-1].time_s
    calls = (call for _, call in select_events(events, ModelCalled))
    found = {
        "prepare": first - events[0].time_s,
        "search": sum(search.seconds for _, search in select_events(events, SearchFinished)),
        "model": sum(call.seconds for call in calls if not call.replayed),
        "checks": sum(checked.seconds for _, checked in select_events(events, CandidateChecked)),
        "proof": 0.0,
    }
    ends = [event for event, _ in select_events(events, RunFinished)]
    if decisions and ends and _stops(decisions[-1]):
        found["proof"] = ends[-1].time_s - decisions[-1].time_s
    return {phase: max(0.0, seconds) for phase, seconds in found.items()}


def _stops(event: Event) -> bool:
    return isinstance(event.payload, Decided) and event.payload.moves[0].kind == "stop"


def _approvals(events: Sequence[Event]) -> Iterator[Row]:
    answers = {payload.key: (event, payload) for event, payload in select_events(events, ReviewAnswered)}
    asked_of: dict[str, tuple[Event, ReviewAsked]] = {}
    for event, asked in select_events(events, ReviewAsked):
        asked_of.setdefault(asked.key, (event, asked))  # asked again by each process that goes on with it
    for key, (event, asked) in asked_of.items():
        answered, answer = answers.get(key, (None, None))
        yield {
            "event_seq": event.seq,
            "question": key[:200],
            "stage": asked.stage,
            "subject": _subject(asked),
            "choice": answer.choice if answer else "",
            "hint": answer.hint if answer else "",
            "asked_s": event.time_s,
            "answered_s": answered.time_s if answered else None,
        }


def _subject(asked: ReviewAsked) -> str:
    if asked.difference is not None:
        return asked.difference.call
    return "; ".join(f"{move.kind}: {move.reason}" for move in asked.moves)
