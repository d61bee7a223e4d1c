"""What backends have in common that carry zygotes to places of their own: containers, machines elsewhere."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import ClassVar

from suture.errors import SandboxUnavailable
from suture.project.languages import Interpreter
from suture.sandbox.contract import Mount, ProgramLimits, RunRequest, StartMode
from suture.sandbox.execution.base_sandbox import ProgramSandbox, try_sandbox
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.mounts.planning import plan_mounts_cached
from suture.sandbox.zygote.zygote_pool import WarmRunner, ZygoteSpec
from suture.sandbox.zygote.zygote_process import Zygote


class ZygoteSandbox(ProgramSandbox):
    """What backends have in common whose zygotes wait in places of their own.

    Args:
        own: The interpreter for our own programs, in such a place.
        own_mounts: What of it must be shown.
        mode: `auto` tries warm first; `spare` and `cold` give each program a place of its own, `spare` with
            the next one made ready meanwhile.
    """

    spare_by_default: ClassVar[bool]
    """Whether places are made ready ahead where warm ones cannot be had."""

    def __init__(self, own: Interpreter, interpreter_mounts: tuple[Mount, ...], mode: str) -> None:
        super().__init__()
        self._own = own
        self._interpreter_mounts = interpreter_mounts
        self._zygotes = WarmRunner(own)
        self._requested_mode = mode
        self._mode: StartMode = "warm"
        self._reason = ""
        self._chosen = False
        self._choosing = asyncio.Lock()

    @abstractmethod
    async def prepare(self) -> None:
        """Find what the places are made with.

        Raises:
            SandboxUnavailable: It is not here.
        """

    @abstractmethod
    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], kind: ZygoteSpec
    ) -> Zygote:
        """Make a place and start a zygote in it.

        Args:
            limits: Of the run where there are no namespaces; else only `total_memory_mb` counts.
            namespaces: Whether the zygote makes new namespaces for each run; else it serves one.
            mounts: What to show, as planned.
            kind: What the zygote is to be made ready for.

        Raises:
            SandboxNotStarted: The zygote could not be started.
        """

    @abstractmethod
    def remedy(self, complaint: str) -> str:
        """What to do where no zygote starts.

        Args:
            complaint: What went wrong.
        """

    async def choose(self) -> None:
        """Find out what works here; tried once.

        Raises:
            SandboxUnavailable: Nothing does.
        """
        async with self._choosing:
            if not self._chosen:
                try:
                    await self.prepare()
                    await self._try()
                except BaseException:
                    await self.release()
                    raise
                self._chosen = True

    async def _try(self) -> None:
        complaint = "it was asked for"
        if self._requested_mode in ("auto", "warm"):
            complaint = await try_sandbox(self._begin_bare)
            if complaint and self._requested_mode == "warm":
                raise SandboxUnavailable(
                    f"no warm {self.name}: {complaint}", remedy="set sandbox.mode = 'auto'"
                )
        if complaint:
            spare = self._requested_mode == "spare" or (
                self._requested_mode == "auto" and self.spare_by_default
            )
            self._mode, self._reason = ("spare" if spare else "cold"), complaint
            complaint = await try_sandbox(self._begin_bare)
        if complaint:
            raise SandboxUnavailable(f"no {self.name} works here: {complaint}", remedy=self.remedy(complaint))

    async def release(self) -> None:
        """End every zygote and its place; safe to call twice."""
        await self._zygotes.close()

    @asynccontextmanager
    async def start_run(
        self, request: RunRequest, *, conversation: bool = False
    ) -> AsyncIterator[SupervisedRun]:
        """See `ProgramSandbox.start_run`."""
        mounts = plan_mounts_cached((*self._interpreter_mounts, *request.mounts))
        await self.choose()
        async with self._begin(request, mounts, conversation) as running:
            yield running

    def start_conversation(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        """See `ProgramSandbox.start_conversation`."""
        return self.start_run(request, conversation=True)

    def _begin_bare(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        return self._begin(request, self._interpreter_mounts)

    @asynccontextmanager
    async def _begin(
        self, request: RunRequest, mounts: Sequence[Mount], conversation: bool = False
    ) -> AsyncIterator[SupervisedRun]:
        limits, warm = request.limits, self._mode == "warm"
        place: tuple[Hashable, ...] = (limits.total_memory_mb,)
        if not warm:
            place = (limits.total_memory_mb, limits.disk_mb, limits.inodes)
        start = partial(self.start, limits, warm)
        async with self._zygotes.start_run(
            request, mounts, start, place=place, ahead=self._mode == "spare", conversation=conversation
        ) as running:
            yield running
