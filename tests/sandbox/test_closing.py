"""Closing and cancelling also end what is only being started."""

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
async def test_a_program_that_is_being_started_does_not_run_on(
    sandbox: BubblewrapSandbox, delay_s: float
) -> None:
    await sandbox.release()  # no zygote waits, so one must be started
    task = asyncio.create_task(sandbox.run(RunRequest(python="import time; time.sleep(600)")))
    await asyncio.sleep(delay_s)
    has_begun = delay_s > 0 and all(starting.done() for starting in sandbox._starting)  # on a fast machine
    async with asyncio.timeout(30):
        await sandbox.close()
        if has_begun:
            assert (await task).status == "signalled"
        else:
            with pytest.raises(SandboxBroken):
                await task
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"


class Slow:
    is_usable = True
    ended = False

    async def shut_down(self) -> None:
        self.ended = True


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_closed_pool_keeps_nothing(ahead: bool) -> None:
    pool, go = ZygotePool(), asyncio.Event()
    made: list[Slow] = []

    async def start() -> Zygote:
        await go.wait()
        made.append(Slow())
        return cast("Zygote", made[-1])

    async def lease() -> None:
        async with pool.lease("key", start, start_next=ahead):
            pytest.fail("it was leased")

    task = asyncio.create_task(lease())
    await asyncio.sleep(0)
    await pool.close()
    go.set()
    with pytest.raises(SandboxBroken, match="closed"):
        await task
    await asyncio.sleep(0)
    assert [zygote.ended for zygote in made] == [True]


async def test_dead_idle_zygotes_are_dropped_by_the_next_lease() -> None:
    pool, made = ZygotePool(), [Slow(), Slow()]
    waiting = iter(made)

    async def start() -> Zygote:
        return cast("Zygote", next(waiting))

    async with pool.lease("one", start):
        pass
    made[0].is_usable = False
    async with pool.lease("another", start):
        pass
    assert [zygote.ended for zygote in made] == [True, False]
    await pool.close()
    assert made[1].ended


@pytest.mark.parametrize("steps", range(2, 6))
async def test_a_cancelled_start_leaves_no_process(steps: int) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(start_session(("/bin/sh", "-c", f"sh -c 'sleep 600; : {marker}' & wait")))
    for _ in range(steps):
        await asyncio.sleep(0)
    while len(find_processes(marker)) < 2:
        time.sleep(0.02)  # not asyncio.sleep: the start must get no further meanwhile
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task
    await wait_until_gone(marker)
