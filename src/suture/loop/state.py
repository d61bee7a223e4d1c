"""The graph's state: plain JSON values, and hashes of blobs for everything large."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

from suture.core.records import Reason, decode_record, encode_record
from suture.loop.policy.attempts import Attempt

SCHEMA_VERSION = 1
"""A run with a state of another version is not resumed, because the state could be misread."""


class LoopState(TypedDict):
    """What a checkpoint holds.

    Attributes:
        decisions: The number of decisions so far; after step N of a run, N decisions have been carried out.
        checks: The number of deciding checks.
        moves: The `Move`s that were decided and are not carried out yet.
        samples_asked: The number of `sample` moves so far; the two other `*_asked` count the other kinds.
        proposals: The `Attempt`s of every round as proposed, including those that produced no candidate.
        judged: The `Attempt`s whose candidates were judged, each candidate once.
        searched: Whether the search has run.
        cause: Why no change of the code could make the tests pass; empty if a change may.
        outcome: Set with `reason`, a `Reason`, when the run ends.
        rejected_decision: The last decision that a person rejected; 0 if there is none.
        hints: What people told the model.
        contributions: A `RoleContributions`.
        escalated: The round in which a stronger model took over; 0 if none has.
        found_repairs: The blob of the search's repairs that wait to be judged.
        issue_test: The `IssueTest` that a person is asked about.
        test_attempts: The number of such tests that were requested.
        investigated: Whether flaky tests were investigated.
        asked_examples: Whether a person was asked about results of the code, or none could be shown.
    """

    schema_version: int
    run_id: str
    decisions: int
    round: int
    checks: int
    moves: list[dict[str, Any]]
    samples_asked: int
    repairs_asked: int
    proposals: Annotated[list[dict[str, Any]], operator.add]
    judged: list[dict[str, Any]]
    searched: bool
    cause: str
    cause_detail: str
    outcome: str
    reason: dict[str, Any] | None
    rejected_decision: int
    hints: list[str]
    contributions: dict[str, Any]
    escalated: NotRequired[int]
    found_repairs: NotRequired[str]
    agents_asked: NotRequired[int]
    issue_test: NotRequired[dict[str, Any]]
    test_attempts: NotRequired[int]
    asked_examples: NotRequired[bool]
    investigated: NotRequired[bool]


def initial_state(run_id: str) -> LoopState:
    """Return the state of a run that has not begun."""
    return LoopState(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        decisions=0,
        round=0,
        checks=0,
        moves=[],
        samples_asked=0,
        repairs_asked=0,
        proposals=[],
        judged=[],
        searched=False,
        cause="",
        cause_detail="",
        outcome="",
        reason=None,
        rejected_decision=0,
        hints=[],
        contributions={},
    )


def judged_attempts(state: LoopState) -> tuple[Attempt, ...]:
    """Return the attempts whose candidates were judged, in the order of proposal."""
    return tuple(decode_record(Attempt, encoded) for encoded in state["judged"])


def proposed_attempts(state: LoopState) -> tuple[Attempt, ...]:
    """Return the attempts of every move as they were proposed."""
    return tuple(decode_record(Attempt, encoded) for encoded in state["proposals"])


def encode_attempts(attempts: Iterable[Attempt]) -> list[dict[str, Any]]:
    """Return attempts as the state holds them."""
    return [encode_record(attempt) for attempt in attempts]


def with_judged_attempts(state: LoopState, attempts: Iterable[Attempt]) -> LoopState:
    """Return the state with these attempts as the judged ones."""
    return {**state, "judged": encode_attempts(attempts)}


def add_judged_attempt(state: LoopState, attempt: Attempt) -> LoopState:
    """Return the state with one more judged attempt."""
    return {**state, "judged": [*state["judged"], encode_record(attempt)]}


def ended_state(outcome: str, reason: Reason) -> dict[str, Any]:
    """Return the update of the state that ends a run."""
    return {"moves": [], "outcome": outcome, "reason": encode_record(reason)}


@dataclass(frozen=True, kw_only=True)
class RoleContributions:
    """What the roles besides the coder have contributed.

    Attributes:
        plan: The blob of the planner's `Plan`; empty if there is none.
        generated: The blob of the tests that testers wrote; empty if there are none.
        deciding: The blob of those tests that have enough trust to decide; empty if there are none.
        remarks: Hash of a candidate -> what the debugger, the critic and the advisers say about it.
        done: What was done for a candidate and is not repeated, such as `critic:<hash>`.
    """

    plan: str = ""
    generated: str = ""
    deciding: str = ""
    lessons: tuple[str, ...] = ()
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    done: tuple[str, ...] = ()


def role_contributions(state: LoopState) -> RoleContributions:
    """Return the contributions of the roles."""
    return decode_record(RoleContributions, state["contributions"])
