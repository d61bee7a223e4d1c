"""Keeping zygotes for the next run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager

from suture.sandbox.zygote.process import Zygote

__all__ = ["ZygoteKeeper"]

MOST_IDLE = 4
"""Zygotes that wait for work; each holds about 15 MB."""


class ZygoteKeeper:
    """Leases zygotes, each to one run at a time; starts one where none that fits is idle."""

    def __init__(self) -> None:
        self._idle: list[tuple[Hashable, Zygote]] = []
        self._leased: set[Zygote] = set()
        self._closed = False

    @asynccontextmanager
    async def lease(self, key: Hashable, start: Callable[[], Awaitable[Zygote]]) -> AsyncIterator[Zygote]:
        """A zygote for one run.

        Args:
            key: What it must have been started for.
            start: Starts such a one.
        """
        self._closed = False
        zygote = self._take(key) or await start()
        self._leased.add(zygote)
        try:
            yield zygote
        finally:
            self._leased.discard(zygote)
            if self._closed or not zygote.usable:
                await zygote.end()
            else:
                self._idle.append((key, zygote))
                await self._let_go(self._idle[:-MOST_IDLE])

    def _take(self, key: Hashable) -> Zygote | None:
        # The one used last: its memory is warm, and the others grow old and go.
        for at in range(len(self._idle) - 1, -1, -1):
            if self._idle[at][0] == key and self._idle[at][1].usable:
                return self._idle.pop(at)[1]
        return None

    async def _let_go(self, entries: list[tuple[Hashable, Zygote]]) -> None:
        self._idle = [entry for entry in self._idle if entry not in entries]
        for _, zygote in entries:
            await zygote.end()

    async def close(self) -> None:
        """End all that are idle; those at work end with their run. Safe to call twice."""
        self._closed = True
        await self._let_go(list(self._idle))
