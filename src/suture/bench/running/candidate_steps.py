"""Read a run's candidates from its ledger: what the run had spent at each one, and which one was the best.

The tests that the run wrote for itself are run on the reference afterwards, in a sandbox that the run did not
use, to measure whether they deserved their trust.
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
"""Reply tokens, prompt tokens, calls."""


@dataclass
class _Judged:
    """A judged candidate with its events."""

    proposed: CandidateProposed | None
    checked: CandidateChecked
    proposed_at: Event
    """The event of the proposal; the event of the check if there was none."""
    checked_at: Event
    """The event of the check."""
    regressed: int = 0


@dataclass
class _Reading:
    """What has been read of a ledger so far."""

    started_s: float
    events: Sequence[Event]
    folder: RunFolder
    steps: list[CandidateStep] = field(default_factory=list)
    merits: dict[str, tuple[bool, int, int, int]] = field(default_factory=dict)
    leader: str = ""

    def take(self, judged: _Judged) -> None:
        step, merit = self._step(judged), _merit(judged)
        self.merits[step.candidate] = merit
        is_best_so_far = not self.leader or merit > self.merits[self.leader]
        if is_best_so_far:
            self.leader = step.candidate
        self.steps.append(replace(step, is_best_so_far=is_best_so_far))

    def lead(self, candidate: str | None, event: Event) -> None:
        """Make the candidate that the run itself calls its best the leader, such as after a tournament."""
        if candidate is None or candidate == self.leader or candidate not in self.merits:
            return
        self.leader = candidate
        known = next(step for step in self.steps if step.candidate == candidate)
        completion_tokens, prompt_tokens, calls = _spent(self.events, event)
        self.steps.append(
            replace(
                known,
                is_best_so_far=True,
                completion_tokens=completion_tokens,
                prompt_tokens=prompt_tokens,
                calls=calls,
                seconds=round(event.time_s - self.started_s, 3),
            )
        )

    def _step(self, judged: _Judged) -> CandidateStep:
        checked, proposed = judged.checked, judged.proposed
        completion_tokens, prompt_tokens, calls = _spent(self.events, judged.proposed_at)
        step = judged.proposed_at.step if proposed else None
        return CandidateStep(
            candidate=checked.candidate,
            origin=proposed.origin if proposed else "user",
            round=-1 if step is None else step,
            completion_tokens=completion_tokens,
            prompt_tokens=prompt_tokens,
            calls=calls,
            seconds=round(judged.checked_at.time_s - self.started_s, 3),
            passed=checked.passed,
            failed=checked.failed,
            claimed=_merit(judged)[0],
            error=_first_error(self.folder.load_record(Verdict, checked.verdict)),
        )


def read_steps(folder: RunFolder, events: Sequence[Event]) -> tuple[CandidateStep, ...]:
    """Return the candidates of a run in the order in which they were judged.

    The branches of a round are sorted as if they had run one after the other, because a run with fewer tokens
    would have run only the first ones.
    """
    reading = _Reading(started_s=events[0].time_s if events else 0.0, events=events, folder=folder)
    for batch, decision in _rounds(events):
        for judged in batch:
            reading.take(judged)
        if decision is not None:
            reading.lead(*decision)
    return tuple(reading.steps)


def load_candidate_files(step: CandidateStep, folder: RunFolder, events: Sequence[Event]) -> dict[str, str]:
    """Return the files that a candidate wrote, path -> text; empty for given code."""
    for _, proposed in select_events(events, CandidateProposed):
        if proposed.candidate == step.candidate:
            return dict(folder.load_record(Candidate, proposed.blob).files)
    return {}


def _rounds(events: Sequence[Event]) -> Iterator[tuple[list[_Judged], tuple[str | None, Event] | None]]:
    """Yield the candidates judged before each decision, by branch, and the candidate that it calls best."""
    proposed: dict[str, tuple[Event, CandidateProposed]] = {}
    batch: dict[str, _Judged] = {}
    seen: set[str] = set()
    for event in events:
        match event.payload:
            case CandidateProposed(candidate=name) as one:
                proposed.setdefault(name, (event, one))
            case CandidateChecked(candidate=name) as checked if name not in seen:
                seen.add(name)
                proposed_at, origin = proposed.get(name, (event, None))
                batch[name] = _Judged(
                    proposed=origin, checked=checked, proposed_at=proposed_at, checked_at=event
                )
            case CandidateRegressed(candidate=name, checks=checks) if name in batch:
                batch[name].regressed = len(checks)
            case MovesDecided(best=best) | RunFinished(best=best):
                yield sorted(batch.values(), key=_branch_order), (best, event)
                batch = {}
    if batch:
        yield sorted(batch.values(), key=_branch_order), None


def _branch_order(judged: _Judged) -> tuple[int, int]:
    branch = judged.proposed_at.branch
    return -1 if branch is None else branch, judged.proposed_at.seq


def _merit(judged: _Judged) -> tuple[bool, int, int, int]:
    """Return the key of the trusted order: solved, no regression, most checks passed, fewest failed."""
    passed, failed = judged.checked.passed, judged.checked.failed
    solved = passed > 0 and failed == 0 and judged.regressed == 0
    return solved, -judged.regressed, passed, -failed


def _spent(events: Sequence[Event], at: Event) -> RunSpending:
    """Return what had been spent at an event; of its own round, only its branch and earlier ones count."""
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
        return _exception_class(fact.exception) if fact is not None and fact.exception else "AssertionError"
    return ""


def _exception_class(exception: str) -> str:
    return exception.partition(":")[0].strip().rpartition(".")[2]


def sum_run_totals(events: Sequence[Event]) -> Mapping[str, Any]:
    """The fields of a `BenchmarkRow` that are sums over a whole run."""
    called = [call for _, call in select_events(events, ModelCalled)]
    priced = [call.money for call in called if call.money is not None]
    return {
        "completion_tokens": sum(call.completion_tokens for call in called),
        "prompt_tokens": sum(call.prompt_tokens for call in called),
        "calls": len(called),
        "cost_usd": round(sum(priced), 9) if len(priced) == len(called) else None,
        "seconds": round(events[-1].time_s - events[0].time_s, 3) if events else 0.0,
        "model_s": round(sum(call.seconds for call in called if not call.replayed), 3),
        "checks_s": round(sum(checked.seconds for _, checked in select_events(events, CandidateChecked)), 3),
        "prompts": {call.role: call.prompt for call in called},
    }


async def assess_generated_tests(
    problem: Problem, folder: RunFolder, events: Sequence[Event], judge: Sandbox, settings: SandboxSettings
) -> tuple[GeneratedTestRecord, ...]:
    """Return every generated test that a run assessed, in the order of the first assessment."""
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
    return {"right": True, "wrong": False}.get(grade.status)
