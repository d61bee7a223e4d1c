"""Several walls at once: lent one by one, and never more work taken on than they can do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from suture.errors import SandboxBroken, UsageError
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult, Sandbox

AHEAD = 2
"""Items under way for each sandbox, so that a slow one does not leave the others idle."""
NOTHING = RunRequest(python="")
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class SandboxPool:
    """Lends sandboxes, each to one borrower at a time.

    A sandbox is made when it is first needed, and kept for the next borrower with whatever it has ready. One
    that broke is closed when it comes back, whoever has caught the fault, and another takes its place.

    Args:
        make: Makes one sandbox; called again for each of the pool.
        size: How many there may be.

    Raises:
        UsageError: A size below 1.
    """

    def __init__(self, make: Callable[[], Sandbox], *, size: int) -> None:
        if size < 1:
            raise UsageError(f"a pool of {size} sandboxes can do nothing", remedy="give it at least one")
        self.size = size
        self._make = make
        self._idle: list[_Lent] = []
        self._lent: set[_Lent] = set()
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
            sandbox = self._idle.pop() if self._idle else _Lent(self._make())
            self._lent.add(sandbox)
            try:
                yield sandbox
            finally:
                self._lent.discard(sandbox)
                if not (sandbox.broke or self._closed):
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
        self,
        work: Callable[[Sandbox, Item], Awaitable[Answer]],
        items: Iterable[Item] | AsyncIterable[Item],
    ) -> AsyncGenerator[Answer | SandboxBroken, None]:
        """Do the same work on many items, on all sandboxes at once; answers come in the order of the items.

        Of items whose answers nobody has taken yet there are never more than twice as many as sandboxes; the
        next is not even asked for. Leaving the iteration early ends what still runs: iterate within
        `contextlib.aclosing`.

        Args:
            work: Called with a sandbox, for nobody else meanwhile, and an item. Whatever it raises ends the
                iteration, but for `SandboxBroken`: one item that fells its wall costs the others nothing.
            items: As many as you like; also without an end.

        Yields:
            One answer for each, or how the wall broke under it.

        Raises:
            UsageError: The pool is closed.
        """
        running: deque[asyncio.Task[Answer | SandboxBroken]] = deque()
        try:
            async for item in _each(items):
                running.append(asyncio.create_task(self._done(work, item)))
                while len(running) >= AHEAD * self.size:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _done(
        self, work: Callable[[Sandbox, Item], Awaitable[Answer]], item: Item
    ) -> Answer | SandboxBroken:
        async with self.lease() as sandbox:
            try:
                return await work(sandbox, item)
            except SandboxBroken as fault:
                return fault

    async def close(self) -> None:
        """End everything, also what is lent; safe to call twice."""
        self._closed = True
        sandboxes = [*self._idle, *self._lent]
        self._idle.clear()
        for sandbox in sandboxes:
            await sandbox.close()


class _Lent:
    """A sandbox that remembers whether it broke: its borrower may have good use for the fault."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name = sandbox.name
        self.broke = False
        self._sandbox = sandbox
        self._at_close: list[Callable[[], Awaitable[None]]] = []

    def add_close_callback(self, act: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._at_close.append(act)

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        try:
            return await self._sandbox.run(request)
        except SandboxBroken:
            self.broke = True
            raise

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        try:
            async with self._sandbox.open(request) as channel:
                yield channel
        except SandboxBroken:
            self.broke = True
            raise

    async def close(self) -> None:
        while self._at_close:
            await self._at_close.pop()()
        await self._sandbox.close()


async def _each(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item
