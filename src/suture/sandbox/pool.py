"""A pool of sandboxes: each is lent to one borrower at a time, and work waits until one is free."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from suture.errors import SandboxBroken, UsageError
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult, Sandbox
from suture.sandbox.tuning import ITEMS_IN_FLIGHT_PER_SANDBOX

WorkItem = TypeVar("WorkItem")
Outcome = TypeVar("Outcome")


class SandboxPool:
    """Lends sandboxes, each to one borrower at a time.

    A sandbox is created when it is first needed, and kept with its warm state for the next borrower. A
    sandbox that broke is closed when it is returned, even if the borrower caught the exception, and another
    takes its place.

    Args:
        create: Creates one sandbox; called once for each sandbox of the pool.
        size: Maximum number of sandboxes.

    Raises:
        UsageError: A size below 1.
    """

    def __init__(self, create: Callable[[], Sandbox], *, size: int) -> None:
        if size < 1:
            raise UsageError(f"a pool cannot have {size} sandboxes", remedy="use a size of at least 1")
        self.size = size
        self._create = create
        self._idle: list[_PooledSandbox] = []
        self._lent: set[_PooledSandbox] = set()
        self._slots = asyncio.Semaphore(size)
        self._closed = False

    async def __aenter__(self) -> SandboxPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Sandbox]:
        """Borrow a sandbox. Waits, first come first served, while all of them are lent.

        Raises:
            UsageError: The pool is closed.
        """
        async with self._slots:
            if self._closed:
                raise UsageError("the sandbox pool is closed")
            # The most recently used sandbox first: its warm state is still in memory.
            sandbox = self._idle.pop() if self._idle else _PooledSandbox(self._create())
            self._lent.add(sandbox)
            try:
                yield sandbox
            finally:
                self._lent.discard(sandbox)
                if sandbox.is_broken or self._closed:
                    await sandbox.close()
                else:
                    self._idle.append(sandbox)

    async def map(
        self,
        work: Callable[[Sandbox, WorkItem], Awaitable[Outcome]],
        items: Iterable[WorkItem] | AsyncIterable[WorkItem],
    ) -> AsyncGenerator[Outcome | SandboxBroken, None]:
        """Do the same work on many items, on all sandboxes at once. Results come in the order of the items.

        At most `ITEMS_IN_FLIGHT_PER_SANDBOX` items per sandbox are in progress or wait for the caller; the
        next item is not even requested. Leaving the iteration early cancels what still runs, so iterate
        within `contextlib.aclosing`.

        Args:
            work: Called with an item and a sandbox that nothing else uses in the meantime. Whatever it raises ends
                the iteration, except `SandboxBroken`: an item that breaks its sandbox does not affect the
                others.
            items: The items, possibly without end.

        Yields:
            The result of each item, or the `SandboxBroken` that it caused.

        Raises:
            UsageError: The pool is closed.
        """
        running: deque[asyncio.Task[Outcome | SandboxBroken]] = deque()
        try:
            async for item in _iterate(items):
                running.append(asyncio.create_task(self._run_item(work, item)))
                while len(running) >= ITEMS_IN_FLIGHT_PER_SANDBOX * self.size:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run_item(
        self, work: Callable[[Sandbox, WorkItem], Awaitable[Outcome]], item: WorkItem
    ) -> Outcome | SandboxBroken:
        async with self.lease() as sandbox:
            try:
                return await work(sandbox, item)
            except SandboxBroken as fault:
                return fault

    async def close(self) -> None:
        """Close all sandboxes, also those that are lent. Safe to call twice."""
        self._closed = True
        sandboxes = [*self._idle, *self._lent]
        self._idle.clear()
        for sandbox in sandboxes:
            await sandbox.close()


class _PooledSandbox:
    """A sandbox that remembers whether it broke, because its borrower may handle the exception itself."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name = sandbox.name
        self.is_broken = False
        self._sandbox = sandbox
        self._close_callbacks: list[Callable[[], Awaitable[None]]] = []

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._close_callbacks.append(callback)

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        try:
            return await self._sandbox.run(request)
        except SandboxBroken:
            self.is_broken = True
            raise

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        try:
            async with self._sandbox.open(request) as channel:
                yield channel
        except SandboxBroken:
            self.is_broken = True
            raise

    async def close(self) -> None:
        while self._close_callbacks:
            await self._close_callbacks.pop()()
        await self._sandbox.close()


async def _iterate(items: Iterable[WorkItem] | AsyncIterable[WorkItem]) -> AsyncIterator[WorkItem]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item
