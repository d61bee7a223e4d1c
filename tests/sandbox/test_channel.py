"""Conversations that end leave nobody behind; the rest of what they do is in `suture.sandbox.conformance`."""

from __future__ import annotations

import uuid

from sandbox.sandbox_programs import eventually_gone, python
from suture.sandbox import BubblewrapSandbox


async def test_late(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    async with sandbox.open(python(f"import time; time.sleep(600) # {marker}")) as channel:
        assert await channel.receive(0.3) is None
        await eventually_gone(marker)
        await channel.send(b"into the void")
        assert await channel.receive(1) is None
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
