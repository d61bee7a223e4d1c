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

from requirements import Require
from suture.errors import UsageError
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, Mount, Requirement, RunRequest, RunResult
from suture.sandbox.conformance import BEHAVIOURS, Conformance, Violation


class Faithful:
    """A real sandbox. What is wrong with the others is what they do otherwise."""

    name = "faithful"

    def __init__(self) -> None:
        self._wall = BubblewrapSandbox(mode="cold")

    async def capabilities(self) -> Capabilities:
        return await self._wall.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        return await self._wall.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        async with self._wall.open(request) as channel:
            yield channel

    async def close(self) -> None:
        await self._wall.close()


def asking(change: Callable[[RunRequest], RunRequest]) -> type[Faithful]:
    """It runs another request than it was given."""

    class Asking(Faithful):
        async def run(self, request: RunRequest) -> RunResult:
            return await super().run(change(request))

    return Asking


def telling(change: Callable[[RunResult], RunResult]) -> type[Faithful]:
    """It tells another result than it saw."""

    class Telling(Faithful):
        async def run(self, request: RunRequest) -> RunResult:
            return change(await super().run(request))

    return Telling


class Obliging(Faithful):
    async def run(self, request: RunRequest) -> RunResult:
        try:
            return await super().run(request)
        except UsageError:
            return RunResult(status="ok", exit_code=0)


class Serial(Faithful):
    """What one program left is there for the next."""

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[str, bytes] = {}

    async def run(self, request: RunRequest) -> RunResult:
        result = await super().run(
            replace(request, files=self._left | dict(request.files), collect=("left",))
        )
        self._left |= result.files
        return result


class Stubborn(Faithful):
    async def run(self, request: RunRequest) -> RunResult:
        running = asyncio.ensure_future(super().run(request))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await running
            raise


class Leaking(Faithful):
    held: list[int] = []  # noqa: RUF012 - of all of them

    async def close(self) -> None:
        await super().close()
        self.held.append(os.open(os.devnull, os.O_RDONLY))


class Lingering(Faithful):
    held: list[asyncio.Task[None]] = []  # noqa: RUF012 - of all of them

    async def close(self) -> None:
        await super().close()
        self.held.append(asyncio.create_task(asyncio.sleep(5)))


class BesideABusyOne(Faithful):
    """While it closes, the other sandbox of the suite has got something ready, as gVisor's does."""

    held: list[asyncio.Task[None]] = []  # noqa: RUF012 - of all of them

    async def close(self) -> None:
        await super().close()
        if not self.held:
            self.held.append(asyncio.create_task(asyncio.sleep(5)))


class Fickle(Faithful):
    async def capabilities(self) -> Capabilities:
        self._is_container = not getattr(self, "_is_container", False)
        return replace(await super().capabilities(), level="container" if self._is_container else "namespace")


class Boastful(Faithful):
    async def capabilities(self) -> Capabilities:
        able = await super().capabilities()
        return replace(able, limits=able.limits | {"gpus"})


def without(**fields: Any) -> Callable[[RunResult], RunResult]:
    return lambda result: replace(result, **fields)


def roomier(**limits: int) -> type[Faithful]:
    """It enforces more than it was asked to."""
    return asking(lambda request: replace(request, limits=replace(request.limits, **limits)))


def of_the_host(request: RunRequest) -> RunRequest:
    folder = Path(tempfile.gettempdir())
    shown = tuple(
        Mount(source=str(found), target=str(found)) for found in folder.glob("suture-conformance-*")
    )
    return replace(request, mounts=request.mounts + shown)


FAULTY: dict[str, type[Faithful]] = {
    "exit_code_zero_is_ok": telling(without(status="failed")),
    "other_exit_codes_are_kept": telling(lambda result: replace(result, exit_code=result.exit_code and 1)),
    "signals_are_reported": telling(
        lambda result: replace(result, status="failed", exit_code=128 + (result.signal or 0), signal=None)
    ),
    "output_is_kept_byte_for_byte": telling(
        lambda result: replace(result, stdout=result.stdout + result.stderr, stderr=b"")
    ),
    "stdin_arrives": asking(lambda request: replace(request, stdin=request.stdin[: 1 << 16])),
    "arguments_are_not_interpreted": asking(
        lambda request: replace(request, argv=tuple(" ".join(request.argv).split()))
    ),
    "environment_is_that_of_the_request": asking(
        lambda request: replace(request, env={**request.env, "USER": "root"})
    ),
    "wall_time_is_reported": telling(without(wall_s=0.0)),
    "request_files_are_written": asking(lambda request: replace(request, files={})),
    "collected_files_come_back": telling(without(files={})),
    "files_come_back_after_a_failure": telling(
        lambda result: result if result.status == "ok" else replace(result, files={})
    ),
    "bad_paths_are_refused": Obliging,
    "mounts_are_shown": asking(lambda request: replace(request, mounts=())),
    "modules_are_importable": asking(lambda request: replace(request, modules={})),
    "output_is_truncated": roomier(output_bytes=1 << 24),
    "wall_time_is_limited": roomier(wall_s=4),
    "cpu_time_is_limited": roomier(cpu_s=4),
    "descriptors_are_limited": roomier(open_files=512),
    "file_size_is_limited": roomier(file_mb=512),
    "no_state_remains": Serial,
    "cancelling_ends_a_run": Stubborn,
    "closing_leaves_nothing_open": Leaking,
    "capabilities_are_consistent": Fickle,
    "host_folders_are_not_read": asking(of_the_host),
}
"""A behaviour, and a sandbox that does not show it."""


@pytest.fixture
def faithful(sandbox_requirement: Requirement, require: Require) -> Iterator[None]:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    yield
    while Leaking.held:
        os.close(Leaking.held.pop())


def ask(kind: type[Faithful], name: str) -> None:
    (behaviour,) = (behaviour for behaviour in BEHAVIOURS if behaviour.name == name)
    with Conformance(kind) as suite:
        suite.check(behaviour)


@pytest.mark.heavy
@pytest.mark.usefixtures("faithful")
@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_sandbox_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as hasty:
        for module in ("lifecycle", "limits"):
            hasty.setattr(f"suture.sandbox.conformance.{module}.PROMPT_S", 2.5)
        with pytest.raises(Violation):
            ask(FAULTY[name], name)
    ask(Faithful, name)


@pytest.mark.usefixtures("faithful")
@pytest.mark.parametrize(
    ("kind", "name"), [(Lingering, "closing_leaves_nothing_open"), (Boastful, "capabilities_are_consistent")]
)
def test_a_second_way_to_fall_short_is_found_out_too(kind: type[Faithful], name: str) -> None:
    with pytest.raises(Violation):
        ask(kind, name)


@pytest.mark.usefixtures("faithful")
def test_concurrent_background_starts_are_not_reported_as_leaks() -> None:
    ask(BesideABusyOne, "closing_leaves_nothing_open")
    assert BesideABusyOne.held
