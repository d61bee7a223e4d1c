"""From a run's ledger to the candidates it judged: what each had cost when it was there, and which led."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.evals.rows import Step
from suture.ledger import RunFolder
from suture.records import Candidate, Event, Verdict, from_plain

__all__ = ["code_of", "steps_of", "totals_of"]

Spent = tuple[int, int, int]
"""Tokens of replies, tokens of prompts, calls."""


@dataclass
class _Judged:
    """A candidate, where it came from and what was said of it."""

    proposed: Event | None
    checked: Event
    regressed: int = 0


@dataclass
class _Reading:
    """What was read of a ledger so far."""

    started_s: float
    events: Sequence[Event]
    folder: RunFolder
    steps: list[Step] = field(default_factory=list)
    merits: dict[str, tuple[bool, int, int, int]] = field(default_factory=dict)
    leader: str = ""

    def take(self, judged: _Judged) -> None:
        step, merit = self._step(judged), _merit(judged)
        self.merits[step.candidate] = merit
        leads = not self.leader or merit > self.merits[self.leader]
        if leads:
            self.leader = step.candidate
        self.steps.append(replace(step, leads=leads))

    def lead(self, candidate: str | None, event: Event) -> None:
        """What the run itself calls its best has the last word, such as after a tournament."""
        if candidate is None or candidate == self.leader or candidate not in self.merits:
            return
        self.leader = candidate
        known = next(step for step in self.steps if step.candidate == candidate)
        generated, prompted, calls = _spent(self.events, event)
        self.steps.append(
            replace(
                known,
                leads=True,
                generated=generated,
                prompted=prompted,
                calls=calls,
                seconds=round(event.time_s - self.started_s, 3),
            )
        )

    def _step(self, judged: _Judged) -> Step:
        checked, proposed = judged.checked, judged.proposed
        generated, prompted, calls = _spent(self.events, proposed or checked)
        passed, failed = checked.data["passed"], checked.data["failed"]
        return Step(
            candidate=checked.data["candidate"],
            origin=proposed.data["origin"] if proposed else "user",
            round=proposed.data.get("step", -1) if proposed else -1,
            generated=generated,
            prompted=prompted,
            calls=calls,
            seconds=round(checked.time_s - self.started_s, 3),
            passed=passed,
            failed=failed,
            claimed=_merit(judged)[0],
            error=_first_error(from_plain(Verdict, self.folder.get_json(checked.data["verdict"]))),
        )


def steps_of(folder: RunFolder, events: Sequence[Event]) -> tuple[Step, ...]:
    """The candidates of a run, in the order in which they were judged.

    The branches of a round are put in their order, as if each had begun when the one before had ended: a run
    with fewer tokens would have drawn the first of them only.

    Args:
        folder: The run's folder.
        events: Its ledger.

    Raises:
        StorageError: A verdict cannot be read.
    """
    reading = _Reading(started_s=events[0].time_s if events else 0.0, events=events, folder=folder)
    for batch, decision in _rounds(events):
        for judged in batch:
            reading.take(judged)
        if decision is not None:
            reading.lead(decision.data.get("best"), decision)
    return tuple(reading.steps)


def code_of(step: Step, folder: RunFolder, events: Sequence[Event]) -> dict[str, str]:
    """The files that a candidate wrote, path -> text; none for the code that was given.

    Raises:
        StorageError: They cannot be read.
    """
    for event in events:
        if event.kind == "candidate.proposed" and event.data["candidate"] == step.candidate:
            return dict(from_plain(Candidate, folder.get_json(event.data["blob"])).files)
    return {}


def _rounds(events: Sequence[Event]) -> Iterator[tuple[list[_Judged], Event | None]]:
    """The candidates judged before each decision, in the order of their branches, and the decision."""
    proposed: dict[str, Event] = {}
    batch: dict[str, _Judged] = {}
    seen: set[str] = set()
    for event in events:
        name = event.data.get("candidate", "")
        if event.kind == "candidate.proposed":
            proposed.setdefault(name, event)
        elif event.kind == "candidate.checked" and name not in seen:
            seen.add(name)
            batch[name] = _Judged(proposed=proposed.get(name), checked=event)
        elif event.kind == "candidate.regressed" and name in batch:
            batch[name].regressed = len(event.data["checks"])
        elif event.kind in ("decided", "run.finished"):
            yield sorted(batch.values(), key=_place), event
            batch = {}
    if batch:
        yield sorted(batch.values(), key=_place), None


def _place(judged: _Judged) -> tuple[int, int]:
    event = judged.proposed or judged.checked
    return event.data.get("branch", -1), event.seq


def _merit(judged: _Judged) -> tuple[bool, int, int, int]:
    """The trusted order: solved, then no regression, most checks passed, fewest failed; the earliest wins."""
    passed, failed = judged.checked.data["passed"], judged.checked.data["failed"]
    solved = passed > 0 and failed == 0 and judged.regressed == 0
    return solved, -judged.regressed, passed, -failed


def _spent(events: Sequence[Event], at: Event) -> Spent:
    """What replies had cost when something happened; of its own round, those of its branch and before it."""
    called = [event.data for event in events if event.kind == "model.called" and _before(event, at)]
    return (
        sum(data["completion_tokens"] for data in called),
        sum(data["prompt_tokens"] for data in called),
        len(called),
    )


def _before(call: Event, at: Event) -> bool:
    same_round = "branch" in at.data and call.data.get("step") == at.data["step"]
    if same_round and call.data.get("branch") != at.data["branch"]:
        return bool(call.data["branch"] < at.data["branch"])
    return call.seq < at.seq


def _first_error(verdict: Verdict) -> str:
    for outcome in verdict.outcomes:
        if outcome.passed or outcome.status == "skipped":
            continue
        if outcome.status == "timeout":
            return "timeout"
        fact = outcome.counterexample
        return _class_of(fact.exception) if fact is not None and fact.exception else "AssertionError"
    return ""


def _class_of(exception: str) -> str:
    return exception.partition(":")[0].strip().rpartition(".")[2]


def totals_of(events: Sequence[Event]) -> Mapping[str, Any]:
    """The fields of a `Row` that are sums over a whole run."""
    called = [event.data for event in events if event.kind == "model.called"]
    money = [data["money"] for data in called]
    return {
        "generated": sum(data["completion_tokens"] for data in called),
        "prompted": sum(data["prompt_tokens"] for data in called),
        "calls": len(called),
        "money": None if None in money else round(sum(money), 9),
        "seconds": round(events[-1].time_s - events[0].time_s, 3) if events else 0.0,
        "model_s": round(sum(data["seconds"] for data in called if not data["replayed"]), 3),
        "checks_s": round(sum(e.data["seconds"] for e in events if e.kind == "candidate.checked"), 3),
        "prompts": {data["role"]: data["prompt"] for data in called},
    }
