"""`suture show RUN --at N`: a run as it stood after one of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suture.core.ledger import (
    Event,
    RunFolder,
    decision_after,
    event_as_json,
    events_until,
    last_step,
    read_ledger,
    spend_of,
    those_of,
)
from suture.core.ledger.kinds import CandidateChecked, CandidateProposed, Decided
from suture.core.records import Candidate, Verdict
from suture.errors import UsageError
from suture.interfaces.narrative.event_text import fact_lines, tell
from suture.interfaces.narrative.lines import as_lines, plain_label
from suture.interfaces.narrative.spend_text import describe_spend


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
    return as_lines(_lines(run, step))


def _lines(run: RunFolder, step: int) -> Iterator[str]:
    events, best, following = _at(run, step)
    verdict = _verdict(run, events, best)
    yield f"run {run.id} after step {step} of {last_step(read_ledger(run.ledger_path).events)}"
    if best is None:
        yield "best: no candidate yet"
    else:
        total = len(verdict.passed) + len(verdict.failed) if verdict else 0
        passed = f"{len(verdict.passed)} of {total} checks pass" if verdict and total else "not checked"
        yield f"best: candidate {best[:8]} ({plain_label(_label(events, best))}): {passed}"
        for path, text in sorted(_files(run, events, best)):
            yield f"  {path}:"
            yield from (f"    {line}" for line in text.splitlines())
    if verdict:
        yield from (f"  {line}" for fact in verdict.counterexamples for line in fact_lines(fact))
    yield f"spent: {describe_spend(spend_of(events), {})}"
    if following:
        yield f"next: {tell(following)}"
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
    judged = [checked for _, checked in those_of(events, CandidateChecked)]
    best = max(judged, key=lambda checked: (checked.passed, -checked.failed), default=None)
    return events, best.candidate if best else None, None


def _checked(events: Sequence[Event], best: str | None) -> CandidateChecked | None:
    """How the best candidate was first judged."""
    judged = those_of(events, CandidateChecked)
    return next((checked for _, checked in judged if checked.candidate == best), None)


def _label(events: Sequence[Event], best: str | None) -> str:
    checked = _checked(events, best)
    return checked.label if checked else ""


def _verdict(run: RunFolder, events: Sequence[Event], best: str | None) -> Verdict | None:
    checked = _checked(events, best)
    return run.get_record(Verdict, checked.verdict) if checked else None


def _files(run: RunFolder, events: Sequence[Event], best: str | None) -> Iterator[tuple[str, str]]:
    for _, proposed in those_of(events, CandidateProposed):
        if proposed.candidate == best:
            yield from run.get_record(Candidate, proposed.blob).files.items()
            return
