"""Several walls at once: lent one by one, and never more work taken on than they can do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from suture.errors import SandboxBroken, UsageError
from suture.sandbox.contract import RunRequest, RunResult, Sandbox

__all__ = ["SandboxPool"]

AHEAD = 2
"""Requests under way for each sandbox, so that a slow one does not leave the others idle."""
NOTHING = RunRequest(python="")


class SandboxPool:
    """Lends sandboxes, each to one borrower at a time.

    A sandbox is made when it is first needed, and kept for the next borrower with whatever it has ready. One
    that broke is closed, and another takes its place.

    Args:
        make: Makes a sandbox.
        size: How many there may be.

    Raises:
        UsageError: A size below 1.
    """

    def __init__(self, make: Callable[[], Sandbox], *, size: int) -> None:
        if size < 1:
            raise UsageError(f"a pool of {size} sandboxes can do nothing", remedy="give it at least one")
        self.size = size
        self._make = make
        self._idle: list[Sandbox] = []
        self._lent: set[Sandbox] = set()
        self._slots = asyncio.Semaphore(size)
        self._closed = False

    async def __aenter__(self) -> SandboxPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Sandbox]:
        """Borrow a sandbox; waits, first come first served, while all of them are lent.

        Raises:
            UsageError: The pool is closed.
        """
        async with self._slots:
            if self._closed:
                raise UsageError("the pool of sandboxes is closed")
            # The one used last: what it has ready is still in memory.
            sandbox = self._idle.pop() if self._idle else self._make()
            self._lent.add(sandbox)
            sound = True
            try:
                yield sandbox
            except SandboxBroken:
                sound = False
                raise
            finally:
                self._lent.discard(sandbox)
                if sound and not self._closed:
                    self._idle.append(sandbox)
                else:
                    await sandbox.close()

    async def warm(self, request: RunRequest = NOTHING) -> None:
        """Have every sandbox ready before work comes.

        Args:
            request: One like those to come: a wall that is ready is so for certain mounts, modules, preloads.

        Raises:
            UsageError: The request is not acceptable, or the pool is closed.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        async with AsyncExitStack() as held:
            lent = [await held.enter_async_context(self.lease()) for _ in range(self.size)]
            answers = await asyncio.gather(
                *(sandbox.run(request) for sandbox in lent), return_exceptions=True
            )
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer

    async def map(
        self, requests: Iterable[RunRequest] | AsyncIterable[RunRequest]
    ) -> AsyncGenerator[RunResult, None]:
        """Run requests on all sandboxes at once; results come in the order of the requests.

        Of requests whose results nobody has taken yet there are never more than twice as many as sandboxes;
        the next is not even asked for. Leaving the iteration early ends what still runs: iterate within
        `contextlib.aclosing`.

        Args:
            requests: As many as you like; also without an end.

        Yields:
            One result for each.

        Raises:
            UsageError: A request is not acceptable, or the pool is closed.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        running: deque[asyncio.Task[RunResult]] = deque()
        try:
            async for request in _each(requests):
                running.append(asyncio.create_task(self._run(request)))
                while len(running) >= AHEAD * self.size:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, request: RunRequest) -> RunResult:
        async with self.lease() as sandbox:
            return await sandbox.run(request)

    async def close(self) -> None:
        """End everything, also what is lent; safe to call twice."""
        self._closed = True
        sandboxes = [*self._idle, *self._lent]
        self._idle.clear()
        for sandbox in sandboxes:
            await sandbox.close()


async def _each(requests: Iterable[RunRequest] | AsyncIterable[RunRequest]) -> AsyncIterator[RunRequest]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
        return
    for request in requests:
        yield request
