"""The graph's state: plain JSON values, and hashes in place of anything large."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

from suture.core.records import from_plain, to_plain
from suture.loop.policy.progress import Attempt

SCHEMA_VERSION = 2
"""A run whose state is of another one is not gone on with: it could be misread."""


PlainAttempt = dict[str, Any]
"""An `Attempt` as JSON values."""


class LoopState(TypedDict):
    """What a checkpoint holds.

    `proposals` are the attempts of every round as they were proposed, also those that brought no candidate;
    `tried` are the candidates among them that were judged, each once.

    `decisions` counts them: the state after step N is the one in which N have been carried out. `declined` is
    the last that a person rejected, or 0; `hints` is what they told the model. `aids` is `aids.Aids`.
    `escalated` is the round in which a stronger model took over from the coder, or 0; `agents_asked` counts
    an agent's turns. `found` is the blob of the search's repairs that wait to be judged, or empty.
    `written_test` is the `WrittenTest` that a person is asked about (see `nodes.write_test`), and
    `test_tries` how many were asked for.
    """

    schema_version: int
    run_id: str
    decisions: int
    round: int
    checks: int
    moves: list[dict[str, Any]]
    samples_asked: int
    repairs_asked: int
    proposals: Annotated[list[PlainAttempt], operator.add]
    tried: list[PlainAttempt]
    searched: bool
    cause: str
    not_code: str
    outcome: str
    reason: str
    declined: int
    hints: list[str]
    aids: dict[str, Any]
    escalated: NotRequired[int]
    found: NotRequired[str]
    agents_asked: NotRequired[int]
    written_test: NotRequired[dict[str, Any]]
    test_tries: NotRequired[int]


def first_state(run_id: str) -> LoopState:
    """The state of a run that has not begun."""
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
        tried=[],
        searched=False,
        cause="",
        not_code="",
        outcome="",
        reason="",
        declined=0,
        hints=[],
        aids={},
    )


def tried_in(state: LoopState) -> tuple[Attempt, ...]:
    """Every candidate that was judged, in the order of proposal."""
    return tuple(from_plain(Attempt, plain) for plain in state["tried"])


def proposals_in(state: LoopState) -> tuple[Attempt, ...]:
    """What every move brought, as it was proposed."""
    return tuple(from_plain(Attempt, plain) for plain in state["proposals"])


def plain_attempts(attempts: Iterable[Attempt]) -> list[PlainAttempt]:
    """As the state holds them."""
    return [to_plain(attempt) for attempt in attempts]


def with_tried(state: LoopState, attempts: Iterable[Attempt]) -> LoopState:
    """The state with these as the candidates that were judged."""
    return {**state, "tried": plain_attempts(attempts)}


@dataclass(frozen=True, kw_only=True)
class Aids:
    """Contributions of helpers.

    Attributes:
        plan: The blob of the planner's `Plan`; empty where there is none.
        generated: The blob of the tests that testers wrote; empty for none.
        deciding: The blob of those that are trusted enough to decide; empty for none.
        lessons: What the summariser draws from the run.
        remarks: Candidate -> what the debugger and the critic say of it.
        read: Names of what was done about a candidate and is not done again, such as `critic:<hash>`.
    """

    plan: str = ""
    generated: str = ""
    deciding: str = ""
    lessons: tuple[str, ...] = ()
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    read: tuple[str, ...] = ()


def aids_of(state: LoopState) -> Aids:
    """What the state holds of them."""
    return from_plain(Aids, state["aids"])
