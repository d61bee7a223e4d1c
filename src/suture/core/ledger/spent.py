"""What was spent, as a fold over a ledger's events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from suture.core.ledger.event import Event
from suture.core.ledger.kinds import (
    BudgetReserved,
    BudgetSettled,
    ReviewAnswered,
    ReviewAsked,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
)
from suture.core.records import Spend

SESSION_STARTS = (RunStarted.event_kind, RunResumed.event_kind, ReviewAnswered.event_kind)
SESSION_ENDS = (ReviewAsked.event_kind, RunParked.event_kind, RunFinished.event_kind)
"""What comes after the last of them, such as an undo days later, takes no time of the run's."""


class SpendFold:
    """Events folded into what was spent, one after the other: a run that goes on need not begin anew.

    A reservation counts in full until it is settled: after a crash the run has spent at most that much.
    Seconds are those in which the run was at work, so one that waited a day for a person has not used a day;
    they begin when the user asked for it.
    """

    def __init__(self) -> None:
        self.events = 0
        """How many events were taken in."""
        self._held: dict[int, BudgetReserved] = {}
        self._settled = Spend()
        self._session_start: float | None = None
        self._last_s = 0.0
        self._seconds = 0.0

    def add(self, events: Iterable[Event]) -> None:
        """Take in the events that came next."""
        for event in events:
            self.events += 1
            match event.payload:
                case BudgetReserved() as reserved:
                    self._held[event.seq] = reserved
                case BudgetSettled() as settled if self._held.pop(settled.reservation, None):  # once
                    self._settled = _with(self._settled, settled)
            if event.kind in SESSION_STARTS:
                self._end_session(self._last_s)
                before_s = event.payload.seconds if isinstance(event.payload, RunStarted) else 0.0
                self._session_start = event.time_s - before_s
            elif event.kind in SESSION_ENDS:
                self._end_session(event.time_s)
            self._last_s = event.time_s

    def _end_session(self, at_s: float) -> None:
        if self._session_start is not None:
            self._seconds += max(0.0, at_s - self._session_start)
        self._session_start = None

    @property
    def reserved_completion_tokens(self) -> int:
        """Of replies that are set aside."""
        return sum(reserved.completion_tokens for reserved in self._held.values())

    def spend(self, now_s: float | None = None) -> Spend:
        """What was spent up to the last event, or up to now where the time now is given."""
        held, settled, seconds = self._held.values(), self._settled, self._seconds
        if self._session_start is not None:
            seconds += max(0.0, (self._last_s if now_s is None else now_s) - self._session_start)
        return replace(
            settled,
            attempts=settled.attempts + sum(reserved.attempts for reserved in held),
            tokens=settled.tokens + sum(reserved.tokens for reserved in held),
            money=settled.money + sum(reserved.money for reserved in held),
            seconds=seconds,
        )


def _with(spend: Spend, settled: BudgetSettled) -> Spend:
    return Spend(
        attempts=spend.attempts + settled.attempts,
        tokens=spend.tokens + settled.prompt_tokens + settled.completion_tokens,
        prompt_tokens=spend.prompt_tokens + settled.prompt_tokens,
        completion_tokens=spend.completion_tokens + settled.completion_tokens,
        model_calls=spend.model_calls + settled.model_calls,
        money=spend.money + settled.money,
        unpriced_calls=spend.unpriced_calls + settled.unpriced_calls,
    )


def spend_of(events: Iterable[Event], now_s: float | None = None) -> Spend:
    """Fold events into what was spent.

    Args:
        events: A ledger's events, in order.
        now_s: The time now, for a run that is alive; `None` for one that ended.
    """
    fold = SpendFold()
    fold.add(events)
    return fold.spend(now_s)


def spend_by(events: Iterable[Event], what: Literal["role", "move"]) -> dict[str, Spend]:
    """What each role, or each kind of move, has used, in the order of their first act; no seconds."""
    groups: dict[str, list[Event]] = {}
    group_of: dict[int, list[Event]] = {}
    for event in events:
        match event.payload:
            case BudgetReserved() as reserved if name := getattr(reserved, what):
                group_of[event.seq] = groups.setdefault(name, [])
                group_of[event.seq].append(event)
            case BudgetSettled() as settled if settled.reservation in group_of:
                group_of[settled.reservation].append(event)
    return {name: spend_of(group) for name, group in groups.items()}
