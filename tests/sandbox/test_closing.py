"""Closing and cancelling also end programs and zygotes that are still starting."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import cast

import pytest

from sandbox.sandbox_programs import find_processes, wait_until_gone
from suture.errors import SandboxBroken
from suture.sandbox import BubblewrapSandbox, RunRequest
from suture.sandbox.execution.process import start_session
from suture.sandbox.zygote import Zygote, ZygotePool


@pytest.mark.parametrize("delay_s", [0.0, 0.02])
async def test_closing_ends_a_program_that_is_starting(sandbox: BubblewrapSandbox, delay_s: float) -> None:
    await sandbox.release()  # without an idle zygote, the run must start one
    task = asyncio.create_task(sandbox.run(RunRequest(python="import time; time.sleep(600)")))
    await asyncio.sleep(delay_s)
    # True on a fast machine.
    has_begun = delay_s > 0 and all(starting.done() for starting in sandbox._starting)

    async with asyncio.timeout(30):
        await sandbox.close()
        if has_begun:
            assert (await task).status == "signalled"
        else:
            with pytest.raises(SandboxBroken):
                await task

    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"


class FakeZygote:
    """Records whether it was shut down."""

    is_usable = True
    is_shut_down = False

    async def shut_down(self) -> None:
        self.is_shut_down = True


@pytest.mark.parametrize("start_next", [False, True])
async def test_a_closed_pool_shuts_down_a_zygote_that_starts_late(start_next: bool) -> None:
    pool, may_start = ZygotePool(), asyncio.Event()
    zygotes: list[FakeZygote] = []

    async def start() -> Zygote:
        await may_start.wait()
        zygotes.append(FakeZygote())
        return cast("Zygote", zygotes[-1])

    async def lease() -> None:
        async with pool.lease("key", start, start_next=start_next):
            pytest.fail("it was leased")

    task = asyncio.create_task(lease())
    await asyncio.sleep(0)
    await pool.close()
    may_start.set()

    with pytest.raises(SandboxBroken, match="closed"):
        await task

    await asyncio.sleep(0)
    assert [zygote.is_shut_down for zygote in zygotes] == [True]


async def test_dead_idle_zygotes_are_dropped_by_the_next_lease() -> None:
    pool, zygotes = ZygotePool(), [FakeZygote(), FakeZygote()]
    unused_zygotes = iter(zygotes)

    async def start() -> Zygote:
        return cast("Zygote", next(unused_zygotes))

    async with pool.lease("one", start):
        pass
    zygotes[0].is_usable = False
    async with pool.lease("another", start):
        pass

    assert [zygote.is_shut_down for zygote in zygotes] == [True, False]

    await pool.close()
    assert zygotes[1].is_shut_down


@pytest.mark.parametrize("steps", range(2, 6))
async def test_a_cancelled_start_leaves_no_process(steps: int) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(start_session(("/bin/sh", "-c", f"sh -c 'sleep 600; : {marker}' & wait")))
    for _ in range(steps):
        await asyncio.sleep(0)
    while len(find_processes(marker)) < 2:
        time.sleep(0.02)  # not asyncio.sleep: the start must not continue meanwhile
    task.cancel()

    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task

    await wait_until_gone(marker)
