"""The budget of a run: what it may spend, and what it has spent.

The max cost of an act is reserved before the act starts. Afterwards the reservation is settled: the real cost
replaces it. Both are events of the ledger (see `kinds.budget`), from which the spending is computed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal

from suture.core.clock import Clock
from suture.core.ledger.event import Event
from suture.core.ledger.kinds import (
    BudgetReserved,
    BudgetSettled,
    ReviewAnswered,
    ReviewAsked,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
)
from suture.core.ledger.ledger_writer import Ledger
from suture.core.records import Spend
from suture.errors import BudgetExceeded

SESSION_STARTS = (RunStarted.event_kind, RunResumed.event_kind, ReviewAnswered.event_kind)
SESSION_ENDS = (ReviewAsked.event_kind, RunPaused.event_kind, RunFinished.event_kind)
"""Events between which the run is active, so that time counts. Others may follow days later, such as an undo."""


class SpendTracker:
    """Computes from the events of a ledger, one after the other, what the run has spent.

    A reservation counts in full until it is settled: after a crash, the run has spent at most that much.
    Only the time in which the run was active counts, from the user's request on. A run that waits for a
    person for a day does not spend a day.
    """

    def __init__(self) -> None:
        self.event_count = 0
        """Number of events added."""
        self._reserved: dict[int, BudgetReserved] = {}
        self._settled = Spend()
        self._session_start_s: float | None = None
        self._last_event_s = 0.0
        self._seconds = 0.0

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        for event in events:
            self.event_count += 1
            match event.payload:
                case BudgetReserved() as reserved:
                    self._reserved[event.seq] = reserved
                # A reservation that was settled before is gone, so it never counts twice.
                case BudgetSettled() as settled if self._reserved.pop(settled.reservation, None):
                    self._settled = _add_settled(self._settled, settled)
            if event.kind in SESSION_STARTS:
                self._end_session(self._last_event_s)  # open if a crash ended the session before
                preparation_s = event.payload.preparation_s if isinstance(event.payload, RunStarted) else 0.0
                self._session_start_s = event.time_s - preparation_s
            elif event.kind in SESSION_ENDS:
                self._end_session(event.time_s)
            self._last_event_s = event.time_s

    def _end_session(self, end_s: float) -> None:
        if self._session_start_s is not None:
            self._seconds += max(0.0, end_s - self._session_start_s)
        self._session_start_s = None

    @property
    def reserved_completion_tokens(self) -> int:
        """Tokens of replies that are reserved."""
        return sum(reserved.completion_tokens for reserved in self._reserved.values())

    def spend(self, now_s: float | None = None, *, with_reservations: bool = True) -> Spend:
        """Return what the run has spent.

        Args:
            now_s: The present time, for a run in progress. By default, time counts up to the last event.
            with_reservations: Whether reservations count, as they do for a limit; people read them as spent.
        """
        settled, seconds = self._settled, self._seconds
        reserved = self._reserved.values() if with_reservations else ()
        if self._session_start_s is not None:
            end_s = self._last_event_s if now_s is None else now_s
            seconds += max(0.0, end_s - self._session_start_s)
        return replace(
            settled,
            attempts=settled.attempts + sum(reservation.attempts for reservation in reserved),
            tokens=settled.tokens + sum(reservation.tokens for reservation in reserved),
            money=settled.money + sum(reservation.money for reservation in reserved),
            seconds=seconds,
        )


def _add_settled(spend: Spend, settled: BudgetSettled) -> Spend:
    return Spend(
        attempts=spend.attempts + settled.attempts,
        tokens=spend.tokens + settled.prompt_tokens + settled.completion_tokens,
        prompt_tokens=spend.prompt_tokens + settled.prompt_tokens,
        completion_tokens=spend.completion_tokens + settled.completion_tokens,
        model_calls=spend.model_calls + settled.model_calls,
        money=spend.money + settled.money,
        unpriced_calls=spend.unpriced_calls + settled.unpriced_calls,
    )


def total_spend(
    events: Iterable[Event], now_s: float | None = None, *, with_reservations: bool = True
) -> Spend:
    """Return what a run has spent by the events of its ledger; the arguments are as in `SpendTracker.spend`."""
    tracker = SpendTracker()
    tracker.add(events)
    return tracker.spend(now_s, with_reservations=with_reservations)


def spend_by_group(events: Iterable[Event], group_by: Literal["role", "move"]) -> dict[str, Spend]:
    """Return what each role, or each kind of move, has spent: name -> spend, in the order of their first acts.

    Seconds are not counted.
    """
    tracker = GroupSpendTracker(group_by)
    tracker.add(events)
    return tracker.spend()


class GroupSpendTracker:
    """Computes from events, one after the other, what each role, or each kind of move, has spent."""

    def __init__(self, group_by: Literal["role", "move"]) -> None:
        self.group_by = group_by
        self._groups: dict[str, SpendTracker] = {}
        self._groups_by_reservation: dict[int, SpendTracker] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        for event in events:
            match event.payload:
                case BudgetReserved() as reserved if name := getattr(reserved, self.group_by):
                    group = self._groups.setdefault(name, SpendTracker())
                    self._groups_by_reservation[event.seq] = group
                    group.add([event])
                case BudgetSettled() as settled if settled.reservation in self._groups_by_reservation:
                    self._groups_by_reservation.pop(settled.reservation).add([event])

    def spend(self) -> dict[str, Spend]:
        """Return name -> spend, as `spend_by_group`."""
        return {name: group.spend() for name, group in self._groups.items()}


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The right to spend at most the reserved cost.

    Attributes:
        id: The `seq` of the event that reserved it.
        cost: The payload of that event.
    """

    id: int
    cost: BudgetReserved


def open_reservations(events: Iterable[Event]) -> tuple[Reservation, ...]:
    """Return the reservations that are not settled.

    In a run that no process is writing, a crash left them open.
    """
    unsettled: dict[int, Reservation] = {}
    for event in events:
        match event.payload:
            case BudgetReserved() as cost:
                unsettled[event.seq] = Reservation(id=event.seq, cost=cost)
            case BudgetSettled() as settled:
                unsettled.pop(settled.reservation, None)
    return tuple(unsettled.values())


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may spend; `None` means no limit.

    Attributes:
        attempts: Candidates that models are asked for.
        tokens: Tokens of prompts and replies together.
        completion_tokens: Tokens of replies alone.
        money: US dollars.
        seconds: Wall-clock seconds.
    """

    attempts: int | None = None
    tokens: int | None = None
    completion_tokens: int | None = None
    money: float | None = None
    seconds: float | None = None


class Budget:
    """The limits of a run, and what the ledger says is spent and reserved. It keeps no state of its own."""

    def __init__(self, ledger: Ledger, limits: Limits, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._tracker = SpendTracker()
        self.limits = limits

    def now_s(self) -> float:
        """Return the seconds since the epoch, by the run's clock."""
        return self._clock.now()

    def spend(self) -> Spend:
        """Return what is spent and reserved so far."""
        self._tracker.add(self._ledger.events[self._tracker.event_count :])
        return self._tracker.spend(now_s=self._clock.now())

    def remaining_s(self) -> float | None:
        """Return the seconds that are left, or `None` without a limit."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self.spend().seconds)

    def remaining_tokens(self) -> int | None:
        """Return the tokens that are left, or `None` without a limit."""
        return None if self.limits.tokens is None else max(0, self.limits.tokens - self.spend().tokens)

    def remaining_completion_tokens(self) -> int | None:
        """Return the tokens of replies that are left, or `None` without a limit."""
        limit = self.limits.completion_tokens
        return None if limit is None else max(0, limit - self._completion_tokens(self.spend()))

    def remaining_money(self) -> float | None:
        """Return the US dollars that are left, or `None` without a limit."""
        return None if self.limits.money is None else max(0.0, self.limits.money - self.spend().money)

    def remaining_attempts(self) -> int | None:
        """Return the attempts that are left, or `None` without a limit."""
        return None if self.limits.attempts is None else max(0, self.limits.attempts - self.spend().attempts)

    def require_time(self) -> None:
        """Check that a slow act may start.

        Raises:
            BudgetExceeded: No seconds are left.
        """
        used = self.spend().seconds
        if self.limits.seconds is not None and used >= self.limits.seconds:
            raise BudgetExceeded("seconds", used, self.limits.seconds)

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Stop the `with` block when the run's time is used up.

        Raises:
            BudgetExceeded: No seconds are left, or they ran out before the block ended.
        """
        self.require_time()
        try:
            import asyncio  # not at the top: commands that only read a ledger start faster without it

            async with asyncio.timeout(self.remaining_s()) as scope:
                yield
        except TimeoutError:
            if not scope.expired() or self.limits.seconds is None:
                raise
            raise BudgetExceeded("seconds", self.spend().seconds, self.limits.seconds) from None

    def reserve(self, cost: BudgetReserved, *, is_granted: bool = False) -> Reservation:
        """Reserve the max cost of an act before it starts.

        Args:
            cost: The act and its max cost.
            is_granted: Whether an earlier check has allowed the act. Only the time is then checked.

        Raises:
            BudgetExceeded: The act could exceed a limit. Nothing was reserved.
        """
        self.require_time()
        spend, limits = self.spend(), self.limits
        reply_tokens = self._completion_tokens(spend)
        for kind, used, requested, limit in (
            ("attempts", spend.attempts, cost.attempts, limits.attempts),
            ("tokens", spend.tokens, cost.tokens, limits.tokens),
            ("completion_tokens", reply_tokens, cost.completion_tokens, limits.completion_tokens),
            ("money", spend.money, cost.money, limits.money),
        ):
            if not is_granted and limit is not None and used + requested > limit:
                raise BudgetExceeded(kind, used, limit)
        return Reservation(id=self._ledger.append(cost).seq, cost=cost)

    def settle(
        self,
        reservation: Reservation,
        *,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        model_calls: int = 0,
        money: float = 0.0,
        unpriced_calls: int = 0,
    ) -> None:
        """Replace a reservation by the real cost of the act. All reserved attempts count as spent."""
        self._ledger.append(
            BudgetSettled(
                reservation=reservation.id,
                attempts=reservation.cost.attempts,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                model_calls=model_calls,
                money=money,
                unpriced_calls=unpriced_calls,
            )
        )

    def write_off(self, reservation: Reservation, *, attempts: int = 0, model_calls: int = 1) -> None:
        """Settle a call without a usable reply as if it had cost all reserved tokens and money.

        It may have cost that much: the provider charges for a reply even if it gets lost.
        """
        self._ledger.append(
            BudgetSettled(
                reservation=reservation.id,
                attempts=attempts,
                prompt_tokens=reservation.cost.tokens - reservation.cost.completion_tokens,
                completion_tokens=reservation.cost.completion_tokens,
                model_calls=model_calls,
                money=reservation.cost.money,
            )
        )

    def release(self, reservation: Reservation) -> None:
        """Settle a reservation with no cost at all, because the act did not happen."""
        self._ledger.append(
            BudgetSettled(
                reservation=reservation.id, attempts=0, prompt_tokens=0, completion_tokens=0, model_calls=0
            )
        )

    def _completion_tokens(self, spend: Spend) -> int:
        """Return the tokens of replies that are spent or reserved."""
        return spend.completion_tokens + self._tracker.reserved_completion_tokens
