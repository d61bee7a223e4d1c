"""The base class of back ends whose zygotes live in containers or on remote machines."""

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
from suture.sandbox.execution.base_sandbox import BaseSandbox, try_sandbox
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.mounts.mount_planning import plan_mounts_cached
from suture.sandbox.zygote.zygote_pool import WarmRunner, ZygoteSpec
from suture.sandbox.zygote.zygote_process import Zygote


class ZygoteSandbox(BaseSandbox):
    """A sandbox whose zygotes live in places of their own: one container or remote machine for each.

    Args:
        own_interpreter: The interpreter for Suture's own programs in such a place.
        interpreter_mounts: The mounts that the interpreter needs.
        mode: `auto` tries warm first. `spare` and `cold` give each program its own place; `spare` prepares the
            next one in the meantime.
    """

    spare_by_default: ClassVar[bool]
    """Whether places are prepared ahead if warm ones are not possible."""

    def __init__(
        self, own_interpreter: Interpreter, interpreter_mounts: tuple[Mount, ...], mode: str
    ) -> None:
        super().__init__()
        self._own_interpreter = own_interpreter
        self._interpreter_mounts = interpreter_mounts
        self._zygotes = WarmRunner(own_interpreter)
        self._requested_mode = mode
        self._mode: StartMode = "warm"
        self._reason = ""
        self._is_chosen = False
        self._choosing = asyncio.Lock()

    @abstractmethod
    async def prepare(self) -> None:
        """Find what creates places, such as the container engine.

        Raises:
            SandboxUnavailable: It is not available here.
        """

    @abstractmethod
    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], spec: ZygoteSpec
    ) -> Zygote:
        """Create a place and start a zygote in it.

        Args:
            limits: The run's limits if there are no namespaces; otherwise only `total_memory_mb` matters.
            namespaces: Whether the zygote makes new namespaces for each run; otherwise it serves one run.
            mounts: What to show, as planned.
            spec: What the zygote is made ready for.

        Raises:
            SandboxNotStarted: The zygote could not be started.
        """

    @abstractmethod
    def remedy(self, failure: str) -> str:
        """Return what the user can do about the message `failure`, with which no zygote starts."""

    async def choose_mode(self) -> None:
        """Find out what works here. It is tried once.

        Raises:
            SandboxUnavailable: Nothing works.
        """
        async with self._choosing:
            if not self._is_chosen:
                try:
                    await self.prepare()
                    await self._try_modes()
                except BaseException:
                    await self.release()
                    raise
                self._is_chosen = True

    async def _try_modes(self) -> None:
        """Choose the first requested mode in which a trial run works."""
        is_auto = self._requested_mode == "auto"
        reason = "set by sandbox.mode"
        if is_auto or self._requested_mode == "warm":
            reason = await try_sandbox(self._start_trial_run)
            if not reason:
                return
            if not is_auto:
                raise SandboxUnavailable(f"no warm {self.name}: {reason}", remedy="set sandbox.mode = 'auto'")
        is_spare = self._requested_mode == "spare" or (is_auto and self.spare_by_default)
        self._mode, self._reason = ("spare" if is_spare else "cold"), reason
        failure = await try_sandbox(self._start_trial_run)
        if failure:
            raise SandboxUnavailable(f"no {self.name} works here: {failure}", remedy=self.remedy(failure))

    async def release(self) -> None:
        """End every zygote and its place. Safe to call twice."""
        await self._zygotes.close()

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        """See `contract.SupportsPreparation`."""
        await self.choose_mode()
        if self._mode == "warm":
            mounts = plan_mounts_cached((*self._interpreter_mounts, *request.mounts))
            start = partial(self.start, request.limits, True)
            self._zygotes.prepare(request, mounts, start, count, size_key=(request.limits.total_memory_mb,))

    @asynccontextmanager
    async def start_run(
        self, request: RunRequest, *, conversation: bool = False
    ) -> AsyncIterator[SupervisedRun]:
        """See `BaseSandbox.start_run`."""
        mounts = plan_mounts_cached((*self._interpreter_mounts, *request.mounts))
        await self.choose_mode()
        async with self._start(request, mounts, conversation) as running:
            yield running

    def _start_trial_run(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        return self._start(request, self._interpreter_mounts)

    def _start(
        self, request: RunRequest, mounts: Sequence[Mount], conversation: bool = False
    ) -> AbstractAsyncContextManager[SupervisedRun]:
        limits, is_warm = request.limits, self._mode == "warm"
        size_key: tuple[Hashable, ...] = (limits.total_memory_mb,)
        if not is_warm:  # the place itself has the folders' sizes; a warm zygote's child mounts its own
            size_key = (limits.total_memory_mb, limits.disk_mb, limits.inodes)
        return self._zygotes.start_run(
            request,
            mounts,
            partial(self.start, limits, is_warm),
            size_key=size_key,
            start_next=self._mode == "spare",
            conversation=conversation,
        )
