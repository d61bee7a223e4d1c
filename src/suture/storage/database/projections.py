"""Projection of a run's ledger into rows; the same ledger always gives the same rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from suture.core.ledger import (
    Event,
    LedgerContents,
    RunFolder,
    first_payload,
    get_run_status,
    last_payload,
    read_ledger,
    select_events,
    spend_by_group,
    total_spend,
)
from suture.core.ledger.kinds import (
    BudgetSettled,
    CandidateChecked,
    CandidateProposed,
    ModelCalled,
    MovesDecided,
    ReviewAnswered,
    ReviewAsked,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStarted,
    SearchFinished,
    TaskPrepared,
)
from suture.core.records import CheckOutcome, Verdict, render_reason
from suture.errors import StorageError
from suture.storage.database.full_text_search import index_text
from suture.storage.tuning import MAX_ERROR_CHARS, MAX_STATEMENT_CHARS

EXCEPTION = re.compile(r"(?:^|[\s.])([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b")
"""An exception's class name in a message."""
ErrorKind = Literal["wrong_answer", "timeout", "not_collected", "error", "unknown"]
"""Kinds of failures without an exception. `unknown` stands for a verdict that cannot be read."""
MetricName = Literal[
    "tokens_by_role", "tokens_by_move", "calls_by_role", "calls_by_move", "seconds", "errors", "candidates"
]
STATUS_KINDS: Mapping[str, ErrorKind] = {
    "timeout": "timeout",
    "missing": "not_collected",
    "error": "error",
}


def first_error(verdict: Verdict) -> tuple[str, str]:
    """Return the kind and the text of the first failure; both are empty if nothing failed."""
    failed = [outcome for outcome in verdict.outcomes if not outcome.passed and outcome.status != "skipped"]
    if not failed:
        return "", ""
    first = min(
        failed, key=lambda outcome: outcome.counterexample is None
    )  # prefer one with a counterexample
    return error_kind(first), _error_text(first)[:MAX_ERROR_CHARS]


def error_kind(outcome: CheckOutcome) -> str:
    """Return an exception's class name, or an `ErrorKind`."""
    fact = outcome.counterexample
    if outcome.status in ("timeout", "missing"):
        return STATUS_KINDS[outcome.status]
    if fact is not None and fact.exception:
        found = EXCEPTION.search(fact.exception)
        kind = found[1] if found else fact.exception.partition(":")[0].strip()
        return "wrong_answer" if kind == "AssertionError" else kind[:80] or "error"
    return STATUS_KINDS.get(outcome.status, "wrong_answer")


def _error_text(outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    if fact is None:
        return f"{outcome.check_id}: {outcome.status}"
    where = f" ({fact.file} line {fact.line})" if fact.line else ""
    parts = (
        fact.call,
        f"expected {fact.expected}" if fact.expected else "",
        f"got {fact.actual}" if fact.actual else "",
        f"raised {fact.exception}{where}" if fact.exception else "",
    )
    return f"{outcome.check_id}: " + "; ".join(part for part in parts if part)


Row = dict[str, Any]
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """The rows of one run.

    Attributes:
        namespace: The run's namespace.
        run_id: The run's id.
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
    """An iteration while its events are read: everything between two decisions."""

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


def project_run(run: RunFolder) -> RunRows:
    """Return the rows of a run, from its ledger and its blobs alone.

    An unreadable ledger gives one row with the outcome `damaged`, so that it does not hide other runs.
    """
    size = _ledger_size(run)
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


def _ledger_size(run: RunFolder) -> int:
    """Return the ledger's size in bytes before it is read, so that later lines are read the next time."""
    try:
        return run.ledger_path.stat().st_size
    except OSError:
        return 0


def _task(run: RunFolder, reading: LedgerContents, iterations: Sequence[Row]) -> Row:
    events = reading.events
    started, prepared = first_payload(events, RunStarted), first_payload(events, TaskPrepared)
    end = last_payload(events, RunFinished) or last_payload(events, RunPaused)
    refused = last_payload(events, RunFailed)
    checked = last_payload(events, CandidateChecked)
    spend = total_spend(events)
    forks = started.fork if started else None
    outcome = get_run_status(run, reading)
    statement = (started.statement if started else "")[:MAX_STATEMENT_CHARS]
    reason = (
        render_reason(end.reason) if end else f"{refused.error_type}: {refused.message}" if refused else ""
    )
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
        "fork_at": forks.step if forks else None,
        "replay_of": started.replayed_run if started else "",
        "events": len(events),
        "search_text": index_text(statement, project, outcome, reason, errors),
    }


def _steps(events: Sequence[Event]) -> Iterator[_Step]:
    """Yield the iterations; number 0 is the run of the checks before the first decision."""
    step: _Step | None = None
    decisions = 0
    for event in events:
        payload = event.payload
        if isinstance(payload, MovesDecided):
            if step is not None:
                yield step
            decisions += 1
            stops = payload.moves[0].kind == "stop"
            step = None if stops else _start_step(decisions, payload, event.time_s)
            continue
        if step is None:
            if decisions or not isinstance(payload, CandidateChecked):
                continue
            step = _Step(number=0, round=0, move="start", started_s=event.time_s, ended_s=event.time_s)
            step.started_s -= payload.seconds
        _add_event(step, event)
    if step is not None:
        yield step


def _start_step(number: int, decided: MovesDecided, now_s: float) -> _Step:
    kinds = ", ".join(dict.fromkeys(move.kind for move in decided.moves))
    return _Step(number=number, round=decided.round, move=kinds, started_s=now_s, ended_s=now_s)


def _add_event(step: _Step, event: Event) -> None:
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
        "search_text": index_text(kind, error),
    }


def _error(step: _Step, run: RunFolder) -> tuple[str, str]:
    if not step.failed or not step.verdict:
        return "", ""
    try:
        return first_error(run.load_record(Verdict, step.verdict))
    except StorageError:  # the blob of the failed verdict is damaged or missing
        return "unknown", ""


def _metrics(events: Sequence[Event], iterations: Iterable[Row]) -> Iterator[Row]:
    for what in ("role", "move"):
        for phase, spend in spend_by_group(events, what).items():
            yield _metric(f"tokens_by_{what}", phase, spend.tokens)
            yield _metric(f"calls_by_{what}", phase, spend.model_calls)
    yield from (_metric("seconds", phase, value) for phase, value in _seconds(events).items() if value)
    kinds = Counter(row["error_kind"] for row in iterations if row["error_kind"])
    yield from (_metric("errors", kind, count) for kind, count in kinds.items())
    origins = Counter(payload.origin for _, payload in select_events(events, CandidateProposed))
    yield from (_metric("candidates", origin, count) for origin, count in origins.items())


def _metric(name: str, phase: str, value: float) -> Row:
    return {"name": name, "phase": phase[:200], "value": round(float(value), 6)}


def _seconds(events: Sequence[Event]) -> Mapping[str, float]:
    """Return wall-clock seconds by phase. Parallel calls and checks count individually."""
    if not events:
        return {}
    decisions = [event for event, _ in select_events(events, MovesDecided)]
    first = decisions[0].time_s if decisions else events[-1].time_s
    calls = (call for _, call in select_events(events, ModelCalled))
    found = {
        "prepare": first - events[0].time_s,
        "search": sum(search.seconds for _, search in select_events(events, SearchFinished)),
        "model": sum(call.seconds for call in calls if not call.replayed),
        "checks": sum(checked.seconds for _, checked in select_events(events, CandidateChecked)),
        "certification": 0.0,
    }
    ends = [event for event, _ in select_events(events, RunFinished)]
    if decisions and ends and _stops(decisions[-1]):
        found["certification"] = ends[-1].time_s - decisions[-1].time_s
    return {phase: max(0.0, seconds) for phase, seconds in found.items()}


def _stops(event: Event) -> bool:
    return isinstance(event.payload, MovesDecided) and event.payload.moves[0].kind == "stop"


def _approvals(events: Sequence[Event]) -> Iterator[Row]:
    answers = {payload.key: (event, payload) for event, payload in select_events(events, ReviewAnswered)}
    first_asked: dict[str, tuple[Event, ReviewAsked]] = {}
    for event, asked in select_events(events, ReviewAsked):
        first_asked.setdefault(asked.key, (event, asked))  # each process that resumes the run asks again
    for key, (event, asked) in first_asked.items():
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
    if asked.distinguishing_input is not None:
        return asked.distinguishing_input.call
    return "; ".join(
        f"{move.kind}: {render_reason(move.reason)}" if move.reason else move.kind for move in asked.moves
    )
