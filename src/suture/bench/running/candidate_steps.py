"""From a run's ledger to the candidates it judged: what each had cost when it was there, and which led.

The tests that it wrote for itself are tried on the reference, after the run has ended, and behind a wall that
the run did not use: how far did they deserve their trust?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.bench.grading.hidden_checks import Grade, grade_code
from suture.bench.problem import Problem
from suture.bench.rows import CandidateStep, GeneratedTestRecord
from suture.core.ledger import Event, RunFolder, first_payload, select_events
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CandidateRegressed,
    ModelCalled,
    MovesDecided,
    RunFinished,
    RunStarted,
    TestsAssessed,
)
from suture.core.records import Candidate, Verdict
from suture.core.settings import SandboxSettings
from suture.sandbox import Sandbox

RunSpending = tuple[int, int, int]
"""Tokens of replies, tokens of prompts, calls."""


@dataclass
class _Judged:
    """A candidate, where it came from and what was said of it."""

    proposed: CandidateProposed | None
    checked: CandidateChecked
    came: Event
    """The event of the proposal; of the check where there was none."""
    ended: Event
    """The event of the check."""
    regressed: int = 0


@dataclass
class _Reading:
    """What was read of a ledger so far."""

    started_s: float
    events: Sequence[Event]
    folder: RunFolder
    steps: list[CandidateStep] = field(default_factory=list)
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

    def _step(self, judged: _Judged) -> CandidateStep:
        checked, proposed = judged.checked, judged.proposed
        generated, prompted, calls = _spent(self.events, judged.came)
        step = judged.came.step if proposed else None
        return CandidateStep(
            candidate=checked.candidate,
            origin=proposed.origin if proposed else "user",
            round=-1 if step is None else step,
            generated=generated,
            prompted=prompted,
            calls=calls,
            seconds=round(judged.ended.time_s - self.started_s, 3),
            passed=checked.passed,
            failed=checked.failed,
            claimed=_merit(judged)[0],
            error=_first_error(self.folder.load_record(Verdict, checked.verdict)),
        )


def read_steps(folder: RunFolder, events: Sequence[Event]) -> tuple[CandidateStep, ...]:
    """The candidates of a run, in the order in which they were judged.

    The branches of a round are put in their order, as if each had begun when the one before had ended: a run
    with fewer tokens would have drawn the first of them only.

    Raises:
        StorageError: A verdict cannot be read.
    """
    reading = _Reading(started_s=events[0].time_s if events else 0.0, events=events, folder=folder)
    for batch, decision in _rounds(events):
        for judged in batch:
            reading.take(judged)
        if decision is not None:
            reading.lead(*decision)
    return tuple(reading.steps)


def load_candidate_files(step: CandidateStep, folder: RunFolder, events: Sequence[Event]) -> dict[str, str]:
    """The files that a candidate wrote, path -> text; none for the code that was given.

    Raises:
        StorageError: They cannot be read.
    """
    for _, proposed in select_events(events, CandidateProposed):
        if proposed.candidate == step.candidate:
            return dict(folder.load_record(Candidate, proposed.blob).files)
    return {}


def _rounds(events: Sequence[Event]) -> Iterator[tuple[list[_Judged], tuple[str | None, Event] | None]]:
    """The candidates judged before each decision, in the order of their branches, and what it calls best."""
    proposed: dict[str, tuple[Event, CandidateProposed]] = {}
    batch: dict[str, _Judged] = {}
    seen: set[str] = set()
    for event in events:
        match event.payload:
            case CandidateProposed(candidate=name) as one:
                proposed.setdefault(name, (event, one))
            case CandidateChecked(candidate=name) as checked if name not in seen:
                seen.add(name)
                came, origin = proposed.get(name, (event, None))
                batch[name] = _Judged(proposed=origin, checked=checked, came=came, ended=event)
            case CandidateRegressed(candidate=name, checks=checks) if name in batch:
                batch[name].regressed = len(checks)
            case MovesDecided(best=best) | RunFinished(best=best):
                yield sorted(batch.values(), key=_place), (best, event)
                batch = {}
    if batch:
        yield sorted(batch.values(), key=_place), None


def _place(judged: _Judged) -> tuple[int, int]:
    branch = judged.came.branch
    return -1 if branch is None else branch, judged.came.seq


def _merit(judged: _Judged) -> tuple[bool, int, int, int]:
    """The trusted order: solved, then no regression, most checks passed, fewest failed; the earliest wins."""
    passed, failed = judged.checked.passed, judged.checked.failed
    solved = passed > 0 and failed == 0 and judged.regressed == 0
    return solved, -judged.regressed, passed, -failed


def _spent(events: Sequence[Event], at: Event) -> RunSpending:
    """What replies had cost when something happened; of its own round, those of its branch and before it."""
    called = [call for event, call in select_events(events, ModelCalled) if _before(event, at)]
    return (
        sum(call.completion_tokens for call in called),
        sum(call.prompt_tokens for call in called),
        len(called),
    )


def _before(call: Event, at: Event) -> bool:
    branches = (call.branch, at.branch)
    if call.step != at.step or None in branches or call.branch == at.branch:
        return call.seq < at.seq
    return (call.branch or 0) < (at.branch or 0)


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


def sum_run_totals(events: Sequence[Event]) -> Mapping[str, Any]:
    """The fields of a `BenchmarkRow` that are sums over a whole run."""
    called = [call for _, call in select_events(events, ModelCalled)]
    priced = [call.money for call in called if call.money is not None]
    return {
        "generated": sum(call.completion_tokens for call in called),
        "prompted": sum(call.prompt_tokens for call in called),
        "calls": len(called),
        "money": round(sum(priced), 9) if len(priced) == len(called) else None,
        "seconds": round(events[-1].time_s - events[0].time_s, 3) if events else 0.0,
        "model_s": round(sum(call.seconds for call in called if not call.replayed), 3),
        "checks_s": round(sum(checked.seconds for _, checked in select_events(events, CandidateChecked)), 3),
        "prompts": {call.role: call.prompt for call in called},
    }


async def assess_generated_tests(
    problem: Problem, folder: RunFolder, events: Sequence[Event], judge: Sandbox, settings: SandboxSettings
) -> tuple[GeneratedTestRecord, ...]:
    """Every generated test that a run gave a trust, in the order in which it first did.

    Raises:
        StorageError: The run's settings cannot be read.
    """
    trusts: dict[str, list[float]] = {}
    for _, assessed in select_events(events, TestsAssessed):
        for assessment in assessed.tests:
            trusts.setdefault(assessment.test, []).append(assessment.trust)
    started = first_payload(events, RunStarted)
    if not trusts or started is None:
        return ()
    threshold: float = folder.load_json(started.settings)["loop"]["trust_threshold"]
    return tuple(
        [
            GeneratedTestRecord(
                trust=earned[-1],
                decided=max(earned) >= threshold,
                right=_right(
                    await grade_code(replace(problem, hidden=source), problem.solution, judge, settings)
                ),
            )
            for source, earned in trusts.items()
        ]
    )


def _right(grade: Grade) -> bool | None:
    return {"right": True, "wrong": False}.get(grade.standing)
