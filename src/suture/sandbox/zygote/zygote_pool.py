"""Keeping zygotes for the next run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager

from suture.errors import SandboxBroken, SandboxError
from suture.sandbox.runs.program import SandboxNotStarted
from suture.sandbox.zygote.process import Zygote

MOST_IDLE = 4
"""Zygotes that wait for work; each holds about 15 MB."""
AT_ONCE = 2
"""Runs in dear ones that do not wait for each other; most machines have as many processors."""


class ZygotePool:
    """Leases zygotes, each to one run at a time; starts one where none that fits is idle."""

    def __init__(self) -> None:
        self._idle: list[tuple[Hashable, Zygote]] = []
        self._at_work: Counter[Hashable] = Counter()
        self._starting: Counter[Hashable] = Counter()
        self._lasting: Counter[Hashable] = Counter()
        self._start_s: dict[Hashable, float] = {}
        self._news = asyncio.Event()
        self._adding: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def lease(
        self,
        key: Hashable,
        start: Callable[[], Awaitable[Zygote]],
        *,
        dear: bool = False,
        ahead: bool = False,
        lasting: bool = False,
    ) -> AsyncIterator[Zygote]:
        """A zygote for one run.

        Args:
            key: What it must have been started for.
            start: Starts such a one.
            dear: Whether that takes so long that it is worth waiting for one that is at work.
            ahead: Whether to start the next one now, because this one is for one run only.
            lasting: Whether the run may last, so that nobody should wait for its end.

        Raises:
            SandboxBroken: The keeper was closed meanwhile.
        """
        waits = dear and not ahead and not lasting
        zygote = self._take(key) or (await self._wait(key) if waits else None)
        if zygote is None:
            zygote = await self._start(key, start)
        self._at_work[key] += 1
        self._lasting[key] += lasting
        if ahead:
            self._start_ahead(key, start)
        try:
            yield zygote
        finally:
            self._at_work[key] -= 1
            self._lasting[key] -= lasting
            if self._closed:
                self._wake_waiters()
                await zygote.end()
            else:
                await self._keep(key, zygote)

    async def _start(self, key: Hashable, start: Callable[[], Awaitable[Zygote]]) -> Zygote:
        began_s = time.monotonic()
        self._starting[key] += 1
        try:
            zygote = await start()
        finally:
            self._start_s[key] = time.monotonic() - began_s
            self._starting[key] -= 1
            self._wake_waiters()
        if self._closed:
            await zygote.end()
            raise SandboxBroken("the keeper of zygotes was closed")
        return zygote

    def _start_ahead(self, key: Hashable, start: Callable[[], Awaitable[Zygote]]) -> None:
        """Have as many ready as are at work now, so that as many can be served at once next time."""
        if self._closed:
            return
        ready = self._starting[key] + sum(at == key and zygote.usable for at, zygote in self._idle)
        if ready < min(self._at_work[key], MOST_IDLE):
            task = asyncio.create_task(self._add(key, start))
            self._adding.add(task)
            task.add_done_callback(self._adding.discard)

    async def _add(self, key: Hashable, start: Callable[[], Awaitable[Zygote]]) -> None:
        try:
            await self._keep(key, await self._start(key, start))
        except (SandboxNotStarted, SandboxError, OSError):
            return  # whoever needs the next one tries again, and is told

    async def _keep(self, key: Hashable, zygote: Zygote) -> None:
        """Keep one for the next run; end those that are too many or can serve no more, such as old ones."""
        self._idle.append((key, zygote))
        usable = [entry for entry in self._idle if entry[1].usable][-MOST_IDLE:]
        spent = [entry for entry in self._idle if entry not in usable]
        self._idle = usable
        self._wake_waiters()
        await _end_all(spent)

    async def _wait(self, key: Hashable) -> Zygote | None:
        """One that gets free about as soon as another could be started; `None` where none does.

        The first few are started without such a wait: what runs at once is not made to run in turn.
        """
        if self._starting[key] + self._at_work[key] - self._lasting[key] < AT_ONCE:
            return None
        while self._starting[key]:
            await self._news.wait()
            if (zygote := self._take(key)) is not None:
                return zygote
        try:
            async with asyncio.timeout(self._start_s.get(key, 0.0)):
                while self._at_work[key]:
                    await self._news.wait()
                    if (zygote := self._take(key)) is not None:
                        return zygote
        except TimeoutError:
            pass
        return None

    def _wake_waiters(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _take(self, key: Hashable) -> Zygote | None:
        # The one used last: its memory is warm, and the others grow old and go.
        for at in range(len(self._idle) - 1, -1, -1):
            if self._idle[at][0] == key and self._idle[at][1].usable:
                return self._idle.pop(at)[1]
        return None

    async def close(self) -> None:
        """End all that are idle, for good; those at work end with their run. Safe to call twice."""
        self._closed = True
        for task in tuple(self._adding):
            task.cancel()
            await asyncio.wait([task])
        idle, self._idle = self._idle, []
        await _end_all(idle)


async def _end_all(entries: Sequence[tuple[Hashable, Zygote]]) -> None:
    ended = await asyncio.gather(*(zygote.end() for _, zygote in entries), return_exceptions=True)
    for fault in filter(None, ended):
        raise fault
