"""The time that a proof has, and what of it goes on side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from suture.loop.context import RunContext

MeasureT = TypeVar("MeasureT")
OtherwiseT = TypeVar("OtherwiseT")


@asynccontextmanager
async def ended_together() -> AsyncIterator[Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]]:
    """Begins what goes on in the background, and ends it where another part of it fails."""
    tasks: list[asyncio.Task[Any]] = []

    def begin(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        tasks.append(asyncio.create_task(work))
        return tasks[-1]

    try:
        yield begin
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CertificationClock:
    """Proof's own share of the run's time."""

    def __init__(self, context: RunContext) -> None:
        left_s = context.budget.remaining_s()
        most_s = context.settings.certification.seconds
        self._end_s = time.monotonic() + (most_s if left_s is None else min(most_s, left_s))

    def left_s(self) -> float:
        """Seconds that are left of it."""
        return max(0.0, self._end_s - time.monotonic())

    async def within(
        self, measure: Callable[[], Awaitable[MeasureT]], otherwise: OtherwiseT, *, spare_s: float = 0.0
    ) -> MeasureT | OtherwiseT:
        """What is measured, or what to say where the time is up first, but for some seconds to spare."""
        left_s = self.left_s() - spare_s
        if left_s <= 0:
            return otherwise
        try:
            async with asyncio.timeout(left_s) as scope:
                return await measure()
        except TimeoutError:
            if not scope.expired():
                raise
            return otherwise
