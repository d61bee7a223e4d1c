"""The graph's state: plain JSON values, and hashes in place of anything large."""

from __future__ import annotations

import operator
from typing import Annotated, Any, NotRequired, TypedDict

__all__ = ["SCHEMA_VERSION", "LoopState", "Proposal", "TriedEntry", "first_state"]

SCHEMA_VERSION = 2


class Proposal(TypedDict):
    """A candidate that waits for its checks, or a move that brought none.

    `blob` names the candidate in the run folder; it is empty where `fault` says what kind of fault there was
    (`malformed`, `budget` or `model`) and `message` says it to people.
    """

    candidate: str
    blob: str
    origin: str
    round: int
    start: int
    depth: int
    label: str
    fault: str
    message: str
    parent: NotRequired[str]


class TriedEntry(TypedDict):
    """A candidate with its verdict: the fields of `progress.Tried`, and the blobs they were counted from."""

    candidate: str
    blob: str
    verdict: str
    label: str
    origin: str
    round: int
    start: int
    depth: int
    passed: int
    failed: int
    regressed: int
    signature: str
    rejected: NotRequired[bool]
    parent: NotRequired[str]
    fingerprint: NotRequired[str]
    sent_back: NotRequired[bool]
    confidence: NotRequired[float]
    advised: NotRequired[str]
    rank: NotRequired[int]


class LoopState(TypedDict):
    """What a checkpoint holds.

    `decisions` counts them: the state after step N is the one in which N have been carried out. `declined` is
    the last that a person rejected, or 0; `hints` is what they told the model. `aids` is `aids.Aids`.
    `escalated` is the round in which a stronger model took over from the coder, or 0.
    """

    schema_version: int
    run_id: str
    decisions: int
    round: int
    checks: int
    moves: list[dict[str, Any]]
    samples_asked: int
    repairs_asked: int
    proposals: Annotated[list[Proposal], operator.add]
    tried: list[TriedEntry]
    searched: bool
    cause: str
    not_code: str
    outcome: str
    reason: str
    declined: int
    hints: list[str]
    aids: dict[str, Any]
    escalated: NotRequired[int]


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
