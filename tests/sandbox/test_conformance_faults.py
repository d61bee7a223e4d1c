"""The conformance suite detects a sandbox that violates the contract."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.conformance import BEHAVIOURS, Conformance, Violation
from suture.errors import UsageError
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, Mount, RunRequest, RunResult


class ConformingSandbox:
    """A real sandbox that conforms; each faulty one differs from it in one behaviour."""

    name = "conforming"

    def __init__(self) -> None:
        self._sandbox = BubblewrapSandbox(mode="cold")

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        return await self._sandbox.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        async with self._sandbox.open(request) as channel:
            yield channel

    async def close(self) -> None:
        await self._sandbox.close()


def change_requests(change: Callable[[RunRequest], RunRequest]) -> type[ConformingSandbox]:
    """Return a sandbox that runs another request than the given one."""

    class RequestChanging(ConformingSandbox):
        async def run(self, request: RunRequest) -> RunResult:
            return await super().run(change(request))

    return RequestChanging


def change_results(change: Callable[[RunResult], RunResult]) -> type[ConformingSandbox]:
    """Return a sandbox that returns another result than the real one."""

    class ResultChanging(ConformingSandbox):
        async def run(self, request: RunRequest) -> RunResult:
            return change(await super().run(request))

    return ResultChanging


class BadPathAccepting(ConformingSandbox):
    """Reports success for a request that must be refused."""

    async def run(self, request: RunRequest) -> RunResult:
        try:
            return await super().run(request)
        except UsageError:
            return RunResult(status="ok", exit_code=0)


class StateKeeping(ConformingSandbox):
    """Shows each program the files that the programs before it left."""

    def __init__(self) -> None:
        super().__init__()
        self._remaining_files: dict[str, bytes] = {}

    async def run(self, request: RunRequest) -> RunResult:
        result = await super().run(
            replace(request, files=self._remaining_files | dict(request.files), collect=("left",))
        )
        self._remaining_files |= result.files
        return result


class CancellationIgnoring(ConformingSandbox):
    """Waits for the end of a cancelled run."""

    async def run(self, request: RunRequest) -> RunResult:
        task = asyncio.ensure_future(super().run(request))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise


class DescriptorLeaking(ConformingSandbox):
    """Leaves a descriptor open when it is closed."""

    leaked: list[int] = []  # noqa: RUF012 - shared by all instances

    async def close(self) -> None:
        await super().close()
        self.leaked.append(os.open(os.devnull, os.O_RDONLY))


class TaskLeaking(ConformingSandbox):
    """Leaves a task when it is closed."""

    leaked: list[asyncio.Task[None]] = []  # noqa: RUF012 - shared by all instances

    async def close(self) -> None:
        await super().close()
        self.leaked.append(asyncio.create_task(asyncio.sleep(5)))


class BusyNeighbour(ConformingSandbox):
    """Creates one task in all while it closes, as when the suite's other sandbox starts something meanwhile."""

    leaked: list[asyncio.Task[None]] = []  # noqa: RUF012 - shared by all instances

    async def close(self) -> None:
        await super().close()
        if not self.leaked:
            self.leaked.append(asyncio.create_task(asyncio.sleep(5)))


class InconsistentCapabilities(ConformingSandbox):
    """Names another level on each call."""

    async def capabilities(self) -> Capabilities:
        self._is_container = not getattr(self, "_is_container", False)
        return replace(await super().capabilities(), level="container" if self._is_container else "namespace")


class UnknownLimitClaiming(ConformingSandbox):
    """Claims a limit that does not exist."""

    async def capabilities(self) -> Capabilities:
        capabilities = await super().capabilities()
        return replace(capabilities, limits=capabilities.limits | {"gpus"})


def replace_fields(**fields: Any) -> Callable[[RunResult], RunResult]:
    """Return a function that replaces fields of a result."""
    return lambda result: replace(result, **fields)


def raise_limits(**limits: int) -> type[ConformingSandbox]:
    """Return a sandbox whose limits are higher than requested."""
    return change_requests(lambda request: replace(request, limits=replace(request.limits, **limits)))


def mount_host_folders(request: RunRequest) -> RunRequest:
    """Add a mount of each folder that the suite has created on the host."""
    folder = Path(tempfile.gettempdir())
    mounts = tuple(Mount(source=str(path), target=str(path)) for path in folder.glob("suture-conformance-*"))
    return replace(request, mounts=request.mounts + mounts)


FAULTY_SANDBOXES: dict[str, type[ConformingSandbox]] = {
    "exit_code_zero_is_ok": change_results(replace_fields(status="failed")),
    "other_exit_codes_are_kept": change_results(
        lambda result: replace(result, exit_code=result.exit_code and 1)
    ),
    "signals_are_reported": change_results(
        lambda result: replace(result, status="failed", exit_code=128 + (result.signal or 0), signal=None)
    ),
    "output_is_kept_byte_for_byte": change_results(
        lambda result: replace(result, stdout=result.stdout + result.stderr, stderr=b"")
    ),
    "stdin_arrives": change_requests(lambda request: replace(request, stdin=request.stdin[: 1 << 16])),
    "arguments_are_not_interpreted": change_requests(
        lambda request: replace(request, argv=tuple(" ".join(request.argv).split()))
    ),
    "environment_is_that_of_the_request": change_requests(
        lambda request: replace(request, env={**request.env, "USER": "root"})
    ),
    "wall_time_is_reported": change_results(replace_fields(wall_s=0.0)),
    "request_files_are_written": change_requests(lambda request: replace(request, files={})),
    "collected_files_come_back": change_results(replace_fields(files={})),
    "files_come_back_after_a_failure": change_results(
        lambda result: result if result.status == "ok" else replace(result, files={})
    ),
    "changes_of_watched_files_are_reported": change_results(replace_fields(changed=frozenset())),
    "new_paths_beside_watched_files_are_reported": change_results(
        lambda result: replace(
            result, created=frozenset(path for path in result.created if path.count("/") < 2)
        )
    ),
    "bad_paths_are_refused": BadPathAccepting,
    "mounts_are_shown": change_requests(lambda request: replace(request, mounts=())),
    "modules_are_importable": change_requests(lambda request: replace(request, modules={})),
    "output_is_truncated": raise_limits(output_bytes=1 << 24),
    "wall_time_is_limited": raise_limits(wall_s=4),
    "cpu_time_is_limited": raise_limits(cpu_s=4),
    "descriptors_are_limited": raise_limits(open_files=512),
    "file_size_is_limited": raise_limits(file_mb=512),
    "no_state_remains": StateKeeping,
    "cancelling_ends_a_run": CancellationIgnoring,
    "closing_leaves_nothing_open": DescriptorLeaking,
    "capabilities_are_consistent": InconsistentCapabilities,
    "host_folders_are_not_read": change_requests(mount_host_folders),
}
"""Behaviour -> a sandbox that violates it."""


@pytest.fixture
def close_leaked_descriptors(bubblewrap_works: None) -> Iterator[None]:
    """Close the descriptors that a faulty sandbox leaves open on purpose."""
    yield
    while DescriptorLeaking.leaked:
        os.close(DescriptorLeaking.leaked.pop())


def check_behaviour(kind: type[ConformingSandbox], name: str) -> None:
    """Run one check of the conformance suite on a kind of sandbox."""
    (behaviour,) = (behaviour for behaviour in BEHAVIOURS if behaviour.name == name)
    with Conformance(kind) as suite:
        suite.check(behaviour)


@pytest.mark.heavy
@pytest.mark.usefixtures("close_leaked_descriptors")
@pytest.mark.parametrize("name", FAULTY_SANDBOXES)
def test_a_faulty_sandbox_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        for module in ("lifecycle", "limits"):
            patched.setattr(f"sandbox.conformance.{module}.PROMPT_S", 2.5)
        with pytest.raises(Violation):
            check_behaviour(FAULTY_SANDBOXES[name], name)
    check_behaviour(ConformingSandbox, name)


@pytest.mark.usefixtures("close_leaked_descriptors")
@pytest.mark.parametrize(
    ("kind", "name"),
    [(TaskLeaking, "closing_leaves_nothing_open"), (UnknownLimitClaiming, "capabilities_are_consistent")],
)
def test_task_leaks_and_unknown_limits_are_detected(kind: type[ConformingSandbox], name: str) -> None:
    with pytest.raises(Violation):
        check_behaviour(kind, name)


@pytest.mark.usefixtures("close_leaked_descriptors")
def test_concurrent_background_starts_are_not_reported_as_leaks() -> None:
    check_behaviour(BusyNeighbour, "closing_leaves_nothing_open")
    assert BusyNeighbour.leaked
