"""Which zygote a request needs, and runs in such zygotes; how one is started is the backend's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from suture.errors import SandboxBroken
from suture.project.languages import Interpreter
from suture.sandbox.contract import Mount, ProgramLimits, RunRequest
from suture.sandbox.runs.packing import pack_for_zygote
from suture.sandbox.runs.program import SandboxNotStarted
from suture.sandbox.runs.running import Running
from suture.sandbox.zygote.process import Zygote
from suture.sandbox.zygote.zygote_pool import ZygotePool

FORKED_VARIABLES = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Settings of an interpreter that can still be made after it has started."""
PRELOAD_MB = 2048
"""Memory for a zygote until its first run: of each process, and where there is a control group of all."""
PRELOAD_PROCESSES, MOST_PROCESSES = 256, 4096


@dataclass(frozen=True, kw_only=True)
class ZygoteKind:
    """What a zygote has been made ready for.

    Attributes:
        start: The interpreter and its options; the boot program is its last word.
        modules: Modules that it has imported, as a request brings them.
        preload: Code that it has run.
    """

    start: tuple[str, ...]
    modules: tuple[tuple[str, bytes], ...] = ()
    preload: str = ""


def bare_kind(own: Interpreter, request: RunRequest) -> ZygoteKind:
    """The kind that can serve any request."""
    start = (own.executable, "-I", "-S", "-B", "-c")
    return ZygoteKind(start=start, modules=tuple(request.modules.items()))


def preload_limits(limits: ProgramLimits) -> tuple[str, ...]:
    """Words in front of a command that limit what a project's environment may do before the first run.

    It may hold code that nobody has read. A run can only lower what is set here, so what is higher for it
    is as high here, and CPU time has no hard limit.

    Args:
        limits: What the run may use.
    """
    space = max(limits.memory_mb, PRELOAD_MB) << 20
    processes = min(max(limits.processes, PRELOAD_PROCESSES), MOST_PROCESSES)
    return ("/usr/bin/prlimit", f"--as={space}", f"--nproc={processes}", "--cpu=300:", "--core=0", "--")


class WarmRuns:
    """Runs requests in zygotes that wait behind walls.

    Args:
        own: The interpreter for our own programs.
    """

    def __init__(self, own: Interpreter) -> None:
        self._own = own
        self._zygotes = ZygotePool()
        self._not_preloaded: set[ZygoteKind] = set()

    async def close(self) -> None:
        """End what waits; safe to call twice."""
        closing, self._zygotes = self._zygotes, ZygotePool()  # for those who run something after all
        await closing.close()

    @asynccontextmanager
    async def begin(
        self,
        request: RunRequest,
        mounts: Sequence[Mount],
        start: Callable[[Sequence[Mount], ZygoteKind], Awaitable[Zygote]],
        *,
        place: Hashable = None,
        ahead: bool = False,
        conversation: bool = False,
    ) -> AsyncIterator[Running]:
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
            packed = pack_for_zygote(request, forked=bool(kind.preload))
            async with AsyncExitStack() as held:
                fresh = partial(start, mounts, kind)
                try:
                    zygote = await held.enter_async_context(
                        zygotes.lease(
                            (place, key, kind),
                            fresh,
                            dear=bool(kind.preload),
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
                    await zygote.begin_conversation(packed, most)
                    if conversation
                    else zygote.begin(packed, most, mute=not request.stdin)
                )
                return

    def _kinds(self, request: RunRequest) -> Iterator[ZygoteKind]:
        """What may serve a request, best first."""
        start = (*preload_limits(request.limits), *request.argv[:1], "-c")
        preloaded = ZygoteKind(start=start, preload=request.preload)
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
