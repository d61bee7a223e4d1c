"""Keeping zygotes for the next run."""
# FIXME doc of sandbox/zygote/warm: """Which zygote a request needs, and runs in such zygotes; how one is started is the backend's."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from suture.errors import SandboxBroken, SandboxError
from suture.project.languages import Interpreter
from suture.sandbox.contract import Mount, ProgramLimits, RunRequest
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.execution.request_encoding import encode_for_zygote
from suture.sandbox.tuning import (
    MAX_IDLE_ZYGOTES,
    MAX_PRELOAD_PROCESSES,
    MAX_UNQUEUED_EXPENSIVE_RUNS,
    MIN_PRELOAD_PROCESSES,
    PRELOAD_MB,
)
from suture.sandbox.zygote.zygote_process import Zygote


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
        expensive: bool = False,
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
        waits = expensive and not ahead and not lasting
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
                await zygote.shut_down()
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
            await zygote.shut_down()
            raise SandboxBroken("the keeper of zygotes was closed")
        return zygote

    def _start_ahead(self, key: Hashable, start: Callable[[], Awaitable[Zygote]]) -> None:
        """Have as many ready as are at work now, so that as many can be served at once next time."""
        if self._closed:
            return
        ready = self._starting[key] + sum(at == key and zygote.usable for at, zygote in self._idle)
        if ready < min(self._at_work[key], MAX_IDLE_ZYGOTES):
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
        usable = [entry for entry in self._idle if entry[1].usable][-MAX_IDLE_ZYGOTES:]
        spent = [entry for entry in self._idle if entry not in usable]
        self._idle = usable
        self._wake_waiters()
        await _end_all(spent)

    async def _wait(self, key: Hashable) -> Zygote | None:
        """One that gets free about as soon as another could be started; `None` where none does.

        The first few are started without such a wait: what runs at once is not made to run in turn.
        """
        if self._starting[key] + self._at_work[key] - self._lasting[key] < MAX_UNQUEUED_EXPENSIVE_RUNS:
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
    ended = await asyncio.gather(*(zygote.shut_down() for _, zygote in entries), return_exceptions=True)
    for fault in filter(None, ended):
        raise fault


FORKED_VARIABLES = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Settings of an interpreter that can still be made after it has started."""


@dataclass(frozen=True, kw_only=True)
class ZygoteSpec:
    """What a zygote has been made ready for.

    Attributes:
        start: The interpreter and its options; the boot program is its last word.
        modules: Modules that it has imported, as a request brings them.
        preload: Code that it has run.
    """

    start: tuple[str, ...]
    modules: tuple[tuple[str, bytes], ...] = ()
    preload: str = ""


def bare_kind(own: Interpreter, request: RunRequest) -> ZygoteSpec:
    """The kind that can serve any request."""
    start = (own.executable, "-I", "-S", "-B", "-c")
    return ZygoteSpec(start=start, modules=tuple(request.modules.items()))


def preload_limits(limits: ProgramLimits) -> tuple[str, ...]:
    """Words in front of a command that limit what a project's environment may do before the first run.

    It may hold code that nobody has read. A run can only lower what is set here, so what is higher for it
    is as high here, and CPU time has no hard limit.

    Args:
        limits: What the run may use.
    """
    space = max(limits.memory_mb, PRELOAD_MB) << 20
    processes = min(max(limits.processes, MIN_PRELOAD_PROCESSES), MAX_PRELOAD_PROCESSES)
    return ("/usr/bin/prlimit", f"--as={space}", f"--nproc={processes}", "--cpu=300:", "--core=0", "--")


class WarmRunner:
    """Runs requests in zygotes that wait behind walls.

    Args:
        own: The interpreter for our own programs.
    """

    def __init__(self, own: Interpreter) -> None:
        self._own = own
        self._zygotes = ZygotePool()
        self._not_preloaded: set[ZygoteSpec] = set()

    async def close(self) -> None:
        """End what waits; safe to call twice."""
        closing, self._zygotes = self._zygotes, ZygotePool()  # for those who run something after all
        await closing.close()

    @asynccontextmanager
    async def start_run(
        self,
        request: RunRequest,
        mounts: Sequence[Mount],
        start: Callable[[Sequence[Mount], ZygoteSpec], Awaitable[Zygote]],
        *,
        place: Hashable = None,
        ahead: bool = False,
        conversation: bool = False,
    ) -> AsyncIterator[SupervisedRun]:
        """A fork of a process that waits behind a wall.

        Args:
            request: What to run.
            mounts: What to show, as planned.
            start: Starts a zygote with these mounts, of this kind.
            place: What else a zygote must have been started for.
            ahead: Whether each serves one run, so that the next is started already.
            conversation: Whether more will be said to it than the request's stdin.

        Raises:
            SandboxNotStarted: The wall's builder gave up.
            SandboxBroken: What should stand did neither stand nor end.
        """
        # With inodes in the key, an environment that was made anew is not taken for the old one.
        facts = ((mount, os.stat(mount.source)) for mount in mounts)  # noqa: PTH116 - no disk is waited for
        try:
            key = tuple((mount, status.st_dev, status.st_ino) for mount, status in facts)
        except OSError as fault:
            raise SandboxNotStarted(str(fault)) from fault
        zygotes = self._zygotes
        for kind in self._kinds(request):
            packed = encode_for_zygote(request, forked=bool(kind.preload))
            async with AsyncExitStack() as held:
                fresh = partial(start, mounts, kind)
                try:
                    zygote = await held.enter_async_context(
                        zygotes.lease(
                            (place, key, kind),
                            fresh,
                            expensive=bool(kind.preload),
                            ahead=ahead,
                            lasting=conversation,
                        )
                    )
                except (SandboxNotStarted, SandboxBroken):
                    if not kind.preload:
                        raise
                    self._not_preloaded.add(kind)
                    continue
                most = request.limits.total_memory_mb
                yield (
                    await zygote.start_conversation(packed, most)
                    if conversation
                    else zygote.start_run(packed, most, stdin_closed=not request.stdin)
                )
                return

    def _kinds(self, request: RunRequest) -> Iterator[ZygoteSpec]:
        """What may serve a request, best first."""
        start = (*preload_limits(request.limits), *request.argv[:1], "-c")
        preloaded = ZygoteSpec(start=start, preload=request.preload)
        variables = {name for name in request.env if name.startswith("PYTHON")}
        if (
            request.preload
            and request.argv[1:2] == ("-m",)
            and len(request.argv) > 2
            and variables <= FORKED_VARIABLES
            and preloaded not in self._not_preloaded
        ):
            yield preloaded
        yield bare_kind(self._own, request)
