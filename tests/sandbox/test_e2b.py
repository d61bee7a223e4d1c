"""The E2B sandbox with the real SDK, against a local server of its protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator

import pytest

from requirements import Require
from sandbox.e2b_server import E2bServer
from suture.errors import SandboxBroken, SandboxUnavailable, UsageError
from suture.sandbox import Mount, ProgramLimits, RunRequest
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.e2b import E2bSandbox
from suture.sandbox.e2b.e2b_transport import stop

KEY = "e2b_" + "0" * 40
LIMITS = ProgramLimits(wall_s=30)


@pytest.fixture
async def server() -> AsyncIterator[E2bServer]:
    """A local E2B server, which a test or `sandbox` starts."""
    server = E2bServer()
    yield server
    await server.stop()


@pytest.fixture
async def sandbox(server: E2bServer, require: Require) -> AsyncIterator[E2bSandbox]:
    """A sandbox on the local server; skipped if this machine cannot make the server's machines."""
    is_supported = os.geteuid() == 0 and find_bubblewraps() and shutil.which("python3", path="/usr/bin")
    require("e2b-server", bool(is_supported), "its machines need root, bubblewrap and /usr/bin/python3")
    address = await server.start()
    sandbox = E2bSandbox(key=KEY, options={"api_url": address, "sandbox_url": address, "http_version": "1.1"})
    yield sandbox
    await sandbox.close()


async def test_programs_and_code_run_with_files(sandbox: E2bSandbox, server: E2bServer) -> None:
    code = "import os, sys; print(os.getcwd(), os.getuid() > 60000, sys.stdin.read()); "
    code += "open('x', 'wb').write(b'\\xff')"
    result = await sandbox.run(RunRequest(python=code, stdin=b"in", collect=("x",), limits=LIMITS))
    assert (result.status, result.stdout, result.files) == ("ok", b"/box True in\n", {"x": b"\xff"}), result

    result = await sandbox.run(
        RunRequest(argv=("sh", "-c", "cat a; exit 3"), files={"a": b"1"}, limits=LIMITS)
    )

    assert (result.exit_code, result.stdout) == (3, b"1")
    assert all(request["allow_internet_access"] is False for request in server.created)
    assert server.api_keys == {KEY}
    # One machine for the self-test and one for each program; all are deleted.
    assert len(server.created) == len(set(server.deleted)) == 3


async def test_a_program_has_no_network_and_ends_at_its_time_limit(sandbox: E2bSandbox) -> None:
    code = """
import os, socket, time
try: socket.create_connection(("192.0.2.1", 80), 3); print("open")
except OSError: print("closed", flush=True)
if os.fork() == 0: os.setsid()
time.sleep(600)
"""
    result = await sandbox.run(RunRequest(python=code, limits=ProgramLimits(wall_s=4)))

    assert (result.status, result.stdout) == ("timeout", b"closed\n")


async def test_frames_are_exchanged_with_a_program(sandbox: E2bSandbox) -> None:
    code = """
import sys
while head := sys.stdin.buffer.read(4):
    word = sys.stdin.buffer.read(int.from_bytes(head, "big"))
    sys.stdout.buffer.write(head + word[::-1]); sys.stdout.flush()
"""

    async with sandbox.open(RunRequest(python=code, limits=LIMITS)) as channel:
        await channel.send(bytes(range(256)) * 500)
        assert await channel.receive(20) == (bytes(range(256)) * 500)[::-1]
        assert (await channel.finish()).status == "ok"


async def test_mounts_of_this_machine_are_refused(sandbox: E2bSandbox) -> None:
    with pytest.raises(UsageError, match="it runs on another machine"):
        await sandbox.run(RunRequest(python="", mounts=(Mount(source="/usr/lib", target="/opt/x"),)))


async def test_an_unused_machine_is_deleted(sandbox: E2bSandbox, server: E2bServer) -> None:
    await sandbox.capabilities()
    server.start_delay_s = 0.3
    task = asyncio.create_task(sandbox.run(RunRequest(python="", limits=LIMITS)))
    while len(server.created) < 2:
        await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(server.created) == len(set(server.deleted)) == 2


async def test_a_missing_key_or_service_is_reported() -> None:
    with pytest.raises(SandboxUnavailable, match="needs a key"):
        await E2bSandbox(key="").capabilities()
    nowhere = "http://127.0.0.1:9"
    options = {"api_url": nowhere, "sandbox_url": nowhere, "http_version": "1.1", "retries": 0}
    with pytest.raises((SandboxUnavailable, SandboxBroken), match="E2B"):
        await E2bSandbox(key=KEY, options=options).capabilities()


async def test_a_task_that_ignores_cancellation_twice_still_ends() -> None:
    async def stubborn() -> None:
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await stop([task])

    assert task.cancelled()
