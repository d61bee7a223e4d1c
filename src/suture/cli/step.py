"""`suture show RUN --at N`: a run as it stood after one of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suture.cli.telling import describe_spend, fact_lines, tell
from suture.errors import UsageError
from suture.ledger import RunFolder, decision_after, events_until, last_step, read_ledger, spend_of
from suture.records import Candidate, Event, Verdict, from_plain

__all__ = ["step_as_json", "step_as_text"]


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
        "decided_next": dict(following.data) if following else None,
    }


def step_as_text(run: RunFolder, step: int) -> str:
    """A step for people: the best candidate then, the facts about it, the spend, and what was decided next.

    Raises:
        UsageError: There is no such step.
        StorageError: The run folder is damaged.
    """
    return "\n".join(_lines(run, step))


def _lines(run: RunFolder, step: int) -> Iterator[str]:
    events, best, following = _at(run, step)
    verdict = _verdict(run, events, best)
    yield f"run {run.id} after step {step} of {last_step(read_ledger(run.ledger_path).events)}"
    if best is None:
        yield "best: no candidate yet"
    else:
        total = len(verdict.passed) + len(verdict.failed) if verdict else 0
        passed = f"{len(verdict.passed)} of {total} checks pass" if verdict and total else "not checked"
        yield f"best: candidate {best[:8]} ({_label(events, best)}): {passed}"
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
        return events, following.data["best"], following
    judged = [event.data for event in events if event.kind == "candidate.checked"]
    best = max(judged, key=lambda data: (data["passed"], -data["failed"]), default=None)
    return events, best["candidate"] if best else None, None


def _label(events: Sequence[Event], best: str | None) -> str:
    found = (e.data for e in events if e.kind == "candidate.checked" and e.data["candidate"] == best)
    return next((str(data["label"]) for data in found), "")


def _verdict(run: RunFolder, events: Sequence[Event], best: str | None) -> Verdict | None:
    found = (e.data for e in events if e.kind == "candidate.checked" and e.data["candidate"] == best)
    return next((from_plain(Verdict, run.get_json(data["verdict"])) for data in found), None)


def _files(run: RunFolder, events: Sequence[Event], best: str | None) -> Iterator[tuple[str, str]]:
    for event in events:
        if event.kind == "candidate.proposed" and event.data["candidate"] == best:
            yield from from_plain(Candidate, run.get_json(event.data["blob"])).files.items()
            return
