"""Asking again: only what the table of faults allows, with growing pauses, within the call's own time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from suture.errors import ModelError, ModelRateLimited

if TYPE_CHECKING:
    from tenacity import RetryCallState

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
