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
    find_doubt,
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
    CommitMade,
    ModelCalled,
    MovesDecided,
    ReviewAnswered,
    ReviewAsked,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStarted,
    SandboxSubstituted,
    SearchFinished,
    TaskPrepared,
    TreeApplied,
    TreeUndone,
)
from suture.core.records import CheckOutcome, Verdict, render_reason
from suture.errors import StorageError
from suture.storage.database.search_words import index_text
from suture.storage.tuning import MAX_ERROR_CHARS, MAX_ERROR_KIND_CHARS, MAX_KEY_CHARS, MAX_STATEMENT_CHARS

EXCEPTION = re.compile(
    r"\s*(?:Uncaught )?(?:[\w<>]+\.)*([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b"
)
"""The name of an exception class at the start of a message, perhaps with its module."""
ErrorKind = Literal["wrong_answer", "timeout", "not_collected", "error", "unknown"]
"""Kinds of failures without an exception. `unknown` stands for a verdict that cannot be read."""
DeliveryState = Literal["", "applied", "committed", "undone"]
"""What has become of a run's change in the user's project; empty if it was never written there."""
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
    # A failure with a counterexample comes first, because it says more.
    outcome = min(failed, key=lambda outcome: outcome.counterexample is None)
    return _error_kind(outcome), _error_text(outcome)[:MAX_ERROR_CHARS]


def _error_kind(outcome: CheckOutcome) -> str:
    """Return an exception's class name, a `FailureCode` or an `ErrorKind`."""
    counterexample = outcome.counterexample
    if outcome.status in ("timeout", "missing") or counterexample is None or not counterexample.exception:
        return STATUS_KINDS.get(outcome.status, "wrong_answer")
    if match := EXCEPTION.match(counterexample.exception):
        return "wrong_answer" if match[1] == "AssertionError" else match[1][:MAX_ERROR_KIND_CHARS]
    # Without a code, the exception is a line of the program's or the test runner's own.
    return counterexample.code or counterexample.exception_type.strip()[:MAX_ERROR_KIND_CHARS] or "error"


def _error_text(outcome: CheckOutcome) -> str:
    counterexample = outcome.counterexample
    if counterexample is None:
        return f"{outcome.check_id}: {outcome.status}"
    location = f" ({counterexample.file} line {counterexample.line})" if counterexample.line else ""
    parts = (
        counterexample.call,
        f"expected {counterexample.expected}" if counterexample.expected else "",
        f"got {counterexample.actual}" if counterexample.actual else "",
        f"raised {counterexample.exception}{location}" if counterexample.exception else "",
    )
    return f"{outcome.check_id}: " + "; ".join(part for part in parts if part)


Row = dict[str, Any]
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """The rows of one run: one of `tasks`, and any number of the other tables."""

    namespace: str
    run_id: str
    task: Row
    iterations: tuple[Row, ...] = ()
    metrics: tuple[Row, ...] = ()
    approvals: tuple[Row, ...] = ()

    @property
    def by_table(self) -> Mapping[str, tuple[Row, ...]]:
        """Return table name -> rows."""
        return {
            "tasks": (self.task,),
            "iterations": self.iterations,
            "metrics": self.metrics,
            "approvals": self.approvals,
        }


@dataclass(kw_only=True)
class _IterationDraft:
    """An iteration while its events are read: everything between two decisions.

    Attributes:
        passed: Checks that pass with the best candidate; `None` until a candidate is checked.
    """

    number: int
    round: int
    move: str
    started_s: float
    ended_s: float
    candidates: int = 0
    passed: int | None = None
    failed: int = 0
    tokens: int = 0
    model_calls: int = 0
    verdict: str = ""


def project_run(run: RunFolder) -> RunRows:
    """Return the rows of a run, from its ledger and its blobs alone.

    An unreadable ledger gives one row with the outcome `damaged`, so that it does not hide other runs.
    """
    try:
        # Taken before the ledger is read, so that lines that are added meanwhile are read the next time.
        ledger = run.ledger_path.stat()
        stamp = {"ledger_bytes": ledger.st_size, "ledger_mtime_ns": ledger.st_mtime_ns}
    except OSError:
        stamp = {}
    try:
        contents = read_ledger(run.ledger_path)
    except StorageError as fault:
        task = {"outcome": "damaged", "statement": fault.message, **stamp}
        return RunRows(namespace=DEFAULT_NAMESPACE, run_id=run.id, task=task)
    events = contents.events
    started = first_payload(events, RunStarted)
    iterations = tuple(_iteration_row(step, run) for step in _split_into_steps(events))
    return RunRows(
        namespace=started.namespace if started else DEFAULT_NAMESPACE,
        run_id=run.id,
        task={**_task_row(run, contents, iterations), **stamp},
        iterations=iterations,
        metrics=tuple(_metric_rows(events, iterations)),
        approvals=tuple(_approval_rows(events)),
    )


def _task_row(run: RunFolder, contents: LedgerContents, iterations: Sequence[Row]) -> Row:
    events = contents.events
    started, prepared = first_payload(events, RunStarted), first_payload(events, TaskPrepared)
    end = last_payload(events, RunFinished) or last_payload(events, RunPaused)
    failure = last_payload(events, RunFailed)
    substitution = last_payload(events, SandboxSubstituted)
    last_check = last_payload(events, CandidateChecked)
    spend = total_spend(events)
    fork = started.fork if started else None
    outcome = get_run_status(run, contents)
    statement = (started.statement if started else "")[:MAX_STATEMENT_CHARS]
    reason = ""
    if end:
        reason = render_reason(end.reason)
    elif failure:
        reason = f"{failure.error_type}: {failure.message}"
    project = started.project if started else ""
    errors = " ".join(row["error"] for row in iterations)
    failing, failing_test = count_initial_failures(run, events)
    return {
        "kind": started.kind if started else "",
        "statement": statement,
        "language": (prepared.language or "python") if prepared else "",
        "recipe": started.recipe if started else "",
        "model": started.model if started else "",
        "sandbox": substitution.used if substitution else started.sandbox if started else "",
        "project": project,
        "outcome": outcome,
        "delivery": _last_delivery(events),
        "reason": reason,
        "evidence": last_check.evidence if last_check else "",
        "confidence": end.confidence if end else 0.0,
        "failing": failing,
        "failing_test": failing_test,
        "attempts": spend.attempts,
        "tokens": spend.tokens,
        "prompt_tokens": spend.prompt_tokens,
        "completion_tokens": spend.completion_tokens,
        "model_calls": spend.model_calls,
        "money": spend.money,
        "seconds": round(spend.seconds, 3),
        "started_s": events[0].time_s if events else None,
        "ended_s": events[-1].time_s if events and outcome not in ("running", "waiting") else None,
        "fork_of": fork.run if fork else "",
        "fork_at": fork.step if fork else None,
        "replay_of": started.replayed_run if started else "",
        "events": len(events),
        "search_text": index_text(statement, project, outcome, reason, errors),
    }


def _last_delivery(events: Sequence[Event]) -> DeliveryState:
    """Return what has become of a run's change in the user's project."""
    delivery: DeliveryState = ""
    for event in events:
        match event.payload:
            case TreeApplied():
                delivery = "applied"
            case CommitMade():
                delivery = "committed"
            case TreeUndone():
                delivery = "undone"
    return delivery


def count_initial_failures(run: RunFolder, events: Sequence[Event]) -> tuple[int, str]:
    """Return how many tests failed in the first run of all, and the id of the first one; 0 and "" if none did."""
    checked = first_payload(events, CandidateChecked)
    if checked is None or not checked.failed:
        return 0, ""
    try:
        outcomes = run.load_record(Verdict, checked.verdict).outcomes
    except StorageError:  # the blob is damaged or missing
        outcomes = ()
    failing = (outcome.check_id for outcome in outcomes if not outcome.passed and outcome.status != "skipped")
    return checked.failed, next(failing, "")


def _split_into_steps(events: Sequence[Event]) -> Iterator[_IterationDraft]:
    """Yield the iterations; number 0 is the run of the checks before the first decision."""
    step: _IterationDraft | None = None
    decisions = 0
    for event in events:
        time_s, payload = event.time_s, event.payload
        if isinstance(payload, MovesDecided):
            if step is not None:
                yield step
            decisions += 1
            step = None
            if payload.moves[0].kind != "stop":
                moves = ", ".join(dict.fromkeys(move.kind for move in payload.moves))
                step = _IterationDraft(
                    number=decisions, round=payload.round, move=moves, started_s=time_s, ended_s=time_s
                )
            continue
        if step is None:
            if decisions or not isinstance(payload, CandidateChecked):
                continue
            started_s = time_s - payload.seconds
            step = _IterationDraft(number=0, round=0, move="start", started_s=started_s, ended_s=time_s)
        _add_event(step, event)
    if step is not None:
        yield step


def _add_event(step: _IterationDraft, event: Event) -> None:
    step.ended_s = max(step.ended_s, event.time_s)
    match event.payload:
        case CandidateProposed():
            step.candidates += 1
        case BudgetSettled() as settled:
            step.tokens += settled.prompt_tokens + settled.completion_tokens
            step.model_calls += settled.model_calls
        case CandidateChecked() as checked if step.passed is None or checked.passed > step.passed:
            step.passed, step.failed, step.verdict = checked.passed, checked.failed, checked.verdict


def _iteration_row(step: _IterationDraft, run: RunFolder) -> Row:
    kind, error = "", ""
    if step.failed and step.verdict:
        try:
            kind, error = first_error(run.load_record(Verdict, step.verdict))
        except StorageError:  # the blob of the failed verdict is damaged or missing
            kind = "unknown"
    return {
        "number": step.number,
        "round": step.round,
        "move": step.move,
        "candidates": step.candidates,
        "passed": step.passed or 0,
        "failed": step.failed,
        "tokens": step.tokens,
        "model_calls": step.model_calls,
        "started_s": step.started_s,
        "seconds": round(step.ended_s - step.started_s, 3),
        "error_kind": kind,
        "error": error,
    }


def _metric_rows(events: Sequence[Event], iterations: Iterable[Row]) -> Iterator[Row]:
    for group_by in ("role", "move"):
        for group, spend in spend_by_group(events, group_by).items():
            yield _metric_row(f"tokens_by_{group_by}", group, spend.tokens)
            yield _metric_row(f"calls_by_{group_by}", group, spend.model_calls)
    for phase, seconds in _seconds_by_phase(events).items():
        if seconds:
            yield _metric_row("seconds", phase, seconds)
    # Number 0 is the code as it was given, which is no candidate.
    kinds = Counter(row["error_kind"] for row in iterations if row["error_kind"] and row["number"])
    yield from (_metric_row("errors", kind, count) for kind, count in kinds.items())
    if doubt := find_doubt(events):
        yield _metric_row("doubts", doubt, 1)
    origins = Counter(payload.origin for _, payload in select_events(events, CandidateProposed))
    yield from (_metric_row("candidates", origin, count) for origin, count in origins.items())


def _metric_row(name: str, phase: str, value: float) -> Row:
    return {"name": name, "phase": phase[:MAX_KEY_CHARS], "value": round(float(value), 6)}


def _seconds_by_phase(events: Sequence[Event]) -> Mapping[str, float]:
    """Return wall-clock seconds by phase. Parallel calls and checks count individually."""
    if not events:
        return {}
    decisions = list(select_events(events, MovesDecided))
    preparation_end = decisions[0][0] if decisions else events[-1]
    calls = (call for _, call in select_events(events, ModelCalled))
    seconds = {
        "prepare": preparation_end.time_s - events[0].time_s,
        "search": sum(search.seconds for _, search in select_events(events, SearchFinished)),
        "model": sum(call.seconds for call in calls if not call.replayed),
        "checks": sum(checked.seconds for _, checked in select_events(events, CandidateChecked)),
        "certification": 0.0,
    }
    ends = [event for event, _ in select_events(events, RunFinished)]
    if decisions and ends:
        last_decision_event, last_decision = decisions[-1]
        if last_decision.moves[0].kind == "stop":
            seconds["certification"] = ends[-1].time_s - last_decision_event.time_s
    return {phase: max(0.0, value) for phase, value in seconds.items()}


def _approval_rows(events: Sequence[Event]) -> Iterator[Row]:
    answers = {payload.key: (event, payload) for event, payload in select_events(events, ReviewAnswered)}
    questions: dict[str, tuple[Event, ReviewAsked]] = {}
    for event, question in select_events(events, ReviewAsked):
        questions.setdefault(question.key, (event, question))  # each process that resumes the run asks again
    for key, (event, question) in questions.items():
        answer_event, answer = answers.get(key, (None, None))
        if question.distinguishing_input is not None:
            subject = question.distinguishing_input.call
        else:
            subject = "; ".join(
                f"{move.kind}: {render_reason(move.reason)}" if move.reason else move.kind
                for move in question.moves
            )
        yield {
            "event_seq": event.seq,
            "question": key[:MAX_KEY_CHARS],
            "stage": question.stage,
            "subject": subject,
            "choice": answer.choice if answer else "",
            "hint": answer.hint if answer else "",
            "asked_s": event.time_s,
            "answered_s": answer_event.time_s if answer_event else None,
        }
