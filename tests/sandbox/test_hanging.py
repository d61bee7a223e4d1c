"""If a program, a zygote or an engine does not end in time, that is an error; nothing waits forever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from suture.errors import SandboxBroken
from suture.sandbox import ProgramLimits, RunRequest
from suture.sandbox.container.container_transport import ContainerTransport, Engine
from suture.sandbox.execution.program import Program, SandboxNotStarted
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.zygote_transport import FdSender


class SilentClient:
    """A client whose engine never answers."""

    api_version = "1.41"

    def create_container_from_config(self, config: object) -> dict[str, str]:
        return {"Id": "container"}

    def remove_container(self, *_: object, **__: object) -> None:
        raise requests.exceptions.ReadTimeout("no answer")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine that accepts connections and sends nothing."""
    connections = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    server = await asyncio.start_unix_server(accept, tmp_path / "socket")
    yield Engine(
        client=cast("Any", SilentClient()),
        address=f"unix://{tmp_path}/socket",
        podman=False,
        version="Deaf Engine",
        limits_memory=True,
        security=(),
    )
    server.close()
    for writer in connections:
        writer.close()


async def test_an_engine_that_does_not_answer_does_not_block_the_host(engine: Engine) -> None:
    reader, writer = await asyncio.open_unix_connection(engine.address.removeprefix("unix://"))
    transport = ContainerTransport(engine, "container", reader, writer)
    transport.kill()
    async with asyncio.timeout(30):
        assert await transport.wait() < 0
        assert await transport.stdout.read() == b""


async def test_an_engine_that_does_not_attach_is_an_error(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suture.sandbox.container.container_transport.ENGINE_TIMEOUT_S", 0.2)
    async with asyncio.timeout(30):
        with pytest.raises(SandboxNotStarted, match="Deaf Engine does not attach"):
            await ContainerTransport.start(engine, {})


class UndyingTransport:
    """The transport of a program or a zygote that never ends."""

    returncode = None
    out_of_memory = False
    error_text = ""

    def __init__(self, first: bytes) -> None:
        self.stdin = SimpleNamespace(write=len, drain=asyncio.Event().wait, close=self.kill)
        self.stdout, self.stderr, self.report = (asyncio.StreamReader() for _ in range(3))
        for stream in (self.stdout, self.report):
            stream.feed_data(first)

    async def wait(self) -> int:
        await asyncio.Event().wait()
        raise AssertionError

    async def drain(self) -> None:
        """Return at once."""

    def write(self, data: bytes) -> None:
        """Ignore the data."""

    def kill(self) -> None:
        """Have no effect."""

    release = close_stdin = kill


async def test_a_program_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WATCHDOG_GRACE_S", "KILL_TIMEOUT_S", "REMOVAL_TIMEOUT_S"):
        monkeypatch.setattr(f"suture.sandbox.tuning.{name}", 0.1)
    request = RunRequest(argv=("true",), limits=ProgramLimits(wall_s=0.1))

    async with asyncio.timeout(30):
        program = await Program.start(request, cast("Any", UndyingTransport(b"S")))
        for ending in (program.wait_for_result(), program.terminate("timeout"), program.kill_and_release()):
            with pytest.raises(SandboxBroken, match="still lives"):
                await ending


async def test_a_zygote_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suture.sandbox.tuning.REMOVAL_TIMEOUT_S", 0.1)
    before, fd_sender = asyncio.all_tasks(), FdSender()

    async with asyncio.timeout(30):
        zygote = await Zygote.start(cast("Any", UndyingTransport(b"h\0\0\0\0")), b"", fd_sender=fd_sender)
        for _ in range(2):
            with pytest.raises(SandboxBroken, match="still lives"):
                await zygote.shut_down()

    assert asyncio.all_tasks() == before
    assert fd_sender.remote_fd == -1
