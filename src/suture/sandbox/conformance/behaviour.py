"""What a behaviour is, and the small runner that tries them."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from suture.errors import SutureError, UsageError
from suture.sandbox.contract import ProgramLimits, RunRequest, RunResult, Sandbox
from suture.sandbox.runtimes.discovery import get_own_interpreter

PATIENCE_S = 120.0
"""Seconds in which a behaviour must have shown itself; what hangs is a violation."""
PROMPT_S = 20.0
"""Seconds in which what is said to happen at once has happened, on a slow machine too."""
LONG = ProgramLimits(wall_s=60, cpu_s=60)
INTERPRETER: ContextVar[str] = ContextVar("interpreter")
"""Of the sandbox that is asked."""


class Violation(AssertionError):
    """A sandbox does not do what the contract says."""


class NotClaimed(Exception):
    """A behaviour that this sandbox does not claim, so that it cannot be asked for."""


@dataclass(frozen=True, kw_only=True)
class SandboxUnderTest:
    """What is looked at.

    Attributes:
        sandbox: The sandbox; it has served other behaviours before.
        another: Opens one more of the same kind, for what ends with closing it.
    """

    sandbox: Sandbox
    another: Callable[[], Sandbox]

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program in the sandbox."""
        return await self.sandbox.run(request)


Check = Callable[[SandboxUnderTest], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One thing that the contract says.

    Attributes:
        name: Its name.
        about: What it says, in one sentence.
        check: Tries it, and raises `Violation`.
        limit: The limit that it is about, by its name in `ProgramLimits`; a sandbox that does not claim to
            enforce that limit is not asked.
        mounts: Whether it is about folders of the host; a sandbox that shows none is not asked.
    """

    name: str
    about: str
    check: Check
    limit: str = ""
    mounts: bool = False

    def __str__(self) -> str:
        return self.name


def behaviours_of(
    module: Mapping[str, object], limits: Mapping[str, str] | None = None, mounts: Container[str] = ()
) -> tuple[Behaviour, ...]:
    """The behaviours that a module states: its own coroutine functions, in their order.

    Args:
        module: Its names, as `globals()` has them.
        limits: Name of a function -> the limit that it is about.
        mounts: Names of functions about folders of the host.
    """
    found = []
    for name, check in module.items():
        if inspect.iscoroutinefunction(check) and check.__module__ == module["__name__"]:
            about = (check.__doc__ or "").strip().partition("\n")[0]
            limit = (limits or {}).get(name, "")
            found.append(Behaviour(name=name, about=about, check=check, limit=limit, mounts=name in mounts))
    return tuple(found)


class Conformance:
    """Tries behaviours against one kind of sandbox; a context.

    One sandbox serves all of them, as it would in real use. It has an event loop of its own, so it is for use
    where none is running, such as in a pytest test that is no coroutine.

    Args:
        open_sandbox: Opens a sandbox. It is called in a running event loop.
        interpreter: The Python, 3.9 or later, that programs behind the wall are started with; where it is
            left out, the one that runs Suture, which a sandbox on this machine shows.
        mounts: Whether the sandbox shows folders of this machine; one on another machine cannot.
    """

    def __init__(
        self, open_sandbox: Callable[[], Sandbox], *, interpreter: str | None = None, mounts: bool = True
    ) -> None:
        self._open = open_sandbox
        self._interpreter = interpreter or get_own_interpreter().executable
        self._mounts = mounts
        self._runner = asyncio.Runner()
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> Conformance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sandbox is not None:
            self._runner.run(self._sandbox.close())
        self._runner.close()

    def check(self, behaviour: Behaviour) -> None:
        """Try one behaviour on one sandbox; answers why it fails, or nothing.

        Raises:
            Violation: The sandbox does not behave so.
            NotClaimed: It does not claim to.
            SandboxUnavailable: It cannot be used here.
        """
        self._runner.run(self._check(behaviour))

    async def _check(self, behaviour: Behaviour) -> None:
        if self._sandbox is None:
            self._sandbox = self._open()
        able = await self._sandbox.capabilities()
        if behaviour.limit and behaviour.limit not in able.limits:
            raise NotClaimed(f"this sandbox does not claim to enforce {behaviour.limit}")
        if behaviour.mounts and not self._mounts:
            raise NotClaimed("this sandbox shows nothing of this machine")
        INTERPRETER.set(self._interpreter)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await behaviour.check(SandboxUnderTest(sandbox=self._sandbox, another=self._open))
        except TimeoutError as fault:
            raise Violation("it did not end in time") from fault


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder of the host's that all its users may change, with a file `text` that says `hello`."""
    with tempfile.TemporaryDirectory(prefix="suture-conformance-") as folder:
        path = Path(folder)
        path.chmod(0o777)
        (path / "text").write_text("hello")
        (path / "text").chmod(0o666)
        yield path


def demand(condition: object, what: object) -> None:
    """Raise a violation where a condition does not hold."""
    if not condition:
        raise Violation(str(what))


async def refused(subject: SandboxUnderTest, request: RunRequest) -> None:
    """A request must be refused with a `UsageError` (see `errors.py`), and nothing of it may run."""
    try:
        result = await subject.run(request)
    except UsageError:
        return
    except SutureError as fault:
        raise Violation(f"refused as {type(fault).__name__}, not as a UsageError: {fault}") from fault
    raise Violation(f"it ran: {shown(result)}")


def code(text: str, **fields: Any) -> RunRequest:
    """A request for Python code."""
    return RunRequest(python=textwrap.dedent(text), **{"limits": LONG, **fields})


def interpreter() -> str:
    """The Python that programs are started with in the sandbox that is asked."""
    return INTERPRETER.get()


def as_program_request(text: str, **fields: Any) -> RunRequest:
    """A request for a program: an interpreter that is started with this code."""
    argv = (interpreter(), "-I", "-S", "-B", "-c", textwrap.dedent(text))
    return RunRequest(argv=argv, **{"limits": LONG, **fields})


def shown(result: RunResult) -> str:
    """A result, short enough to read."""
    return (
        f"{result.status}, exit code {result.exit_code}, signal {result.signal}, "
        f"stdout {result.stdout[-400:]!r}, stderr {result.stderr[-400:]!r}, files {sorted(result.files)}"
    )
