"""Limits of one server address: concurrent calls, calls per minute, retries, and a circuit breaker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from suture.errors import ModelError, ModelRateLimited
from suture.models.providers.connections import mask_credentials
from suture.models.tuning import (
    CIRCUIT_BREAKER_FAULTS,
    CIRCUIT_BREAKER_PAUSE_S,
    FIRST_RETRY_PAUSE_S,
    MAX_RETRY_PAUSE_S,
)

if TYPE_CHECKING:
    from tenacity import RetryCallState


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """The load that an endpoint may get.

    Attributes:
        concurrency: Maximum number of concurrent calls.
        requests_per_minute: Tries started per minute, evenly spaced; `None` for no limit.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None


class Endpoint:
    """The limits of one address, shared by all models of this process that use it.

    Messages show the address without credentials. `now` is a monotonic clock in seconds.
    """

    def __init__(
        self,
        address: str,
        limits: EndpointLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.address = mask_credentials(address)
        self._limits = limits
        self._now = now
        self._sleep = sleep
        # A semaphore belongs to the event loop that waits for it.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._faults = 0
        self._paused_until = 0.0
        self._last_fault = ""

    def slot(self) -> asyncio.Semaphore:
        """Return the context in which a call waits for one of the concurrent slots; it keeps it during retries."""
        semaphore = asyncio.Semaphore(self._limits.concurrency)
        return self._slots.setdefault(asyncio.get_running_loop(), semaphore)

    async def admit(self) -> None:
        """Wait until one try may start. A cancelled waiter does not take a turn from those behind it.

        Raises:
            ModelError: The circuit breaker is open: too many consecutive tries have just failed.
        """
        with self._lock:
            self._refuse_if_open()
        async with self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            while (wait_s := self._take_turn()) > 0:
                await self._sleep(wait_s)

    def _take_turn(self) -> float:
        """Take the turn if it has come, else return the seconds until then."""
        with self._lock:
            self._refuse_if_open()
            now = self._now()
            if now < self._next_start:
                return self._next_start - now
            if self._faults >= CIRCUIT_BREAKER_FAULTS:
                # One try goes through; the others wait for its outcome.
                self._paused_until = now + CIRCUIT_BREAKER_PAUSE_S
            if self._limits.requests_per_minute is not None:
                self._next_start = now + 60 / self._limits.requests_per_minute
            return 0

    def _refuse_if_open(self) -> None:
        pause_s = self._paused_until - self._now()
        if pause_s > 0:
            raise ModelError(
                f"calls to {self.address!r} are paused for {pause_s:.0f} s more after "
                f"{self._faults} consecutive faults; the last one: {self._last_fault}",
                remedy="fix the cause of that fault, or wait",
            )

    def record_failure(self, fault: ModelError, *, counts: bool) -> None:
        """Record a fault; `counts` says whether it counts towards the circuit breaker."""
        if not counts:
            self.record_success()  # the server did answer
            return
        with self._lock:
            self._faults += 1
            self._last_fault = fault.message
            if self._faults >= CIRCUIT_BREAKER_FAULTS:
                self._paused_until = self._now() + CIRCUIT_BREAKER_PAUSE_S

    def record_success(self) -> None:
        """Record an answer of the server, which resets the count of consecutive faults."""
        with self._lock:
            self._faults, self._paused_until = 0, 0.0


_endpoints: WeakValueDictionary[tuple[str, EndpointLimits], Endpoint] = WeakValueDictionary()
_endpoints_lock = threading.Lock()


def get_endpoint(address: str, limits: EndpointLimits) -> Endpoint:
    """Return the shared endpoint of an address; it exists as long as any model uses it."""
    with _endpoints_lock:
        return _endpoints.setdefault((address, limits), Endpoint(address, limits))


T = TypeVar("T")


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    retries: int,
    timeout_s: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Return the result of `call`, which is repeated after transient faults, at most `retries` times.

    The pause is the provider's Retry-After, or random up to a bound that doubles each time ("full jitter",
    Brooker 2015). All tries and pauses together take at most `timeout_s`. A pause that would exceed this limit
    is not started: the fault is raised at once.
    """
    import tenacity

    backoff = tenacity.wait_random_exponential(multiplier=FIRST_RETRY_PAUSE_S, max=MAX_RETRY_PAUSE_S)

    def pause_s(state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        retry_after_s = fault.retry_after_s if isinstance(fault, ModelRateLimited) else None
        return backoff(state) if retry_after_s is None else retry_after_s

    tries = tenacity.AsyncRetrying(
        sleep=sleep,
        wait=pause_s,
        stop=tenacity.stop_after_attempt(retries + 1) | tenacity.stop_before_delay(timeout_s),
        retry=tenacity.retry_if_exception(lambda fault: isinstance(fault, ModelError) and fault.is_transient),
        reraise=True,
    )
    return await tries(call)
