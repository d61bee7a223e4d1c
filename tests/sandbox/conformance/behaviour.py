"""What a behaviour is, and the runner that checks behaviours."""

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

CHECK_TIMEOUT_S = 120.0
"""Seconds in which a behaviour must have been shown; a sandbox that hangs violates it."""
PROMPT_S = 20.0
"""Seconds in which something immediate must have happened, on a slow machine too."""
GENEROUS_LIMITS = ProgramLimits(wall_s=60, cpu_s=60)
"""Limits of a program that is not about limits, on a slow machine too."""
INTERPRETER: ContextVar[str] = ContextVar("interpreter")
"""The Python inside the sandbox that is checked."""


class Violation(AssertionError):
    """A sandbox does not do what the contract says."""


class NotClaimed(Exception):
    """A behaviour that this sandbox does not claim, so that it is not checked."""


@dataclass(frozen=True, kw_only=True)
class SandboxUnderTest:
    """The sandbox that a check uses.

    Attributes:
        sandbox: The sandbox; it has served other checks before.
        create_another: Creates one more of the same kind, for checks that close it.
    """

    sandbox: Sandbox
    create_another: Callable[[], Sandbox]

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program in the sandbox."""
        return await self.sandbox.run(request)


Check = Callable[[SandboxUnderTest], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One statement of the contract.

    Attributes:
        name: Its name.
        about: The statement, in one sentence.
        check: A coroutine function that raises `Violation` if the statement does not hold.
        limit: The limit that it is about, as a field of `ProgramLimits`. A sandbox that does not claim to
            enforce that limit is not checked.
        mounts: Whether it is about folders of the host. A sandbox that mounts none is not checked.
    """

    name: str
    about: str
    check: Check
    limit: str = ""
    mounts: bool = False

    def __str__(self) -> str:
        return self.name


def collect_behaviours(
    module: Mapping[str, object], limits: Mapping[str, str] | None = None, mounts: Container[str] = ()
) -> tuple[Behaviour, ...]:
    """Return the behaviours of a module: its own coroutine functions, in their order.

    Args:
        module: The names of the module, as in `globals()`.
        limits: Name of a function -> the limit that it is about.
        mounts: Names of functions about folders of the host.
    """
    behaviours = []
    for name, check in module.items():
        if inspect.iscoroutinefunction(check) and check.__module__ == module["__name__"]:
            about = (check.__doc__ or "").strip().partition("\n")[0]
            limit = (limits or {}).get(name, "")
            behaviours.append(
                Behaviour(name=name, about=about, check=check, limit=limit, mounts=name in mounts)
            )
    return tuple(behaviours)


class Conformance:
    """Checks the behaviours of one kind of sandbox; a context manager.

    One sandbox serves all checks, as in real use. This object has its own event loop, so use it where no loop
    is running, for example in a pytest test that is not a coroutine.

    Args:
        open_sandbox: Creates a sandbox. It is called in a running event loop.
        interpreter: The Python (3.9 or later) that programs inside the sandbox are started with. By default
            the one that runs Suture, which a sandbox on this machine shows.
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
        """Check one behaviour.

        Raises:
            Violation: The sandbox does not behave as the contract says.
            NotClaimed: It does not claim to.
            SandboxUnavailable: It cannot be used here.
        """
        self._runner.run(self._check(behaviour))

    async def _check(self, behaviour: Behaviour) -> None:
        if self._sandbox is None:
            self._sandbox = self._open()
        capabilities = await self._sandbox.capabilities()
        if behaviour.limit and behaviour.limit not in capabilities.limits:
            raise NotClaimed(f"this sandbox does not claim to enforce {behaviour.limit}")
        if behaviour.mounts and not self._mounts:
            raise NotClaimed("this sandbox mounts nothing of this machine")
        INTERPRETER.set(self._interpreter)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await behaviour.check(SandboxUnderTest(sandbox=self._sandbox, create_another=self._open))
        except TimeoutError as fault:
            raise Violation("the check did not finish in time") from fault


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Yield a folder of the host that all its users may change, with a file `text` that contains `hello`."""
    with tempfile.TemporaryDirectory(prefix="suture-conformance-") as folder:
        path = Path(folder)
        path.chmod(0o777)
        (path / "text").write_text("hello")
        (path / "text").chmod(0o666)
        yield path


def demand(condition: object, observation: object) -> None:
    """Raise a violation that says what was observed, if a condition does not hold."""
    if not condition:
        raise Violation(str(observation))


async def demand_refusal(subject: SandboxUnderTest, request: RunRequest) -> None:
    """Demand that a request is refused with a `UsageError` and that nothing of it runs."""
    try:
        result = await subject.run(request)
    except UsageError:
        return
    except SutureError as fault:
        raise Violation(f"refused as {type(fault).__name__}, not as a UsageError: {fault}") from fault
    raise Violation(f"the request ran: {describe(result)}")


def code_request(text: str, **fields: Any) -> RunRequest:
    """Return a request for Python code."""
    return RunRequest(python=textwrap.dedent(text), **{"limits": GENEROUS_LIMITS, **fields})


def get_interpreter() -> str:
    """Return the Python that programs are started with in the sandbox that is checked."""
    return INTERPRETER.get()


def program_request(text: str, **fields: Any) -> RunRequest:
    """Return a request for a program: an interpreter that is started with this code."""
    argv = (get_interpreter(), "-I", "-S", "-B", "-c", textwrap.dedent(text))
    return RunRequest(argv=argv, **{"limits": GENEROUS_LIMITS, **fields})


def describe(result: RunResult) -> str:
    """Return a result as a short text."""
    return (
        f"{result.status}, exit code {result.exit_code}, signal {result.signal}, "
        f"stdout {result.stdout[-400:]!r}, stderr {result.stderr[-400:]!r}, files {sorted(result.files)}, "
        f"changed {sorted(result.changed)}, created {sorted(result.created)[:40]}"
    )
