"""Choose the zygote that a request needs, keep zygotes for the next run, and start runs in them.

How a zygote is started is up to the back end.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from suture.errors import SandboxBroken, SandboxError
from suture.project.languages import Interpreter
from suture.sandbox import tuning
from suture.sandbox.contract import Mount, ProgramLimits, RunRequest
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.execution.request_encoding import encode_for_zygote
from suture.sandbox.zygote.zygote_process import Zygote

ZygoteStarter = Callable[[], Awaitable[Zygote]]


class ZygotePool:
    """Leases zygotes, each to one run at a time, and starts one if no suitable one is idle."""

    def __init__(self) -> None:
        self._idle: list[tuple[Hashable, Zygote]] = []
        self._busy_count: Counter[Hashable] = Counter()
        self._starting_count: Counter[Hashable] = Counter()
        self._long_count: Counter[Hashable] = Counter()
        self._start_duration_s: dict[Hashable, float] = {}
        # Set when a zygote may have become idle, and then replaced by a new event.
        self._changed = asyncio.Event()
        self._background_starts: set[asyncio.Task[None]] = set()
        self._prepared: dict[Hashable, list[asyncio.Task[None]]] = {}
        self._first_in_line: Counter[Hashable] = Counter()  # runs that wait for a prepared zygote
        self._closed = False

    @asynccontextmanager
    async def lease(
        self,
        key: Hashable,
        start: ZygoteStarter,
        *,
        expensive: bool = False,
        start_next: bool = False,
        may_be_long: bool = False,
    ) -> AsyncIterator[Zygote]:
        """Lease a zygote for one run.

        Args:
            key: What the zygote must have been started for.
            start: Starts such a zygote.
            expensive: Whether starting takes so long that waiting for a busy zygote is worthwhile.
            start_next: Whether to start the next one now, because this one serves one run only.
            may_be_long: Whether the run may be long, so that no other run should wait for its end. It waits itself only
                for a short run.

        Raises:
            SandboxBroken: The pool was closed in the meantime.
        """
        may_wait = expensive and not start_next
        zygote = self._take_idle(key) or await self._wait_for_prepared(key)
        if zygote is None and may_wait:
            zygote = await self._wait_for_idle(key, may_be_long)
        if zygote is None:
            zygote = await self._start(key, start)
        self._busy_count[key] += 1
        self._long_count[key] += may_be_long
        if start_next:
            self._start_next(key, start)
        try:
            yield zygote
        finally:
            self._busy_count[key] -= 1
            self._long_count[key] -= may_be_long
            if self._closed:
                self._notify_waiters()
                await zygote.shut_down()
            else:
                await self._put_back(key, zygote)

    def prepare(self, key: Hashable, start: ZygoteStarter, count: int) -> None:
        """Start zygotes for the next runs with this key, one after the other; each run waits until its own is ready."""
        if self._closed or key in self._prepared:
            return
        tasks: list[asyncio.Task[None]] = []
        self._prepared[key] = tasks
        for _ in range(count):
            tasks.append(self._begin_start(key, start, after=tasks[-1] if tasks else None))

    async def _wait_for_prepared(self, key: Hashable) -> Zygote | None:
        """Wait until a zygote is ready that was prepared, or another one becomes idle; `None` if none was prepared."""
        tasks = self._prepared.get(key)
        if not tasks:
            return None
        preparing, zygote = tasks.pop(0), None
        self._first_in_line[key] += 1
        try:
            while zygote is None and not preparing.done():
                await self._wait_for_change_or(preparing)
                zygote = self._take_idle(key)
        finally:
            self._first_in_line[key] -= 1
            if not preparing.done():
                tasks.insert(0, preparing)  # for the next run
            self._notify_waiters()
        return zygote or self._take_idle(key)

    def _begin_start(
        self, key: Hashable, start: ZygoteStarter, after: asyncio.Task[None] | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(self._start_in_background(key, start, after))
        self._background_starts.add(task)
        task.add_done_callback(self._background_starts.discard)
        return task

    async def _start(self, key: Hashable, start: ZygoteStarter) -> Zygote:
        """Start a zygote, and remember how long that takes."""
        began_s = time.monotonic()
        self._starting_count[key] += 1
        try:
            zygote = await start()
        finally:
            self._start_duration_s[key] = time.monotonic() - began_s
            self._starting_count[key] -= 1
            self._notify_waiters()
        if self._closed:
            await zygote.shut_down()
            raise SandboxBroken("the pool of zygotes was closed")
        return zygote

    def _start_next(self, key: Hashable, start: ZygoteStarter) -> None:
        """Start a zygote in the background, unless as many are ready or starting as are busy now."""
        if self._closed:
            return
        ready_count = sum(idle_key == key and zygote.is_usable for idle_key, zygote in self._idle)
        if self._starting_count[key] + ready_count < min(self._busy_count[key], tuning.MAX_IDLE_ZYGOTES):
            self._begin_start(key, start)

    async def _start_in_background(
        self, key: Hashable, start: ZygoteStarter, after: asyncio.Task[None] | None
    ) -> None:
        if after is not None:
            await asyncio.wait([after])
        try:
            await self._put_back(key, await self._start(key, start))
        except (SandboxNotStarted, SandboxError, OSError):
            return  # the caller that needs the next one tries again and sees the error

    async def _put_back(self, key: Hashable, zygote: Zygote) -> None:
        """Keep a zygote for the next run, and end those that are surplus or can serve no more runs."""
        self._idle.append((key, zygote))
        usable = [entry for entry in self._idle if entry[1].is_usable][-tuning.MAX_IDLE_ZYGOTES :]
        replaced = [entry for entry in self._idle if entry not in usable]
        self._idle = usable
        self._notify_waiters()
        await _end_all(replaced)

    async def _wait_for_idle(self, key: Hashable, may_be_long: bool) -> Zygote | None:
        """Wait for a zygote as long as a new one would take to start; return `None` if none becomes idle.

        The first few runs do not wait, so runs that were started concurrently do not run in sequence.
        """
        runs = self._starting_count[key] + self._busy_count[key]
        short_runs = runs - self._long_count[key]
        competing = runs if may_be_long and short_runs else short_runs
        if competing < tuning.MAX_UNQUEUED_EXPENSIVE_RUNS:
            return None
        while self._starting_count[key]:
            await self._changed.wait()
            if not self._first_in_line[key] and (zygote := self._take_idle(key)) is not None:
                return zygote
        try:
            async with asyncio.timeout(self._start_duration_s.get(key, 0.0)):
                while self._busy_count[key]:
                    await self._changed.wait()
                    if not self._first_in_line[key] and (zygote := self._take_idle(key)) is not None:
                        return zygote
        except TimeoutError:
            pass
        return None

    async def _wait_for_change_or(self, task: asyncio.Task[None]) -> None:
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([task, changing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changing.cancel()

    def _notify_waiters(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _take_idle(self, key: Hashable) -> Zygote | None:
        # The most recently used one first: its memory is warm, while the others age and are replaced.
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index][0] == key and self._idle[index][1].is_usable:
                return self._idle.pop(index)[1]
        return None

    async def close(self) -> None:
        """End all idle zygotes for good; busy ones end with their run. Safe to call twice."""
        self._closed = True
        for task in tuple(self._background_starts):
            task.cancel()
            await asyncio.wait([task])
        idle, self._idle = self._idle, []
        await _end_all(idle)


async def _end_all(entries: Sequence[tuple[Hashable, Zygote]]) -> None:
    outcomes = await asyncio.gather(*(zygote.shut_down() for _, zygote in entries), return_exceptions=True)
    for fault in filter(None, outcomes):
        raise fault


FORKED_VARIABLES = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Variables of Python that take effect in a forked interpreter too, because `become_module` applies them."""


@dataclass(frozen=True, kw_only=True)
class ZygoteSpec:
    """What a zygote is made ready for.

    Attributes:
        start: The interpreter and its options; the source of the boot program follows.
        modules: Modules that it has imported, as in a request.
        preload: Code that it has run.
    """

    start: tuple[str, ...]
    modules: tuple[tuple[str, bytes], ...] = ()
    preload: str = ""


def preload_limit_command(limits: ProgramLimits) -> tuple[str, ...]:
    """Return the start of a command that limits what a project's environment may do before the first run.

    The environment may contain untrusted code. A run can only lower these limits, so they are at least as
    high as the run's own `limits`, and CPU time has no hard limit.
    """
    space = max(limits.memory_mb, tuning.PRELOAD_MB) << 20
    processes = min(max(limits.processes, tuning.MIN_PRELOAD_PROCESSES), tuning.MAX_PRELOAD_PROCESSES)
    # 300 s of CPU time as a soft limit: chosen by judgement; not measured.
    return ("/usr/bin/prlimit", f"--as={space}", f"--nproc={processes}", "--cpu=300:", "--core=0", "--")


def _identify_mounts(mounts: Sequence[Mount]) -> tuple[Hashable, ...]:
    """Return the mounts with device and inode, so that an environment that was created again differs from the old one.

    Raises:
        SandboxNotStarted: The source of a mount does not exist.
    """
    statuses = ((mount, os.stat(mount.source)) for mount in mounts)  # noqa: PTH116 - does not block
    try:
        return tuple((mount, status.st_dev, status.st_ino) for mount, status in statuses)
    except OSError as fault:
        raise SandboxNotStarted(str(fault)) from fault


class WarmRunner:
    """Runs requests in zygotes.

    Args:
        own_interpreter: The interpreter for Suture's own programs.
    """

    def __init__(self, own_interpreter: Interpreter) -> None:
        self._own_interpreter = own_interpreter
        self._zygotes = ZygotePool()
        self._failed_preloads: set[ZygoteSpec] = set()

    async def close(self) -> None:
        """End all idle zygotes. Safe to call twice."""
        old_pool, self._zygotes = self._zygotes, ZygotePool()  # a run that starts after this still works
        await old_pool.close()

    def prepare(
        self,
        request: RunRequest,
        mounts: Sequence[Mount],
        start: Callable[[Sequence[Mount], ZygoteSpec], Awaitable[Zygote]],
        count: int,
        *,
        size_key: Hashable = None,
    ) -> None:
        """Start the zygotes that so many runs of similar requests will need; other arguments are as for `start_run`.

        What cannot be started is an error only of the run that needs it.
        """
        spec = next(self._suitable_specs(request))
        with suppress(SandboxNotStarted):  # a folder that is to be shown does not exist
            key = (size_key, _identify_mounts(mounts), spec)
            self._zygotes.prepare(key, partial(start, mounts, spec), count)

    @asynccontextmanager
    async def start_run(
        self,
        request: RunRequest,
        mounts: Sequence[Mount],
        start: Callable[[Sequence[Mount], ZygoteSpec], Awaitable[Zygote]],
        *,
        size_key: Hashable = None,
        start_next: bool = False,
        conversation: bool = False,
    ) -> AsyncIterator[SupervisedRun]:
        """Start a run in a child of a zygote.

        Args:
            mounts: What to show, as planned.
            start: Starts a zygote with these mounts and this spec.
            size_key: The sizes with which a zygote must have been started, if they are not the run's own.
            start_next: Whether each zygote serves one run, so that the next one is started already.
            conversation: Whether more than the request's stdin will be sent to the program.

        Raises:
            SandboxNotStarted: The program that builds the sandbox failed.
            SandboxBroken: The zygote neither became ready nor ended.
        """
        mounts_key = _identify_mounts(mounts)
        zygotes = self._zygotes
        for spec in self._suitable_specs(request):
            encoded = encode_for_zygote(request, forked=bool(spec.preload))
            async with AsyncExitStack() as stack:
                lease = zygotes.lease(
                    (size_key, mounts_key, spec),
                    partial(start, mounts, spec),
                    expensive=bool(spec.preload),
                    start_next=start_next,
                    may_be_long=conversation,
                )
                try:
                    zygote = await stack.enter_async_context(lease)
                except (SandboxNotStarted, SandboxBroken):
                    if not spec.preload:
                        raise
                    self._failed_preloads.add(spec)
                    continue
                total_memory_mb = request.limits.total_memory_mb
                running = (
                    await zygote.start_conversation(encoded, total_memory_mb)
                    if conversation
                    else zygote.start_run(encoded, total_memory_mb, stdin_closed=not request.stdin)
                )
                del encoded  # it holds all files of the project, and the run may be long
                yield running
                return

    def _suitable_specs(self, request: RunRequest) -> Iterator[ZygoteSpec]:
        """Yield the specs that may serve a request, best first."""
        start = (*preload_limit_command(request.limits), *request.argv[:1], "-c")
        preloaded = ZygoteSpec(start=start, preload=request.preload)
        python_variables = {name for name in request.env if name.startswith("PYTHON")}
        # A forked interpreter can do the work of `python -m MODULE`, but ignores variables that Python reads at its
        # start.
        if (
            request.preload
            and request.argv[1:2] == ("-m",)
            and len(request.argv) > 2
            and python_variables <= FORKED_VARIABLES
            and preloaded not in self._failed_preloads
        ):
            yield preloaded
        bare_start = (self._own_interpreter.executable, "-I", "-S", "-B", "-c")
        yield ZygoteSpec(start=bare_start, modules=tuple(request.modules.items()))
