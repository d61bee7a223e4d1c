"""Read a run's candidates from its ledger: what the run had spent by then, and whether each was the best so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.bench.rows import CandidateStep
from suture.core.ledger import Event, RunFolder, select_events
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CandidateRegressed,
    ModelCalled,
    MovesDecided,
    RunFinished,
)
from suture.core.records import Candidate


@dataclass
class _Judged:
    """A judged candidate with its events; without a proposal, `proposal_event` is the event of the check."""

    proposal: CandidateProposed | None
    check: CandidateChecked
    proposal_event: Event
    check_event: Event
    regressions: int = 0

    @property
    def merit(self) -> tuple[bool, int, int, int]:
        """The key of the trusted order: solved, no regression, most checks passed, fewest failed."""
        passed, failed = self.check.passed, self.check.failed
        is_solved = passed > 0 and failed == 0 and self.regressions == 0
        return is_solved, -self.regressions, passed, -failed


@dataclass
class _StepReader:
    """Builds the steps of a run from its judged candidates."""

    events: Sequence[Event]
    steps: list[CandidateStep] = field(default_factory=list)
    merits: dict[str, tuple[bool, int, int, int]] = field(default_factory=dict)
    best: str = ""

    def add(self, judged: _Judged) -> None:
        """Add a step for a judged candidate."""
        check, proposal = judged.check, judged.proposal
        self.merits[check.candidate] = judged.merit
        is_best_so_far = not self.best or judged.merit > self.merits[self.best]
        if is_best_so_far:
            self.best = check.candidate
        round_number = judged.proposal_event.step if proposal else None
        self.steps.append(
            CandidateStep(
                candidate=check.candidate,
                origin=proposal.origin if proposal else "user",
                round=-1 if round_number is None else round_number,
                seconds=self._seconds_until(judged.check_event),
                passed=check.passed,
                failed=check.failed,
                is_best_so_far=is_best_so_far,
                claimed=judged.merit[0],
                **_spending_until(self.events, judged.proposal_event),
            )
        )

    def set_best(self, candidate: str | None, event: Event) -> None:
        """Add a step if the run itself calls another candidate its best, such as after a tournament."""
        if candidate is None or candidate == self.best or candidate not in self.merits:
            return
        self.best = candidate
        earlier_step = next(step for step in self.steps if step.candidate == candidate)
        self.steps.append(
            replace(
                earlier_step,
                is_best_so_far=True,
                seconds=self._seconds_until(event),
                **_spending_until(self.events, event),
            )
        )

    def _seconds_until(self, event: Event) -> float:
        return round(event.time_s - self.events[0].time_s, 3)


def read_steps(events: Sequence[Event]) -> tuple[CandidateStep, ...]:
    """Return the candidates of a run in the order in which they were judged.

    The branches of a round are sorted as if they had run one after the other, because a run with fewer tokens
    would have run only the first ones.
    """
    reader = _StepReader(events=events)
    for batch, best, event in _rounds(events):
        for judged in batch:
            reader.add(judged)
        reader.set_best(best, event)
    return tuple(reader.steps)


def load_candidate_files(step: CandidateStep, folder: RunFolder, events: Sequence[Event]) -> dict[str, str]:
    """Return the files that a candidate wrote, path -> text; empty for given code."""
    for _, proposed in select_events(events, CandidateProposed):
        if proposed.candidate == step.candidate:
            return dict(folder.load_record(Candidate, proposed.blob).files)
    return {}


def _rounds(events: Sequence[Event]) -> Iterator[tuple[list[_Judged], str | None, Event]]:
    """Yield (judged candidates by branch, best candidate, event) of each decision and of the end."""
    proposals: dict[str, tuple[Event, CandidateProposed]] = {}
    batch: dict[str, _Judged] = {}
    judged_names: set[str] = set()
    for event in events:
        match event.payload:
            case CandidateProposed(candidate=name) as proposal:
                proposals.setdefault(name, (event, proposal))
            case CandidateChecked(candidate=name) as check if name not in judged_names:
                # The same code again is not a new step; `set_best` handles a return to it.
                judged_names.add(name)
                proposal_event, first_proposal = proposals.get(name, (event, None))
                batch[name] = _Judged(first_proposal, check, proposal_event, check_event=event)
            case CandidateRegressed(candidate=name, checks=checks) if name in batch:
                batch[name].regressions = len(checks)
            case MovesDecided(best=best) | RunFinished(best=best):
                yield sorted(batch.values(), key=_branch_order), best, event
                batch = {}
    if batch:  # the run was killed before the next decision
        yield sorted(batch.values(), key=_branch_order), None, events[-1]


def _branch_order(judged: _Judged) -> tuple[int, int]:
    branch = judged.proposal_event.branch
    return -1 if branch is None else branch, judged.proposal_event.seq


def _spending_until(events: Sequence[Event], until: Event) -> dict[str, Any]:
    """Return the spending fields of a step; of the event's round, only its branch and earlier ones count."""
    calls = [call for event, call in select_events(events, ModelCalled) if _counts_before(event, until)]
    return {
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "calls": len(calls),
    }


def _counts_before(call: Event, until: Event) -> bool:
    # Events outside of the parallel branches of a round are ordered by their number alone.
    branches = (call.branch, until.branch)
    if call.step != until.step or None in branches or call.branch == until.branch:
        return call.seq < until.seq
    return (call.branch or 0) < (until.branch or 0)


def sum_run_totals(events: Sequence[Event]) -> Mapping[str, Any]:
    """Return the fields of a `BenchmarkRow` that are sums over a whole run."""
    calls = [call for _, call in select_events(events, ModelCalled)]
    prices = [call.money for call in calls if call.money is not None]
    return {
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "calls": len(calls),
        "cost_usd": round(sum(prices), 9) if len(prices) == len(calls) else None,
        "seconds": round(events[-1].time_s - events[0].time_s, 3) if events else 0.0,
        "model_s": round(sum(call.seconds for call in calls if not call.replayed), 3),
        "checks_s": round(sum(check.seconds for _, check in select_events(events, CandidateChecked)), 3),
        "prompts": {call.role: call.prompt for call in calls},
    }
