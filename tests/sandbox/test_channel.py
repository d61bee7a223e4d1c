"""Conversations with programs that keep to the frames, and with programs that do not."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from sandbox.sandbox_programs import eventually_gone, python
from suture.errors import UsageError
from suture.sandbox import BubblewrapSandbox, ProgramLimits
from suture.sandbox.channel import MOST_FRAME_BYTES

ECHO = """
    import os, sys
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(4):
        frame = source.read(int.from_bytes(head, "big"))
        print("saw", len(frame), file=sys.stderr, flush=True)
        sink.write(len(frame).to_bytes(4, "big") + frame[::-1]); sink.flush()
    open("out", "w").write("done")
"""


async def test_frames_go_both_ways(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(python(ECHO, collect=("out",))) as channel:
        for frame in (b"abc", b"", b"x" * 3_000_000):
            await channel.send(frame)
            assert await channel.receive(30) == frame[::-1]
        result = await channel.finish()
    assert (result.status, result.stderr) == ("ok", b"saw 3\nsaw 0\nsaw 3000000\n")
    assert result.files == {"out": b"done"}


async def test_late(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    async with sandbox.open(python(f"import time; time.sleep(600) # {marker}")) as channel:
        assert await channel.receive(0.3) is None
        await eventually_gone(marker)
        await channel.send(b"into the void")
        assert await channel.receive(1) is None
        assert (await channel.finish()).status == "timeout"


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("import sys; sys.exit(7)", "failed", 7),
        ("print('not a frame' * 100, flush=True); import time; time.sleep(600)", "failed", None),
        ("import os, time; os.write(1, b'\\0\\0'); os.close(1); time.sleep(600)", "timeout", None),
        ("import os; os.write(1, b'\\0\\0\\0\\x09half'); os._exit(0)", "ok", 0),
        ("import os; os.kill(os.getpid(), 6)", "signalled", None),
    ],
)
async def test_no_frame(sandbox: BubblewrapSandbox, code: str, status: str, exit_code: int | None) -> None:
    async with sandbox.open(python(code)) as channel:
        assert await channel.receive(3) is None
        result = await channel.finish()
    assert (result.status, result.exit_code) == (status, exit_code)


async def test_sending_to_a_dead_program_does_not_fail(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(python("pass")) as channel:
        await asyncio.sleep(0.3)
        for _ in range(5):
            await channel.send(b"x" * 200_000)
        assert await channel.receive(5) is None


async def test_the_wall_clock_limit_covers_the_conversation(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(
        python("import time; time.sleep(600)", limits=ProgramLimits(wall_s=0.5))
    ) as channel:
        assert await channel.receive(60) is None
        assert (await channel.finish()).status == "timeout"


async def test_a_program_that_ignores_the_end_of_its_stdin_is_ended(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(python("import time; time.sleep(600)")) as channel:
        assert (await channel.finish()).status == "timeout"


async def test_leaving_kills_the_tree(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import subprocess, sys
        subprocess.Popen(["/bin/sh", "-c", "sleep 600 # {marker}"], start_new_session=True)
        sys.stdout.buffer.write(b"\\0\\0\\0\\1x"); sys.stdout.flush()
        sys.stdin.read()
    """
    async with sandbox.open(python(code)) as channel:
        assert await channel.receive(30) == b"x"
    await eventually_gone(marker)


async def test_leaving_with_unread_output_holds_nothing(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(python("import os\nwhile True: os.write(1, b'x' * 65536)")):
        await asyncio.sleep(0.2)


async def test_a_frame_that_is_too_long_is_not_sent(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(python("pass")) as channel:
        with pytest.raises(UsageError, match="too long"):
            await channel.send(bytes(MOST_FRAME_BYTES + 1))
