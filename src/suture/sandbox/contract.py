"""The one seam to running untrusted code.

What the program behind the wall does (a non-zero exit, a crash, a time-out) is a value. What the wall itself
does wrong is a `SandboxError`. A backend that cannot isolate raises `SandboxUnavailable`; it never runs code
without a wall.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from suture.core.settings.schema import IsolationLevel

BOX = "/box"
"""The folder behind the wall that holds a request's files and is the program's working directory."""

LIBRARY = "_suture"
"""The folder under `BOX` that a request's modules may lie in."""

SANDBOX_UIDS = range(61184, 65520)
"""Users that a program may be to the kernel: systemd's dynamic ones, so that none is a person's account."""

ISOLATION_LEVELS: tuple[IsolationLevel, ...] = get_args(IsolationLevel)
"""Every level, the weakest first: nothing at all, a process that has given up rights, Linux namespaces, a
container of an engine's, WebAssembly, a kernel in user space (gVisor), a virtual machine."""

StartMode = Literal["warm", "spare", "cold"]
"""Where a program's wall comes from. `warm`: a process waits behind a wall and forks each program into new
namespaces. `spare`: walls are built ahead, and each serves one program. `cold`: one is built for each."""

MemoryEnforcement = Literal["cgroup2", "cgroup1", "engine", "sampler", "none"]
"""What keeps a program's whole tree within `total_memory_mb`: a control group of Linux, an engine's or a
service's own means, a look every 50 ms, nothing."""

RunStatus = Literal["ok", "failed", "timeout", "memory", "output_limit", "signalled"]


@dataclass(frozen=True, kw_only=True)
class ProgramLimits:
    """What one program behind the wall may use.

    Attributes:
        wall_s: Wall-clock seconds until the whole process tree is killed; of a conversation, all of it.
        cpu_s: CPU seconds of each process.
        memory_mb: Address space of each process, in MiB.
        total_memory_mb: Memory of all its processes and files together, in MiB.
        processes: The most processes and threads at one time.
        disk_mb: Size of each writable folder, in MiB.
        inodes: Files and folders in each writable folder.
        file_mb: The largest file, in MiB.
        open_files: File descriptors of each process.
        output_bytes: The most that is kept of stdout and of stderr, head and tail each half.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_mb: int = 1024
    total_memory_mb: int = 2048
    processes: int = 128
    disk_mb: int = 256
    inodes: int = 50_000
    file_mb: int = 64
    open_files: int = 256
    output_bytes: int = 1 << 20


LIMIT_NAMES: tuple[str, ...] = tuple(knob.name for knob in fields(ProgramLimits))
"""Every limit, by its name in `ProgramLimits`."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A host folder or file that a program may read.

    Attributes:
        source: Absolute path on the host.
        target: Absolute path behind the wall; never a folder of its own (`BOX`, `/tmp`, `/etc`, `/proc`,
            `/dev`) or in one but `/tmp`, and never below another mount that shows something else there.
    """

    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One program to run.

    Attributes:
        argv: The program and its arguments; never a shell string. Empty where `python` is given.
        python: Python code to run in place of a program, as `python -I -S -B -c` would, on the interpreter
            that runs Suture. Where the wall keeps one warm, this costs a fork and no start.
        modules: Trusted modules that `python` may import, as `.py` files under one folder of `sys.path`. A
            warm wall imports all of them beforehand and lays none; a cold one lays them under `LIBRARY`.
        preload: Python code. Where `argv` is a Python interpreter with `-m MODULE`, a warm wall runs this
            once in such an interpreter and forks the program from it, unless a file of the request would
            stand for a module that is imported by then; a cold one starts the program as ever. The code sees
            no file of any request, and must leave nothing that the program would notice.
        files: Files to lay under `BOX` first: relative POSIX path -> bytes. Checked on the host.
        stdin: What the program reads.
        env: Its whole environment besides `PATH`, `HOME`, `TMPDIR`, `LANG`.
        mounts: Runtimes to show read-only (an interpreter, its site-packages).
        limits: What it may use.
        collect: Relative paths of regular files to bring back, 32 MiB in all; also after a time-out.
    """

    argv: tuple[str, ...] = ()
    python: str | None = None
    modules: Mapping[str, bytes] = field(default_factory=dict)
    preload: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    collect: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a program ended.

    Attributes:
        status: `ok` for exit code 0, `failed` for another, else what ended it.
        exit_code: Its exit code, where it exited.
        signal: The signal that ended it, where one did.
        stdout: What it printed; head and tail where it was cut.
        stderr: The same of stderr.
        truncated: Whether stdout or stderr was cut.
        files: The collected files that existed.
        wall_s: Wall-clock seconds it ran.
        cpu_s: CPU seconds of all its processes; `None` where they were not told, such as by a wall that fell.
    """

    status: RunStatus
    exit_code: int | None = None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 0.0
    cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a wall can do on this machine.

    Attributes:
        level: What stands between a program and the host.
        mode: Where a program's wall comes from. All modes isolate alike.
        languages: What programs may be written in: `python` always, others where their runtime is there.
        limits: Names of `LIMITS` that it enforces.
        total_memory: What keeps `total_memory_mb`.
        identity: What all of this rests on: a program and its version, an image. The canary attacks are
            tried again when it changes.
        reason: Why it is no better: no warm wall, no control group, a level that it had to be denied.
    """

    level: IsolationLevel
    mode: StartMode
    languages: tuple[str, ...] = ("python",)
    limits: frozenset[str] = frozenset()
    memory_enforcement: MemoryEnforcement = "none"
    identity: str = ""
    reason: str = ""

    @property
    def missing_limits(self) -> tuple[str, ...]:
        """Names of `LIMITS` that it does not enforce."""
        return tuple(name for name in LIMIT_NAMES if name not in self.limits)

    def meets_level(self, level: IsolationLevel) -> bool:
        """Whether it isolates at least as well as this."""
        return ISOLATION_LEVELS.index(self.level) >= ISOLATION_LEVELS.index(level)


class Channel(Protocol):
    """A conversation with a running program, in frames over its stdin and stdout.

    A frame is a 4-byte big-endian length and that many bytes. The program's own prints must go to stderr.
    """

    async def send(self, frame: bytes) -> None:
        """Send one frame. A program that has ended does not make this fail; `receive` tells."""
        ...

    async def receive(self, timeout_s: float) -> bytes | None:
        """The next frame, or `None` when the program ended, sent something that is no frame, or was late.

        Whatever the cause, the program is dead when this answers `None`.
        """
        ...

    async def finish(self) -> RunResult:
        """Close its stdin, end it where it still runs, and tell how it ended."""
        ...


class Sandbox(Protocol):
    """A wall. One object may run many programs, also at once; each starts from nothing."""

    name: str

    async def capabilities(self) -> Capabilities:
        """What this wall means to do here. `open_sandbox` believes it only after canary attacks have failed.

        Raises:
            SandboxUnavailable: No wall can be built here.
        """
        ...

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program to its end.

        Raises:
            UsageError: The request is not acceptable (an absolute path, `..`, too large).
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        ...

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        """Start a program to talk with; leaving the context kills its whole tree.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        ...

    async def close(self) -> None:
        """Kill everything that still runs; safe to call twice."""
        ...


@runtime_checkable
class SupportsCloseCallbacks(Sandbox, Protocol):
    """A wall in which programs may be kept running: it tells their keepers when it closes."""

    def add_close_callback(self, act: Callable[[], Awaitable[None]]) -> None:
        """Have something done once, when this wall is closed."""
        ...


@runtime_checkable
class SupportsCacheDir(Sandbox, Protocol):
    """A wall that knows the user's own folder for what can be made anew."""

    cache: Path | None
