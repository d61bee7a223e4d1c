"""The full story of a run from its ledger and folder, also of one that still runs or was killed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from suture.core.ledger import (
    Event,
    GroupSpendTracker,
    LedgerContents,
    LedgerReading,
    RunFolder,
    SpendTracker,
    decision_after,
    encode_event,
    events_until,
    find_final_event,
    first_payload,
    get_run_state,
    kinds,
    last_step,
    load_task,
    read_ledger,
    select_events,
    spend_by_group,
    total_spend,
)
from suture.core.records import Candidate, Evidence, Spend, TaskKind, Verdict, VerdictNote, render_reason
from suture.errors import StorageError, UsageError
from suture.interfaces.narrative.event_text import UNCHANGED_CODE, counterexample_lines, render_event
from suture.interfaces.narrative.judgement_text import missed_mistake_lines
from suture.interfaces.narrative.plain_text import format_share, join_lines, name_candidate, render_label
from suture.interfaces.narrative.result_text import is_heal_run
from suture.interfaces.narrative.rival_text import comparison_lines
from suture.interfaces.narrative.search_text import near_miss_lines, partial_repair_lines
from suture.interfaces.narrative.spend_text import ReplyTracker, describe_share, describe_spend
from suture.interfaces.narrative.wording import render_judge, render_moves, render_verdict_notes
from suture.project.workspace import unified_diff

MAX_COUNTEREXAMPLES = 5
"""Counterexamples of a verdict that are shown. Chosen by judgement; not measured."""
MAX_OUTPUT_LINES = 15
"""Lines of the test output that are shown, from its end, if a verdict has no counterexample. Chosen by judgement; not
measured."""
SPEND_GROUPS: tuple[Literal["role", "move"], ...] = ("role", "move")
"""How the spend is broken down."""


def _count_spend(run: RunFolder, ledger: LedgerContents) -> Spend:
    """Return what a run has spent. What it has reserved counts only if it was killed, because no more is known."""
    is_running = get_run_state(run, ledger) == "running"
    return total_spend(ledger.events, with_reservations=not is_running)


def run_as_json(run: RunFolder) -> dict[str, Any]:
    """Return a run with its whole ledger as one JSON value."""
    ledger = read_ledger(run.ledger_path)
    spend = _count_spend(run, ledger)
    end = find_final_event(ledger.events)
    ended = end.payload if end is not None and isinstance(end.payload, kinds.RunFinished) else None
    return {
        "run": run.id,
        "folder": str(run.path),
        "state": get_run_state(run, ledger),
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
            **{f"by_{group}": _spend_by(ledger, group) for group in SPEND_GROUPS},
        },
        "replies_without_code": ReplyTracker(ledger.events).without_code,
        "torn_lines": list(ledger.torn_lines),
        "events": [encode_event(event) for event in ledger.events],
    }


def run_as_text(run: RunFolder) -> str:
    """Return the story of a run for people. It can hold control characters: escape it before printing."""
    summary = _StorySummary(LedgerReading(run.ledger_path))
    events = list(_event_lines(run, summary.iter_events()))
    state = get_run_state(run, summary.ledger)
    return join_lines((*_head_lines(run, state, summary), *events, *_end_lines(run, state, summary)))


class _StorySummary:
    """What the beginning and the end of a story need of the events, which are read one after the other.

    Attributes:
        ledger: The ledger with only those events that tell the task and the run's state.
        spend: What the run has spent.
        groups: What its roles and its kinds of moves have spent.
        replies: How many replies of models brought no new code.
    """

    def __init__(self, reading: LedgerReading) -> None:
        self._reading = reading
        self.ledger = LedgerContents(events=())
        self.spend = SpendTracker()
        self.replies = ReplyTracker()
        self.groups = [GroupSpendTracker(group) for group in SPEND_GROUPS]

    def iter_events(self) -> Iterator[Event]:
        """Yield all events; afterwards the summary is complete."""
        about_run: list[Event] = []
        event: Event | None = None
        for event in self._reading.iter_events():
            self.spend.add([event])
            self.replies.add(event)
            for group in self.groups:
                group.add([event])
            if event.kind.startswith("run."):
                about_run.append(event)
            yield event
        if event is not None and event not in about_run[-1:]:
            about_run.append(event)
        self.ledger = LedgerContents(events=tuple(about_run), torn_lines=self._reading.torn_lines)


def _head_lines(run: RunFolder, state: str, summary: _StorySummary) -> Iterator[str]:
    ledger = summary.ledger
    yield f"run {run.id} ({state})"
    yield f"folder: {run.path}"
    if ledger.torn_lines:
        lines = ", ".join(map(str, ledger.torn_lines))
        yield f"note: ledger line {lines} is incomplete (a crash, or still being written) and is skipped"
    if statement := _task_statement(ledger):
        yield "task:"
        yield from (f"  {line}" for line in statement.splitlines())


def _event_lines(run: RunFolder, events: Iterable[Event]) -> Iterator[str]:
    start_s: float | None = None
    original_files = _task_files(run)
    kind: TaskKind = "heal" if is_heal_run(run) else "write"
    shown_candidates: set[str] = set()
    shown_notes: set[VerdictNote | Evidence] = set()
    for event in events:
        start_s = event.time_s if start_s is None else start_s
        line = render_event(event, kind)
        if line is None:
            continue
        yield ""
        yield f"{_elapsed(event.time_s - start_s)}  {line}"
        proposed = event.payload.candidate if isinstance(event.payload, kinds.CandidateProposed) else ""
        if proposed in shown_candidates:
            yield "         the same code as before"
            continue
        yield from (
            f"         {detail}" for detail in _event_details(run, event, original_files, shown_notes)
        )
        if proposed:
            shown_candidates.add(proposed)


def _end_lines(run: RunFolder, state: str, summary: _StorySummary) -> Iterator[str]:
    yield ""
    if state == "running":
        yield "the run is still in progress"
    elif state == "waiting":
        yield f"the run waits for your answer: suture review {run.id}"
    elif state == "stopped":
        yield "the run has no result: its process was killed, or the machine went down"
    # What a running run has reserved is not spent yet.
    spent = summary.spend.spend(with_reservations=state != "running")
    yield "; ".join(filter(None, (f"spent: {describe_spend(spent, {})}", summary.replies.render())))
    for group in summary.groups:
        for name, spend in group.spend().items():
            is_role = group.group_by == "role"
            user = f"role {name.replace('_', ' ')}" if is_role else f"for {render_moves(name)}"
            yield f"  {user}: {describe_share(spend)}"


def _spend_by(ledger: LedgerContents, group: Literal["role", "move"]) -> dict[str, Any]:
    """Return what each role, or each kind of move, has used."""
    omitted = ("seconds", "prompt_tokens", "completion_tokens")
    return {
        name: {key: value for key, value in vars(spend).items() if key not in omitted}
        for name, spend in spend_by_group(ledger.events, group).items()
    }


def _task_statement(ledger: LedgerContents) -> str:
    started = first_payload(ledger.events, kinds.RunStarted)
    return started.statement.strip() if started else ""


def _elapsed(seconds: float) -> str:
    return time.strftime("%M:%S", time.gmtime(seconds)) if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _event_details(
    run: RunFolder,
    event: Event,
    original_files: Mapping[str, bytes],
    shown_notes: set[VerdictNote | Evidence],
) -> list[str]:
    """Return the lines below an event's line: a candidate's code, a verdict's counterexamples and notes, or rivals.

    Below a certificate are the deliberate mistakes that no test notices.

    Each note appears once per run.
    """
    try:
        match event.payload:
            case kinds.CandidateProposed(blob=blob):
                return list(_candidate_code_lines(run.load_record(Candidate, blob), original_files))
            case kinds.CandidateChecked(verdict=blob):
                return list(_verdict_lines(run.load_record(Verdict, blob), shown_notes))
            case kinds.RepairUndetermined() as undetermined:
                return list(comparison_lines(undetermined))
            case kinds.CertificateWritten(mutants=tried, killed=noticed) if noticed < tried:
                return list(_missed_mistake_lines(run))
            case kinds.SearchFinished(near_misses=near_misses, partial=clues):
                edits = [*map(near_miss_lines, near_misses)]
                edits += [partial_repair_lines(clue) for clue in clues if clue.confirmed]
                return [line for lines in edits for line in lines]
    except (StorageError, UsageError, ValueError, KeyError, TypeError) as fault:
        return [f"(unreadable: {fault})"]
    return []


def _missed_mistake_lines(run: RunFolder) -> Iterator[str]:
    """Yield the deliberate mistakes that no test notices, as the run's certificate has them."""
    # Slow, and seldom needed.
    from suture.judge.certificates import load_certificate
    from suture.judge.certificates.certificate import CERTIFICATE_FILE

    missed = load_certificate(run.path / CERTIFICATE_FILE).mutation.missed
    yield from missed_mistake_lines(missed)


def _candidate_code_lines(candidate: Candidate, original_files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield new files in full and changed files as a diff."""
    for path, text in sorted(candidate.files.items()):
        if path in original_files:
            # Line ends are made alike, so that a difference in them alone is not shown.
            versions = (original_files[path].decode("utf-8", "replace"), text)
            before, after = (
                {path: "".join(f"{line}\n" for line in version.splitlines()).encode("utf-8", "replace")}
                for version in versions
            )
            diff = unified_diff(before, after)
            yield from diff.split("\n")[1:-1]  # without the header line of git
        else:
            yield f"{path}:"
            yield from (f"  {line}" for line in text.splitlines())


def _verdict_lines(verdict: Verdict, shown_notes: set[VerdictNote | Evidence]) -> Iterator[str]:
    counterexamples = verdict.counterexamples
    for counterexample in counterexamples[:MAX_COUNTEREXAMPLES]:
        yield from counterexample_lines(counterexample)
    if len(counterexamples) > MAX_COUNTEREXAMPLES:
        yield f"and {len(counterexamples) - MAX_COUNTEREXAMPLES} more"
    if verdict.failed and not counterexamples:
        yield from (f"| {line}" for line in verdict.output.strip().splitlines()[-MAX_OUTPUT_LINES:])
    notes = render_verdict_notes(note for note in verdict.notes if note not in shown_notes)
    yield from (f"note: {note}" for note in notes)
    shown_notes.update(verdict.notes)
    if verdict.all_passed and verdict.evidence not in shown_notes:
        yield render_judge(verdict.evidence, has_diff=verdict.candidate != UNCHANGED_CODE)
        shown_notes.add(verdict.evidence)


def _task_files(run: RunFolder) -> Mapping[str, bytes]:
    """Return the task's own files; empty if the run folder no longer has them."""
    try:
        task = load_task(run)
    except StorageError:
        return {}
    return task.files if task is not None else {}


@dataclass(frozen=True, kw_only=True)
class _RunAfterStep:
    """A run as it was after one of its steps.

    Attributes:
        noun: What a check of this kind of run is called.
        label: The label of the best candidate.
        files: The files of the best candidate.
        verdict: How the best candidate was first judged.
        next_decision: The decision that followed the step.
    """

    step: int
    last_step: int
    best: str | None
    noun: str
    label: str
    files: Mapping[str, str]
    verdict: Verdict | None
    spend: Spend
    next_decision: Event | None


def step_as_json(run: RunFolder, step: int) -> dict[str, Any]:
    """Return the run as it was after a step as JSON values; raises as `step_as_text` does."""
    state = _state_after_step(run, step)
    verdict = state.verdict
    return {
        "run": run.id,
        "step": step,
        "last_step": state.last_step,
        "best": state.best,
        "label": render_label(state.label),
        "files": dict(state.files),
        "passed": len(verdict.passed) if verdict else 0,
        "failed": len(verdict.failed) if verdict else 0,
        "facts": [vars(fact) for fact in verdict.counterexamples] if verdict else [],
        "spend": {name: getattr(state.spend, name) for name in ("attempts", "tokens", "model_calls", "money")}
        | {"seconds": round(state.spend.seconds, 3)},
        "decided_next": encode_event(state.next_decision)["data"] if state.next_decision else None,
        "next_text": render_event(state.next_decision) if state.next_decision else None,
    }


def step_as_text(run: RunFolder, step: int) -> str:
    """Return the run as it was after a step, for people.

    The text has the best candidate at that step, its counterexamples, the spend and the next decision.
    Raises `UsageError` if there is no such step.
    """
    return join_lines(_step_lines(run.id, _state_after_step(run, step)))


def _step_lines(run: str, state: _RunAfterStep) -> Iterator[str]:
    verdict = state.verdict
    yield f"run {run} after step {state.step} of {state.last_step}"
    if state.best is None:
        yield "best: no candidate yet"
    else:
        total = len(verdict.passed) + len(verdict.failed) if verdict else 0
        counts = format_share(len(verdict.passed), total, "pass", state.noun) if verdict and total else ""
        yield f"best: {name_candidate(state.best, state.label)}: {counts or 'not checked'}"
        for path, text in sorted(state.files.items()):
            yield f"  {path}:"
            yield from (f"    {line}" for line in text.splitlines())
    if verdict:
        for counterexample in verdict.counterexamples:
            yield from (f"  {line}" for line in counterexample_lines(counterexample))
    yield f"spent: {describe_spend(state.spend, {})}"
    if state.next_decision:
        yield str(render_event(state.next_decision))
    yield f"continue from here: suture fork {run} --at {state.step} --set KEY=VALUE"


def _state_after_step(run: RunFolder, step: int) -> _RunAfterStep:
    all_events = read_ledger(run.ledger_path).events
    last = last_step(all_events)
    if not 0 <= step <= last:
        raise UsageError(f"run {run.id} has no step {step}", remedy=f"its steps are 0 to {last}")
    events = events_until(all_events, step)
    checks = [checked for _, checked in select_events(events, kinds.CandidateChecked)]
    decision = decision_after(all_events, step)
    if decision is None:  # only a decision says which candidate is the best, so the counts must do
        leader = max(checks, key=lambda checked: (checked.passed, -checked.failed), default=None)
        best = leader.candidate if leader else None
    else:
        best = decision.payload.best if isinstance(decision.payload, kinds.MovesDecided) else None
    first_check = next((checked for checked in checks if checked.candidate == best), None)
    blobs = [
        proposed.blob
        for _, proposed in select_events(events, kinds.CandidateProposed)
        if proposed.candidate == best
    ]
    return _RunAfterStep(
        step=step,
        last_step=last,
        best=best,
        noun="test" if is_heal_run(run) else "check",
        label=first_check.label if first_check else "",
        files=run.load_record(Candidate, blobs[0]).files if blobs else {},
        verdict=run.load_record(Verdict, first_check.verdict) if first_check else None,
        spend=total_spend(events),
        next_decision=decision,
    )
