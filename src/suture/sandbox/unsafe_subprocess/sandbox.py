"""The backend `unsafe-subprocess`: a plain process with limits, and no wall; for code that you trust."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from suture.errors import UsageError
from suture.sandbox.contract import BOX, LIMIT_NAMES, Capabilities, RunRequest, RunResult
from suture.sandbox.execution.base_sandbox import FrameChannel, ProgramSandbox, system_error
from suture.sandbox.execution.process import ColdRun, SupervisedRun
from suture.sandbox.execution.request_encoding import as_program_request, check_and_flatten, encode_request
from suture.sandbox.runtimes.discovery import get_own_interpreter
from suture.sandbox.tuning import REAPER_KILL_TIMEOUT_S

NOTICE = (
    "suture: no sandbox (unsafe-subprocess): code that nobody has read runs as you, "
    "with your files, your keys' files and your network"
)
NOT_ENFORCED = {"processes", "disk_mb", "inodes"}
"""The kernel counts processes of a user, not of a program; and folders here are those of the disk."""
MOST_PROCESSES = 1 << 22
"""`PID_MAX_LIMIT` of Linux, so no limit: one on the user would hit what else the user runs."""


def _print_notice() -> None:
    print(NOTICE, file=sys.stderr)


class UnsafeSubprocess:
    """Runs programs with no wall around them; see `contract.Sandbox`.

    Files lie in a folder of their own, and whatever names `BOX` in a request is made to name that folder.
    Limits on time, memory and output hold, and every process is ended with its program.

    Args:
        notice: Tells the user, once for each sandbox.
    """

    name = "unsafe-subprocess"

    def __init__(self, *, notice: Callable[[], None] = _print_notice) -> None:
        self._notice: Callable[[], None] | None = notice
        self._running: set[_OneRun] = set()

    async def capabilities(self) -> Capabilities:
        """What it can do here: nothing is kept out."""
        return Capabilities(
            level="none",
            mode="cold",
            limits=frozenset(set(LIMIT_NAMES) - NOT_ENFORCED),
            memory_enforcement="sampler",
            identity="no wall",
            reason="it was asked for by name",
        )

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program to its end.

        Raises:
            UsageError: The request is not acceptable.
            SandboxBroken: What ends programs here failed.
        """
        async with self._one(request) as one:
            return one.outward(await one.run(one.inward(request)))

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[FrameChannel]:
        """Start a program to talk with; leaving the context ends its whole tree.

        Raises:
            UsageError: The request is not acceptable.
            SandboxBroken: What ends programs here failed.
        """
        async with self._one(request) as one, one.open(one.inward(request)) as channel:
            yield channel

    async def close(self) -> None:
        """End everything that still runs; safe to call twice."""
        for one in tuple(self._running):
            await one.close()

    @asynccontextmanager
    async def _one(self, request: RunRequest) -> AsyncIterator[_OneRun]:
        check_and_flatten(request)
        for mount in request.mounts:
            if mount.source != mount.target:
                raise UsageError(f"{mount.target!r} cannot be shown: without a wall each path is what it is")
        if self._notice is not None:
            self._notice()
            self._notice = None
        try:
            folder = await asyncio.to_thread(_make_folder)
        except OSError as fault:
            raise system_error(f"{self.name} has no folder for a program", fault) from fault
        one = _OneRun(folder)
        self._running.add(one)
        try:
            yield one
        finally:
            self._running.discard(one)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class ReapedRun(ColdRun):
    """A process that ends its descendants when its host lets go of it; only it can find all of them."""

    _ultimatum: asyncio.TimerHandle | None = None

    def kill(self) -> None:
        """End everything of this run now; what does not end in a moment loses its supervisor too."""
        self.hang_up()
        if self._ultimatum is None:
            self._ultimatum = asyncio.get_running_loop().call_later(REAPER_KILL_TIMEOUT_S, super().kill)

    def give_up(self) -> None:
        """Take the threat back; all is gone."""
        if self._ultimatum is not None:
            self._ultimatum.cancel()


class _OneRun(ProgramSandbox):
    """One program in a folder of its own."""

    name = UnsafeSubprocess.name

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._box, self._tmp = folder / "box", folder / "tmp"

    async def capabilities(self) -> Capabilities:
        """Those of the sandbox that it belongs to."""
        return await UnsafeSubprocess().capabilities()

    def inward(self, request: RunRequest) -> RunRequest:
        """A request that names this folder in place of `BOX`."""
        box = str(self._box)
        environment = {"HOME": box, "TMPDIR": str(self._tmp)}
        environment |= {name: value.replace(BOX, box) for name, value in request.env.items()}
        named = replace(
            request,
            argv=tuple(word.replace(BOX, box) for word in request.argv),
            python=None if request.python is None else request.python.replace(BOX, box),
            preload="",
            stdin=request.stdin.replace(BOX.encode(), box.encode()),
            env=environment,
            mounts=(),
        )
        return as_program_request(named, get_own_interpreter().executable, box)

    def outward(self, result: RunResult) -> RunResult:
        """A result that names `BOX` in place of this folder."""
        box = str(self._box).encode()
        return replace(
            result,
            stdout=result.stdout.replace(box, BOX.encode()),
            stderr=result.stderr.replace(box, BOX.encode()),
            files={path: content.replace(box, BOX.encode()) for path, content in result.files.items()},
        )

    @asynccontextmanager
    async def start_run(self, request: RunRequest) -> AsyncIterator[SupervisedRun]:
        """See `ProgramSandbox.start_run`."""
        packed = encode_request(replace(request, limits=replace(request.limits, processes=MOST_PROCESSES)))
        command = (get_own_interpreter().executable, "-I", "-S", "-B", "-c", _source(str(self._box)))
        running = await ReapedRun.start(packed, command, ())
        try:
            yield running
        finally:
            running.give_up()


def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="suture-unsafe-")).resolve()
    for name in ("box", "tmp"):
        (folder / name).mkdir(mode=0o700)
    return folder


def _source(folder: str) -> str:
    return f"import os; os.chdir({folder!r}); del os\n{_program()}"


@cache
def _program() -> str:
    """`inside.py` as a module, and the supervisor as the program after it."""
    inside = resources.files("suture.sandbox.execution").joinpath("supervisor.py").read_text("utf-8")
    supervise = resources.files("suture.sandbox.unsafe_subprocess").joinpath("reaper.py").read_text("utf-8")
    return (
        "import types; inside = types.ModuleType('inside')\n"
        f"exec(compile({inside!r}, '<inside>', 'exec', dont_inherit=True), inside.__dict__)\n"
        f"exec(compile({supervise!r}, '<supervise>', 'exec', dont_inherit=True))\nmain()\n"
    )
