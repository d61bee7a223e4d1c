"""What one address can take: calls at once, calls a minute, and a pause after too many faults in a row."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from suture.errors import ModelError, ModelRateLimited
from suture.models.providers.urls import without_credentials

if TYPE_CHECKING:
    from tenacity import RetryCallState


FAULTS_TO_OPEN = 6
"""Faults in a row after which an endpoint is left alone: two calls with both their retries."""
OPEN_S = 30.0
"""For how long; then one call may try."""


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """What an endpoint is asked at most.

    Attributes:
        concurrency: The most calls that go on at the same time.
        requests_per_minute: Tries started in a minute, evenly spaced; `None` for no limit.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None


class Endpoint:
    """The gate before one address, shared by every model of this process that goes there.

    Args:
        address: The server's address, which messages show without credentials.
        limits: What it is asked at most.
        now: Seconds of a clock that never goes back.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        address: str,
        limits: EndpointLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.address = without_credentials(address)
        self._limits = limits
        self._now = now
        self._sleep = sleep
        # A semaphore belongs to the event loop that waits for it.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._faults = 0
        self._closed_until = 0.0
        self._last_fault = ""

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for one of the places; a call keeps it through its retries."""
        loop = asyncio.get_running_loop()
        slots = self._slots.setdefault(loop, asyncio.Semaphore(self._limits.concurrency))
        async with slots:
            yield

    async def admit(self) -> None:
        """Wait for the turn of one try. Who stops waiting has taken no turn from those behind.

        Raises:
            ModelError: The circuit is open: too many tries in a row have failed a moment ago.
        """
        with self._lock:
            self._refuse_if_open()
        async with self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            while (wait_s := self._take_turn()) > 0:
                await self._sleep(wait_s)

    def _take_turn(self) -> float:
        """Take the turn if it has come, else say how many seconds are left until then."""
        with self._lock:
            self._refuse_if_open()
            now = self._now()
            if now < self._next_start:
                return self._next_start - now
            if self._faults >= FAULTS_TO_OPEN:
                self._closed_until = now + OPEN_S  # one try goes through; the others wait for its outcome
            if self._limits.requests_per_minute is not None:
                self._next_start = now + 60 / self._limits.requests_per_minute
            return 0

    def _refuse_if_open(self) -> None:
        left_s = self._closed_until - self._now()
        if left_s > 0:
            raise ModelError(
                f"{self.address!r} is left alone for {left_s:.0f} s more, after "
                f"{self._faults} faults in a row; the last one: {self._last_fault}",
                remedy="see to that fault, or wait",
            )

    def failed(self, fault: ModelError, *, counts: bool) -> None:
        """Note a fault; `counts` says whether it tells against the endpoint."""
        with self._lock:
            if not counts:
                self._faults, self._closed_until = 0, 0.0  # it did answer
                return
            self._faults += 1
            self._last_fault = fault.message
            if self._faults >= FAULTS_TO_OPEN:
                self._closed_until = self._now() + OPEN_S

    def answered(self) -> None:
        """Note a success: earlier faults no longer count towards closing the endpoint."""
        with self._lock:
            self._faults, self._closed_until = 0, 0.0


_endpoints: WeakValueDictionary[tuple[str, EndpointLimits], Endpoint] = WeakValueDictionary()
_endpoints_lock = threading.Lock()


def endpoint_of(address: str, limits: EndpointLimits) -> Endpoint:
    """The gate before an address; the same one for as long as any model uses it."""
    with _endpoints_lock:
        found = _endpoints.get((address, limits))
        if found is None:
            found = _endpoints[address, limits] = Endpoint(address, limits)
        return found


T = TypeVar("T")

FIRST_PAUSE_S = 0.5
"""Doubled at each further try, and drawn by chance below that: runs side by side must not knock in step."""
LONGEST_PAUSE_S = 30.0
"""Of our own choosing; a provider may ask for another."""


async def retried(
    ask: Callable[[], Awaitable[T]],
    *,
    retries: int,
    patience_s: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Ask until there is an answer, a fault that does not pass, or no patience left.

    The pause is the provider's own Retry-After, or else drawn at random up to a bound that doubles each time
    ("full jitter", Brooker 2015). A pause that would outlast the patience is not begun: the fault is raised
    at once, with what the provider said.

    Args:
        ask: Makes one try of the call.
        retries: The most tries after the first.
        patience_s: The most seconds of all tries and pauses together.
        sleep: Waits so many seconds.

    Raises:
        ModelError: The fault of the last try.
    """
    import tenacity

    backoff = tenacity.wait_random_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S)

    def pause_s(state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        asked = fault.retry_after_s if isinstance(fault, ModelRateLimited) else None
        return backoff(state) if asked is None else asked

    tries = tenacity.AsyncRetrying(
        sleep=sleep,
        wait=pause_s,
        stop=tenacity.stop_after_attempt(retries + 1) | tenacity.stop_before_delay(patience_s),
        retry=tenacity.retry_if_exception(lambda fault: isinstance(fault, ModelError) and fault.passing),
        reraise=True,
    )
    return await tries(ask)
