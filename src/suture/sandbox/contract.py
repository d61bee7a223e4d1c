"""The contract between Suture and every sandbox back end.

What the program inside the sandbox does (a non-zero exit code, a crash, a time-out) is a value. What goes
wrong with the sandbox itself is a `SandboxError`. A back end that cannot isolate raises `SandboxUnavailable`;
it never runs code without isolation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from suture.core.settings.schema import IsolationLevel

BOX = "/box"
"""The folder inside the sandbox that holds a request's files and is the program's working directory."""

LIBRARY = "_suture"
"""The folder below `BOX` that may hold a request's `modules`."""

SANDBOX_UIDS = range(61184, 65520)
"""User ids that a program may have for the host's kernel. They are the ids that systemd gives to dynamic
users, so none of them is a person's account."""

ISOLATION_LEVELS: tuple[IsolationLevel, ...] = get_args(IsolationLevel)
"""Every level, the weakest first: no isolation, a process that has dropped privileges, Linux namespaces, a
container, WebAssembly, a kernel in user space (gVisor), a virtual machine."""

StartMode = Literal["warm", "spare", "cold"]
"""How a program gets its sandbox. `warm`: a zygote waits inside a sandbox and forks each program into new
namespaces. `spare`: sandboxes are built ahead, and each serves one program. `cold`: one is built for each
program."""

MemoryEnforcement = Literal["cgroup2", "cgroup1", "engine", "sampler", "none"]
"""What keeps a program's whole process tree within `total_memory_mb`: a Linux control group, the engine or
service itself, a sampler that adds up memory every 50 ms, or nothing."""

RunStatus = Literal["ok", "failed", "timeout", "memory", "output_limit", "signalled"]


@dataclass(frozen=True, kw_only=True)
class ProgramLimits:
    """What one program inside the sandbox may use.

    Attributes:
        wall_s: Wall-clock seconds until the whole process tree is killed. For a conversation, this covers all
            of it.
        cpu_s: CPU seconds of each process.
        memory_mb: Address space of each process, in MiB.
        total_memory_mb: Memory of all processes and in-memory files together, in MiB.
        processes: Maximum number of processes and threads at the same time.
        disk_mb: Size of each writable folder, in MiB, in addition to the files of the request.
        inodes: Files and folders in each writable folder, in addition to the files of the request.
        file_mb: Maximum size of one file, in MiB.
        open_files: File descriptors of each process.
        output_bytes: Bytes that are kept of stdout, and of stderr: half from the head, half from the tail.
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


LIMIT_NAMES: tuple[str, ...] = tuple(limit.name for limit in fields(ProgramLimits))
"""The names of all limits, as fields of `ProgramLimits`."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A host folder or file that a program may read.

    Attributes:
        source: Absolute path on the host.
        target: Absolute path inside the sandbox. It must not be `/tmp`, and must neither be nor be inside `BOX`,
            `/etc`, `/proc`, `/dev` or `/sys`, which the sandbox makes itself. It must not be below another mount that
            shows something else there.
    """

    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One program to run.

    Attributes:
        argv: The program and its arguments, never a shell string. Empty if `python` is given.
        python: Python code to run instead of a program, as `python -I -S -B -c` would, on the interpreter
            that runs Suture. In a warm sandbox this costs one fork instead of an interpreter start.
        modules: Trusted modules that `python` may import, as `.py` files below one folder of `sys.path`. A
            warm sandbox imports all of them in advance and writes none to disk; a cold one writes them below
            `LIBRARY`.
        preload: Python code. If `argv` is a Python interpreter with `-m MODULE`, a warm sandbox runs this
            code once in such an interpreter and forks the program from it, unless a file of the request would
            shadow a module that is imported by then. A cold sandbox starts the program normally. The code
            sees no file of any request, and must leave nothing that the program would notice.
        files: Files to write below `BOX` first: relative POSIX path -> content. The host checks the paths.
        stdin: What the program reads.
        env: Its whole environment besides `PATH`, `HOME`, `TMPDIR` and `LANG`.
        mounts: Runtimes to show read-only (an interpreter, its site-packages).
        limits: What the program may use.
        collect: Relative paths of regular files to bring back, 32 MiB in total; also after a time-out.
        watched: Paths of `files` that the program is not expected to change; see `RunResult.changed`.
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
    watched: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a program ended.

    Attributes:
        status: `ok` for exit code 0, `failed` for another exit code, otherwise what ended the program.
        exit_code: Its exit code, if it exited.
        signal: The signal that ended it, if one did.
        stdout: What it printed; only head and tail if it was truncated.
        stderr: The same for stderr.
        truncated: Whether stdout or stderr was truncated.
        files: The collected files that existed.
        changed: The watched files that the program wrote, replaced or removed, also if it restored them; and
            folders above them that it replaced. `.` is the folder of all files, which also counts if more than
            10,000 paths are new.
        created: New paths in the folders above watched files and in the request's folders directly below these,
            and the paths in new folders there. A warm bubblewrap sandbox also names what was removed again.
        wall_s: Wall-clock seconds that it ran.
        cpu_s: CPU seconds of all its processes; `None` if they are unknown, for example after the sandbox was
            killed.
    """

    status: RunStatus
    exit_code: int | None = None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    created: frozenset[str] = frozenset()
    wall_s: float = 0.0
    cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a sandbox can do on this machine.

    Attributes:
        level: What separates a program from the host.
        mode: How a program gets its sandbox. All modes isolate equally well.
        languages: What programs may be written in: always `python`, others if their runtime is visible
            inside.
        limits: Members of `LIMIT_NAMES` that it enforces.
        memory_enforcement: What enforces `total_memory_mb`.
        identity: What these claims depend on, such as a program and its version, or an image. The canary
            attacks are repeated when it changes.
        reason: Why the claims are not better, for people: no warm mode, no control group, or a level that the
            self-test denied.
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
        """Members of `LIMIT_NAMES` that it does not enforce."""
        return tuple(name for name in LIMIT_NAMES if name not in self.limits)

    def meets_level(self, level: IsolationLevel) -> bool:
        """Return whether it isolates at least as well as `level`."""
        return ISOLATION_LEVELS.index(self.level) >= ISOLATION_LEVELS.index(level)


class Channel(Protocol):
    """A conversation with a running program, in frames over its stdin and stdout.

    A frame is a 4-byte big-endian length and that many bytes. The program's own prints must go to stderr.
    """

    async def send(self, frame: bytes) -> None:
        """Send one frame. This does not fail for a program that has ended; `receive` then returns `None`."""
        ...

    async def receive(self, timeout_s: float) -> bytes | None:
        """Return the next frame, or `None` if the program ended, sent no valid frame, or timed out.

        Whatever the cause, the program is dead when this returns `None`.
        """
        ...

    async def finish(self) -> RunResult:
        """Close the program's stdin, end it if it still runs, and return how it ended."""
        ...


class Sandbox(Protocol):
    """A sandbox. It may run many programs, also at the same time; each starts from a clean state."""

    name: str

    async def capabilities(self) -> Capabilities:
        """Return what this sandbox claims to do here.

        A claim is believed only after canary attacks have failed (see `open_sandbox`).

        Raises:
            SandboxUnavailable: No sandbox can be built here.
        """
        ...

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program until it ends.

        Raises:
            UsageError: The request is not acceptable (an absolute path, `..`, too large).
            SandboxUnavailable: No sandbox can be built here.
            SandboxBroken: The sandbox failed.
        """
        ...

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        """Start a program to talk with. Leaving the context kills its whole process tree.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No sandbox can be built here.
            SandboxBroken: The sandbox failed.
        """
        ...

    async def close(self) -> None:
        """Kill everything that still runs. Safe to call twice."""
        ...


@runtime_checkable
class SupportsCloseCallbacks(Sandbox, Protocol):
    """A sandbox that tells the owners of long-running programs when it is closed."""

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call `callback` once, when this sandbox is closed."""
        ...


@runtime_checkable
class SupportsPreparation(Sandbox, Protocol):
    """A sandbox that can get ready for a program before all of its request is known."""

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        """Start what runs need that have the same interpreter, mounts, limits and `preload` as this request.

        Nothing of the request runs. The next such runs wait until this is ready, instead of starting it again.

        Args:
            count: How many such runs there will be at once. What the first one needs is started first.

        Raises:
            SandboxUnavailable: No sandbox can be built here.
            SandboxBroken: It could not be tested.
        """
        ...


@runtime_checkable
class SupportsCacheDir(Sandbox, Protocol):
    """A sandbox that knows the user's cache folder, which holds only what can be made again."""

    cache: Path | None
