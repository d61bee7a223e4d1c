"""The back end `unsafe-subprocess`: a plain process with resource limits and no isolation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from suture.core.temporary_folders import temporary_folder
from suture.errors import StorageError, UsageError
from suture.sandbox.contract import BOX, LIMIT_NAMES, Capabilities, RunRequest, RunResult
from suture.sandbox.execution.base_sandbox import BaseSandbox, FrameChannel, make_room, system_error
from suture.sandbox.execution.process import ColdRun, SupervisedRun, read_source
from suture.sandbox.execution.request_encoding import as_program_request, check_and_flatten, encode_request
from suture.sandbox.runtimes.discovery import get_own_interpreter
from suture.sandbox.tuning import REAPER_KILL_TIMEOUT_S

WARNING = (
    "suture: no sandbox (unsafe-subprocess): untrusted code runs as you, "
    "with access to your files, your keys and your network"
)
NOT_ENFORCED = {"processes", "disk_mb", "inodes"}
"""The kernel counts processes per user, not per program; and the folders are on the disk, without a size of
their own."""
UNLIMITED_PROCESSES = 1 << 22
"""`PID_MAX_LIMIT` of Linux, in effect no limit: a lower one would also affect the user's other processes."""


def _print_notice() -> None:
    print(WARNING, file=sys.stderr)


class UnsafeSubprocess:
    """Runs programs without isolation; see `contract.Sandbox`.

    Files are in a temporary folder, and wherever a request names `BOX`, that folder is put in its place.
    Limits on time, memory and output hold, and every process ends with its program.

    Args:
        notice: Warns the user; called once for each sandbox.
    """

    name = "unsafe-subprocess"

    def __init__(self, *, notice: Callable[[], None] = _print_notice) -> None:
        self._notice: Callable[[], None] | None = notice
        self._runs: set[_SingleRun] = set()

    async def capabilities(self) -> Capabilities:
        """Return what it can do here. It isolates nothing."""
        return Capabilities(
            level="none",
            mode="cold",
            limits=frozenset(set(LIMIT_NAMES) - NOT_ENFORCED),
            memory_enforcement="sampler",
            identity="no sandbox",
            reason="set by sandbox.backend",
        )

    async def run(self, request: RunRequest) -> RunResult:
        """See `contract.Sandbox.run`."""
        async with self._open_single_run(request) as single_run:
            return single_run.translate_result(await single_run.run(single_run.translate_request(request)))

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[FrameChannel]:
        """See `contract.Sandbox.open`."""
        async with (
            self._open_single_run(request) as single_run,
            single_run.open(single_run.translate_request(request)) as channel,
        ):
            yield channel

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        for single_run in tuple(self._runs):
            await single_run.close()

    @asynccontextmanager
    async def _open_single_run(self, request: RunRequest) -> AsyncIterator[_SingleRun]:
        check_and_flatten(replace(request, limits=make_room(request)))
        for mount in request.mounts:
            if mount.source != mount.target:
                raise UsageError(
                    f"{mount.target!r} cannot be mounted: without a sandbox, every path is the host's own"
                )
        if self._notice is not None:
            self._notice()
            self._notice = None
        stack = ExitStack()
        try:
            folder = await asyncio.to_thread(stack.enter_context, _make_folder())
        except (OSError, StorageError) as fault:
            raise system_error(f"{self.name} cannot make a folder for a program", fault) from fault
        single_run = _SingleRun(folder)
        self._runs.add(single_run)
        try:
            yield single_run
        finally:
            self._runs.discard(single_run)
            await asyncio.to_thread(stack.close)


class ReapedRun(ColdRun):
    """A run that is ended by its reaper, which alone can find all descendants; see `reaper.py`."""

    _delayed_kill: asyncio.TimerHandle | None = None

    def kill(self) -> None:
        """Tell the reaper to end everything of this run now. It is killed if it does not manage that in time."""
        self.close_lifeline()
        if self._delayed_kill is None:
            self._delayed_kill = asyncio.get_running_loop().call_later(REAPER_KILL_TIMEOUT_S, super().kill)

    def cancel_kill(self) -> None:
        """Cancel the delayed kill, because everything has ended."""
        if self._delayed_kill is not None:
            self._delayed_kill.cancel()


class _SingleRun(BaseSandbox):
    """One program in its own folder."""

    name: str = UnsafeSubprocess.name

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._box, self._tmp = folder / "box", folder / "tmp"

    def translate_request(self, request: RunRequest) -> RunRequest:
        """Return a request that names this folder in place of `BOX`."""
        box = str(self._box)
        environment = {"HOME": box, "TMPDIR": str(self._tmp)}
        environment |= {name: value.replace(BOX, box) for name, value in request.env.items()}
        translated = replace(
            request,
            argv=tuple(word.replace(BOX, box) for word in request.argv),
            python=None if request.python is None else request.python.replace(BOX, box),
            preload="",
            stdin=request.stdin.replace(BOX.encode(), box.encode()),
            env=environment,
            mounts=(),
        )
        return as_program_request(translated, get_own_interpreter().executable, box)

    def translate_result(self, result: RunResult) -> RunResult:
        """Return a result that names `BOX` in place of this folder."""
        box = str(self._box).encode()
        return replace(
            result,
            stdout=result.stdout.replace(box, BOX.encode()),
            stderr=result.stderr.replace(box, BOX.encode()),
            files={path: content.replace(box, BOX.encode()) for path, content in result.files.items()},
        )

    @asynccontextmanager
    async def start_run(
        self, request: RunRequest, *, conversation: bool = False
    ) -> AsyncIterator[SupervisedRun]:
        """See `BaseSandbox.start_run`."""
        encoded = encode_request(
            replace(request, limits=replace(request.limits, processes=UNLIMITED_PROCESSES))
        )
        source = f"import os; os.chdir({str(self._box)!r}); del os\n{_combined_source()}"
        command = (get_own_interpreter().executable, "-I", "-S", "-B", "-c", source)
        reaped_run = await ReapedRun.start(encoded, command, ())
        try:
            yield reaped_run
        finally:
            reaped_run.cancel_kill()


@contextmanager
def _make_folder() -> Iterator[Path]:
    with temporary_folder("suture-unsafe-") as unresolved_folder:
        folder = unresolved_folder.resolve()
        for name in ("box", "tmp"):
            (folder / name).mkdir(mode=0o700)
        yield folder


@cache
def _combined_source() -> str:
    """Return `supervisor.py` as a module, followed by the reaper as the program."""
    supervisor_source = read_source("suture.sandbox.execution.supervisor")
    reaper_source = read_source("suture.sandbox.unsafe_subprocess.reaper")
    return (
        "import types; supervisor = types.ModuleType('supervisor')\n"
        f"exec(compile({supervisor_source!r}, '<supervisor>', 'exec', dont_inherit=True), "
        "supervisor.__dict__)\n"
        f"exec(compile({reaper_source!r}, '<reaper>', 'exec', dont_inherit=True))\nmain()\n"
    )
