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

EncodedAttempt = dict[str, Any]
"""An `Attempt` as JSON values."""


class LoopState(TypedDict):
    """What a checkpoint holds.

    `schema_version` is the version of this state, and `run_id` the run.

    `decisions` counts the decisions so far: the state after step N is the one in which N decisions have been
    carried out. `round` is the current round, `checks` the number of deciding checks, and `moves` the moves
    that were decided and are not carried out yet.

    `proposals` are the attempts of every round as they were proposed, including those that brought no
    candidate. `judged` are the candidates among them that were judged, each once. `samples_asked`,
    `repairs_asked` and `agents_asked` count the moves of each kind.

    `searched` says whether the search has run, and `found_repairs` is the blob of its repairs that wait to be
    judged. `cause` is the cause if no change of the code could make the tests pass, and `cause_detail` its
    description. `outcome` and `reason` are set when the run ends.

    `rejected_decision` is the last decision that a person rejected, or 0, and `hints` is what they told the
    model. `contributions` is `RoleContributions`. `escalated` is the round in which a stronger model took
    over, or 0. `issue_test` is the `IssueTest` that a person is asked about, and `test_attempts` the number
    of tests that were requested.
    """

    schema_version: int
    run_id: str
    decisions: int
    round: int
    checks: int
    moves: list[dict[str, Any]]
    samples_asked: int
    repairs_asked: int
    proposals: Annotated[list[EncodedAttempt], operator.add]
    judged: list[EncodedAttempt]
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
    """Return every candidate that was judged, in the order of proposal."""
    return tuple(decode_record(Attempt, encoded) for encoded in state["judged"])


def proposed_attempts(state: LoopState) -> tuple[Attempt, ...]:
    """Return the attempts of every move as they were proposed."""
    return tuple(decode_record(Attempt, encoded) for encoded in state["proposals"])


def encode_attempts(attempts: Iterable[Attempt]) -> list[EncodedAttempt]:
    """Return attempts as the state holds them."""
    return [encode_record(attempt) for attempt in attempts]


def with_judged_attempts(state: LoopState, attempts: Iterable[Attempt]) -> LoopState:
    """Return the state with these attempts as the judged ones."""
    return {**state, "judged": encode_attempts(attempts)}


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
        lessons: What the summariser has learned from the run.
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
