"""Channels that end leave no process behind; `sandbox.conformance` covers the rest."""

from __future__ import annotations

import os
import uuid

from sandbox.sandbox_programs import python_request, wait_until_gone
from suture.sandbox import BubblewrapSandbox, ProgramLimits, RunRequest


async def test_receiving_times_out_and_ends_the_program(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"

    async with sandbox.open(python_request(f"import time; time.sleep(600) # {marker}")) as channel:
        assert await channel.receive(0.3) is None
        await wait_until_gone(marker)
        await channel.send(b"into the void")
        assert await channel.receive(1) is None
        assert (await channel.finish()).status == "timeout"


async def test_leaving_the_channel_kills_all_processes(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import subprocess, sys
        subprocess.Popen(["/bin/sh", "-c", "sleep 600 # {marker}"], start_new_session=True)
        sys.stdout.buffer.write(b"\\0\\0\\0\\1x"); sys.stdout.flush()
        sys.stdin.read()
    """

    async with sandbox.open(python_request(code)) as channel:
        assert await channel.receive(30) == b"x"

    await wait_until_gone(marker)


LIST_DESCRIPTORS = """
import os, stat, sys
names = [name for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)]
report = repr((sorted(names), [stat.S_ISFIFO(os.fstat(handle).st_mode) for handle in (0, 1, 2)])).encode()
sys.stdout.buffer.write(len(report).to_bytes(4, "big") + report)
sys.stdout.flush()
"""


async def test_a_program_with_a_channel_has_only_its_standard_streams(
    sandbox: BubblewrapSandbox,
) -> None:
    async with sandbox.open(RunRequest(python=LIST_DESCRIPTORS)) as channel:
        assert await channel.receive(30) == b"(['0', '1', '2'], [True, True, True])"


ECHO = """
import sys
for _ in range(2):
    size = sys.stdin.buffer.read(4)
    sys.stdout.buffer.write(size + sys.stdin.buffer.read(int.from_bytes(size, "big")))
    sys.stdout.flush()
"""


async def test_frames_larger_than_a_pipe_pass_in_both_directions(sandbox: BubblewrapSandbox) -> None:
    async with sandbox.open(RunRequest(python=ECHO)) as channel:
        for frame in (os.urandom(3 << 20), b"small"):
            await channel.send(frame)
            assert await channel.receive(30) == frame
        assert (await channel.finish()).status == "ok"


async def test_channels_leave_no_descriptor_on_the_host(sandbox: BubblewrapSandbox) -> None:
    before = 0

    for turn in range(6):
        async with sandbox.open(RunRequest(python=ECHO)) as channel:
            await channel.send(b"x")
            assert await channel.receive(30) == b"x"
            if turn % 2:  # every other channel is left without `finish`
                await channel.finish()
        if turn == 1:
            before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    if (await sandbox.capabilities()).mode != "spare":  # a spare sandbox starts the next ones meanwhile
        assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


async def test_a_silent_program_times_out_and_is_killed(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"import os, time; os.close(0); os.close(1); time.sleep(600) # {marker}"

    async with sandbox.open(RunRequest(python=code, limits=ProgramLimits(wall_s=2))) as channel:
        await channel.send(b"x" * (1 << 20))
        assert await channel.receive(30) is None

    async with sandbox.open(RunRequest(python=ECHO)) as channel:
        await channel.send(b"next")
        assert await channel.receive(30) == b"next"
