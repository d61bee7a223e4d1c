"""The budget: reserved before each paid or slow act, computed from the ledger alone."""

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
from suture.core.ledger.writing import Ledger
from suture.core.records import Spend
from suture.errors import BudgetExceeded


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A promise to spend at most this much; `id` is the `seq` of its event.

    `tokens` are those of prompt and reply together, `completion_tokens` those of the reply among them.
    """

    id: int
    attempts: int
    tokens: int
    completion_tokens: int = 0
    money: float = 0.0


def open_reservations(events: Iterable[Event]) -> tuple[Reservation, ...]:
    """Reservations that are not settled; where no process writes the run any more, a crash cut them off."""
    held: dict[int, Reservation] = {}
    for event in events:
        match event.payload:
            case BudgetReserved() as reserved:
                held[event.seq] = Reservation(
                    id=event.seq,
                    attempts=reserved.attempts,
                    tokens=reserved.tokens,
                    completion_tokens=reserved.completion_tokens,
                    money=reserved.money,
                )
            case BudgetSettled() as settled:
                held.pop(settled.reservation, None)
    return tuple(held.values())


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may use: attempts, tokens, those of replies, US dollars, seconds; `None` means no limit."""

    attempts: int | None = None
    tokens: int | None = None
    completion_tokens: int | None = None
    money: float | None = None
    seconds: float | None = None


class Budget:
    """Limits over a ledger. It counts nothing but what that tells.

    Args:
        ledger: Where reservations are written and read back.
        limits: What the run may use.
        clock: Tells the time.
    """

    def __init__(self, ledger: Ledger, limits: Limits, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._fold = SpendTracker()
        self.limits = limits

    def now_s(self) -> float:
        """Seconds since the epoch, by the run's clock."""
        return self._clock.now()

    def spend(self) -> Spend:
        """What is spent and reserved up to now."""
        self._fold.add(self._ledger.events[self._fold.events :])
        return self._fold.spend(now_s=self._clock.now())

    def remaining_s(self) -> float | None:
        """Seconds left, or `None` where there is no limit."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self.spend().seconds)

    def remaining_tokens(self) -> int | None:
        """Tokens left, or `None` where there is no limit."""
        return None if self.limits.tokens is None else max(0, self.limits.tokens - self.spend().tokens)

    def remaining_completion_tokens(self) -> int | None:
        """Tokens of replies left, or `None` where there is no limit."""
        limit = self.limits.completion_tokens
        return None if limit is None else max(0, limit - self._completion_tokens(self.spend()))

    def remaining_money(self) -> float | None:
        """US dollars left, or `None` where there is no limit."""
        return None if self.limits.money is None else max(0.0, self.limits.money - self.spend().money)

    def remaining_attempts(self) -> int | None:
        """Attempts left, or `None` where there is no limit."""
        return None if self.limits.attempts is None else max(0, self.limits.attempts - self.spend().attempts)

    def require_time(self) -> None:
        """Refuse to start a slow act when the time is up.

        Raises:
            BudgetExceeded: No seconds are left.
        """
        used = self.spend().seconds
        if self.limits.seconds is not None and used >= self.limits.seconds:
            raise BudgetExceeded("seconds", used, self.limits.seconds)

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Cut a slow act off when the time is up.

        Raises:
            BudgetExceeded: No seconds are left, or none were before the act ended.
        """
        self.require_time()
        try:
            import asyncio  # not at the top: who only reads a ledger starts sooner without it

            async with asyncio.timeout(self.remaining_s()) as scope:
                yield
        except TimeoutError:
            if not scope.expired() or self.limits.seconds is None:
                raise
            raise BudgetExceeded("seconds", self.spend().seconds, self.limits.seconds) from None

    def reserve(
        self,
        what: str,
        *,
        attempts: int = 0,
        tokens: int = 0,
        completion_tokens: int = 0,
        money: float = 0.0,
        role: str = "",
        move: str = "",
        is_granted: bool = False,
        act: str = "",
        max_reply_tokens: int = 0,
    ) -> Reservation:
        """Set aside the most that an act can cost, before it starts.

        Args:
            what: The act, for the ledger.
            attempts: Attempts it will use.
            tokens: An upper bound of the tokens it may use, prompt and reply together.
            completion_tokens: Of these, an upper bound of those of the reply.
            money: An upper bound of the US dollars it may cost.
            role: Who acts, where it is a role.
            move: The kind of move it belongs to, where it does.
            granted: Whether it is allowed already, so that no limit is asked.
            act: Tells it from whatever else the same branch of a round pays for.
            most: Tokens that its reply may have.

        Raises:
            BudgetExceeded: The act could exceed a limit; nothing was reserved.
        """
        self.require_time()
        spend = self.spend()
        for kind, used, wanted, limit in (
            ("attempts", spend.attempts, attempts, self.limits.attempts),
            ("tokens", spend.tokens, tokens, self.limits.tokens),
            (
                "completion_tokens",
                self._completion_tokens(spend),
                completion_tokens,
                self.limits.completion_tokens,
            ),
            ("money", spend.money, money, self.limits.money),
        ):
            if not is_granted and limit is not None and used + wanted > limit:
                raise BudgetExceeded(kind, used, limit)
        reserved = BudgetReserved(
            purpose=what,
            attempts=attempts,
            tokens=tokens,
            completion_tokens=completion_tokens,
            money=money,
            role=role,
            move=move,
            act=act,
            max_reply_tokens=max_reply_tokens,
        )
        event = self._ledger.append(reserved)
        return Reservation(
            id=event.seq, attempts=attempts, tokens=tokens, completion_tokens=completion_tokens, money=money
        )

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
        """Replace a reservation by what the act really cost; its attempts are spent."""
        settled = BudgetSettled(
            reservation=reservation.id,
            attempts=reservation.attempts,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            model_calls=model_calls,
            money=money,
            unpriced_calls=unpriced_calls,
        )
        self._ledger.append(settled)

    def write_off(self, reservation: Reservation, *, attempts: int = 0, model_calls: int = 1) -> None:
        """Book the tokens and the money of a call without a usable answer: it may have cost all of them."""
        settled = BudgetSettled(
            reservation=reservation.id,
            attempts=attempts,
            prompt_tokens=reservation.tokens - reservation.completion_tokens,
            completion_tokens=reservation.completion_tokens,
            model_calls=model_calls,
            money=reservation.money,
        )
        self._ledger.append(settled)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the act did not happen, through no fault of the candidate."""
        nothing = BudgetSettled(
            reservation=reservation.id, attempts=0, prompt_tokens=0, completion_tokens=0, model_calls=0
        )
        self._ledger.append(nothing)

    def _completion_tokens(self, spend: Spend) -> int:
        """Those that are spent, and those that are set aside."""
        return spend.completion_tokens + self._fold.reserved_completion_tokens


SESSION_STARTS = (RunStarted.event_kind, RunResumed.event_kind, ReviewAnswered.event_kind)
SESSION_ENDS = (ReviewAsked.event_kind, RunPaused.event_kind, RunFinished.event_kind)
"""What comes after the last of them, such as an undo days later, takes no time of the run's."""


class SpendTracker:
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
                before_s = event.payload.preparation_s if isinstance(event.payload, RunStarted) else 0.0
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


def total_spend(events: Iterable[Event], now_s: float | None = None) -> Spend:
    """Fold events into what was spent.

    Args:
        events: A ledger's events, in order.
        now_s: The time now, for a run that is alive; `None` for one that ended.
    """
    fold = SpendTracker()
    fold.add(events)
    return fold.spend(now_s)


def spend_by_group(events: Iterable[Event], what: Literal["role", "move"]) -> dict[str, Spend]:
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
    return {name: total_spend(group) for name, group in groups.items()}
