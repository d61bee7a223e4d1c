"""Decide once what a call may cost.

A run that was killed and resumed, and a run that replays another, give each call the budget that it got before.
"""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NoReturn

from suture.agents.prompting.prompt_files import PromptBook
from suture.core.ledger import Budget, Event, Ledger, Reservation, RunFolder, current_position, select_events
from suture.core.ledger.kinds import BudgetRefused, BudgetReserved, BudgetSettled, RunResumed
from suture.core.settings import Settings
from suture.errors import BudgetExceeded
from suture.models import RoleModels

BudgetDecision = BudgetReserved | BudgetRefused
"""The event that says what a call may cost, or that it was refused."""


@dataclass(frozen=True, kw_only=True)
class BudgetedCall:
    """A model call, or a run of the user's program, that the budget pays for.

    Attributes:
        key: Distinguishes the call from other calls of the same branch of a round.
        move: The kind of the move that it belongs to, if any.
        is_attempt: Whether it uses up an attempt.
    """

    key: str
    description: str
    role: str = ""
    move: str = ""
    is_attempt: bool = False


@dataclass(frozen=True, kw_only=True)
class PriorDecision:
    """What was decided on a call before: by a killed process of this run, or in the run that is replayed.

    Attributes:
        max_reply_tokens: The granted length of the reply; `None` if none was granted.
        refusal: The error, if the call was refused.
        attempt_booked: Whether a killed process of this run has already used up the attempt.
        is_replayed: Whether the decision comes from the replayed run.
    """

    max_reply_tokens: int | None = None
    refusal: BudgetExceeded | None = None
    attempt_booked: bool = False
    is_replayed: bool = False


def find_prior_decision(call: BudgetedCall, calls: CallContext) -> PriorDecision:
    """Return what was decided on a call before.

    Equal calls of one branch are distinguished by their order: if this process has decided on two such calls, this
    is the third one, and it gets the third earlier decision.
    """
    events = calls.ledger.events
    resumes = [number for number, event in enumerate(events) if isinstance(event.payload, RunResumed)]
    process_start = resumes[-1] + 1 if resumes else 0
    killed_processes, this_process = events[:process_start], events[process_start:]
    position = len(_decisions_on(call, this_process))
    decision_of_this_run = _last_decision(call, position, killed_processes)
    decision = decision_of_this_run or _last_decision(call, position, calls.replayed_events)
    prior = PriorDecision(
        attempt_booked=call.is_attempt and _count_booked_attempts(call, killed_processes) > position,
        is_replayed=decision is not None and decision_of_this_run is None,
    )
    if decision is None:
        return prior
    if isinstance(decision, BudgetRefused):
        return replace(prior, refusal=BudgetExceeded(decision.limit_kind, decision.used, decision.limit))
    # A reservation of 0 tokens granted no reply, as that of a run of the user's program.
    return replace(prior, max_reply_tokens=decision.max_reply_tokens or None)


def reserve(
    call: BudgetedCall,
    calls: CallContext,
    prior: PriorDecision,
    *,
    tokens: int = 0,
    reply_tokens: int = 0,
    money: float = 0.0,
    is_paid: bool = False,
) -> Reservation:
    """Reserve the maximum cost of a call; an attempt only if it is not booked already.

    Args:
        tokens: Upper bound of the tokens of prompt and reply together.
        reply_tokens: Upper bound of the tokens of the reply.
        money: Upper bound of the cost in US dollars.
        is_paid: Whether this run holds the reply already, so that nothing more can be spent.

    Raises:
        BudgetExceeded: The call could exceed a limit, or was refused before.
    """
    if prior.refusal is not None:
        refuse(call, prior.refusal, calls)
    cost = BudgetReserved(
        purpose=call.description,
        attempts=1 if call.is_attempt and not prior.attempt_booked else 0,
        tokens=0 if is_paid else tokens,
        completion_tokens=0 if is_paid else reply_tokens,
        money=0.0 if is_paid else money,
        role=call.role,
        move=call.move,
        act=call.key,
        max_reply_tokens=reply_tokens,
    )
    try:
        return calls.budget.reserve(cost, is_granted=prior.is_replayed)
    except BudgetExceeded as fault:
        refuse(call, fault, calls)


def refuse(call: BudgetedCall, fault: BudgetExceeded, calls: CallContext) -> NoReturn:
    """Record that a call is not paid for, and raise the reason."""
    calls.ledger.append(
        BudgetRefused(
            purpose=call.description, act=call.key, limit_kind=fault.kind, used=fault.used, limit=fault.limit
        )
    )
    raise fault


def _decisions_on(call: BudgetedCall, events: Sequence[Event]) -> list[tuple[int, BudgetDecision]]:
    """Return `(sequence number, decision)` for the decisions on a call in this branch of the round."""
    position = current_position()
    branch = (position.get("step"), position.get("branch"), position.get("part"))
    return [
        (event.seq, event.payload)
        for event in events
        if isinstance(event.payload, BudgetReserved | BudgetRefused)
        and event.payload.act == call.key
        and (event.step, event.branch, event.part) == branch
    ]


def _last_decision(call: BudgetedCall, position: int, events: Sequence[Event]) -> BudgetDecision | None:
    """Return the decision of the last process that reached the call at this position; `None` if none did."""
    process_starts = [event.seq for event, _ in select_events(events, RunResumed)]
    by_process = groupby(_decisions_on(call, events), key=lambda pair: bisect(process_starts, pair[0]))
    reached = [decisions[position][1] for _, group in by_process if position < len(decisions := list(group))]
    return reached[-1] if reached else None


def _count_booked_attempts(call: BudgetedCall, events: Sequence[Event]) -> int:
    """Return how many attempts were reserved for a call and used up."""
    reserved = {seq for seq, _ in _decisions_on(call, events)}
    settled = {event.reservation: event for _, event in select_events(reversed(events), BudgetSettled)}
    return sum(seq in settled and settled[seq].attempts > 0 for seq in reserved)


@dataclass(frozen=True, kw_only=True, eq=False)
class CallContext:
    """The models of a run, and where their calls are paid and recorded.

    Attributes:
        folder: The run folder; it holds every reply.
        budget: What the run may use, and has used.
        replayed_run: The id of the run that this run replays; empty if it replays none.
        replayed_events: The events of that run. What its budget granted or refused is granted or refused
            again, so that the replay makes the same decisions.
    """

    settings: Settings
    folder: RunFolder
    ledger: Ledger
    budget: Budget
    models: RoleModels
    prompts: PromptBook = field(default_factory=PromptBook)
    replayed_run: str = ""
    replayed_events: Sequence[Event] = ()
    _reply_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def reply_turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager to hold while a branch of a round asks for its reply.

        Where reply tokens are limited, the branches of a round ask one after the other in their order,
        because the tokens that a reply may have depend on the replies before it.
        """
        return nullcontext() if self.budget.limits.completion_tokens is None else self._reply_lock
