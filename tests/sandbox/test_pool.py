"""A pool lends each sandbox to one borrower, accepts only as much work as it can do, and cleans up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from requirements import Require
from sandbox.sandbox_programs import eventually_gone, survivors
from suture.errors import SandboxBroken, UsageError
from suture.sandbox import (
    BubblewrapSandbox,
    Capabilities,
    Channel,
    Requirement,
    RunRequest,
    RunResult,
    Sandbox,
    SandboxPool,
    SupportsCloseCallbacks,
)
from suture.sandbox.bubblewrap.root_staging import is_reachable


class Counted:
    """A sandbox of which is known when it runs what."""

    name = "counted"
    made: list[Counted]

    def __init__(self) -> None:
        self.closed = 0
        self.running = self.most = 0
        self.go = asyncio.Event()
        self.go.set()
        Counted.made.append(self)

    async def capabilities(self) -> Capabilities:
        return Capabilities(level="none", mode="cold")

    async def run(self, request: RunRequest) -> RunResult:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
            await asyncio.sleep(0)
            if request.python == "break":
                raise SandboxBroken("the sandbox fell")
            return RunResult(status="ok", stdout=(request.python or "").encode())
        finally:
            self.running -= 1

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        raise SandboxBroken("the sandbox fell")

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    Counted.made = []


async def run(sandbox: Sandbox, request: RunRequest) -> RunResult:
    return await sandbox.run(request)


def said(answer: RunResult | SandboxBroken) -> bytes | None:
    """What a program printed; nothing where its wall fell."""
    return None if isinstance(answer, SandboxBroken) else answer.stdout


def numbered(count: int, taken: list[int] | None = None) -> Iterator[RunRequest]:
    for number in range(count):
        if taken is not None:
            taken.append(number)
        yield RunRequest(python=str(number))


async def test_results_come_in_order_and_sandboxes_are_reused() -> None:
    async with SandboxPool(Counted, size=3) as pool:
        results = [said(result) async for result in pool.map(run, numbered(20))]
    assert results == [str(number).encode() for number in range(20)]
    assert len(Counted.made) == 3
    assert [sandbox.most for sandbox in Counted.made] == [1, 1, 1]
    assert all(sandbox.closed for sandbox in Counted.made)


async def test_no_more_is_taken_than_can_be_done() -> None:
    taken: list[int] = []
    async with SandboxPool(Counted, size=2) as pool:
        async with contextlib.aclosing(pool.map(run, numbered(1000, taken))) as results:
            assert said(await anext(results)) == b"0"
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(taken) <= 5
            assert said(await anext(results)) == b"1"
        assert len(taken) <= 6
        assert all(sandbox.running == 0 for sandbox in Counted.made)
        async with asyncio.timeout(5), pool.lease(), pool.lease():
            pass


async def test_a_stream_of_requests() -> None:
    async def stream() -> AsyncIterator[RunRequest]:
        for request in numbered(5):
            await asyncio.sleep(0)
            yield request

    async with SandboxPool(Counted, size=2) as pool:
        answers = [said(answer) async for answer in pool.map(run, stream())]
    assert answers == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_borrower_waits_for_its_turn() -> None:
    async with SandboxPool(Counted, size=1) as pool:
        order = []

        async def borrow(name: str) -> Sandbox:
            async with pool.lease() as sandbox:
                order.append(name)
                await asyncio.sleep(0.01)
                return sandbox

        lent = await asyncio.gather(*map(borrow, "abc"))
        assert order == ["a", "b", "c"]
        assert len(set(map(id, lent))) == 1


async def test_one_that_broke_is_replaced() -> None:
    async with SandboxPool(Counted, size=1) as pool:
        for how in (in_a_run, in_a_conversation):
            async with pool.lease() as sandbox:
                await how(sandbox)  # its borrower has caught the fault
        async with pool.lease() as sandbox:
            assert (await sandbox.run(RunRequest(python="1"))).stdout == b"1"
    assert [sandbox.closed for sandbox in Counted.made] == [1, 1, 1]


async def in_a_run(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxBroken):
        await sandbox.run(RunRequest(python="break"))


async def in_a_conversation(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxBroken):
        async with sandbox.open(RunRequest(python="break")):
            pytest.fail("it opened")


async def test_one_that_breaks_costs_the_others_nothing() -> None:
    codes = ("0", "break", "2", "break", "break", "5", "6")
    async with SandboxPool(Counted, size=2) as pool:
        answers = [a async for a in pool.map(run, (RunRequest(python=code) for code in codes))]
    assert [said(answer) for answer in answers] == [b"0", None, b"2", None, None, b"5", b"6"]
    assert len(Counted.made) == 5
    assert [sandbox.closed for sandbox in Counted.made] == [1] * 5


async def test_any_other_fault_ends_the_iteration() -> None:
    async def fail(sandbox: Sandbox, number: int) -> int:
        if number == 2:
            raise UsageError("two")
        return number

    async with SandboxPool(Counted, size=2) as pool:
        answers = pool.map(fail, range(100))
        assert [await anext(answers), await anext(answers)] == [0, 1]
        with pytest.raises(UsageError, match="two"):
            await anext(answers)
        assert all(sandbox.running == 0 for sandbox in Counted.made)


async def test_close_callbacks_run_when_the_sandbox_closes() -> None:
    told = []

    async def tell() -> None:
        told.append(Counted.made[0].closed)

    async with SandboxPool(Counted, size=1) as pool, pool.lease() as sandbox:
        assert isinstance(sandbox, SupportsCloseCallbacks)
        sandbox.add_close_callback(tell)
    assert told == [0]


async def test_warming_makes_all_of_them() -> None:
    async with SandboxPool(Counted, size=4) as pool:
        await pool.warm()
        assert len(Counted.made) == 4
        await pool.warm()
        assert len(Counted.made) == 4


async def test_a_pool_that_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="0 sandboxes"):
        SandboxPool(Counted, size=0)
    pool = SandboxPool(Counted, size=1)
    await pool.close()
    await pool.close()
    with pytest.raises(UsageError, match="closed"):
        async with pool.lease():
            pytest.fail("lent")


@pytest.fixture(params=["warm", "spare", "cold"])
def mode(request: pytest.FixtureRequest, sandbox_requirement: Requirement, require: Require) -> str:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    return str(request.param)


async def test_real_sandboxs(mode: str) -> None:
    code = "import os; print(sum(range(int(input()))), os.listdir('.'), end='')"
    requests = (RunRequest(python=code, stdin=str(number).encode()) for number in range(12))
    async with SandboxPool(lambda: BubblewrapSandbox(mode=mode), size=2) as pool:  # type: ignore[arg-type]
        await pool.warm()
        results = [said(result) async for result in pool.map(run, requests)]
    assert results == [f"{number * (number - 1) // 2} []".encode() for number in range(12)]


HOST = """
import asyncio, sys
from suture.sandbox import BubblewrapSandbox, Mount, ProgramLimits, RunRequest, SandboxPool
mark, mode, path = sys.argv[1:]
# The mark is among bubblewrap's own words too, so that a sandbox which is still being built is seen.
mount = Mount(source="/usr/lib", target="/opt/" + mark)
limits = ProgramLimits(wall_s=300)
request = RunRequest(argv=("/bin/sh", "-c", "sleep 600 # " + mark), mounts=(mount,), limits=limits)
def run(sandbox, request): return sandbox.run(request)
async def main():
    pool = SandboxPool(lambda: BubblewrapSandbox(mode=mode, find=lambda: (path,)), size=3)
    print("here", flush=True)
    async for _ in pool.map(run, (request for _ in range(100))): pass
asyncio.run(main())
"""


async def kill_after(mode: str, path: str, seconds: float | None) -> str:
    """Start a host with a pool, kill it, and answer its mark; where no time is given, once it is at work."""
    mark = f"marker-{uuid.uuid4()}"
    host = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOST, mark, mode, path),
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert host.stdout is not None
    await host.stdout.readline()
    if seconds is None:
        while len(survivors(f"sleep 600 # {mark}\0")) < 3:
            await asyncio.sleep(0.02)
    else:
        await asyncio.sleep(seconds)
    host.kill()
    await host.wait()
    return mark


@pytest.fixture
def path(sandbox_requirement: Requirement) -> str:
    return sandbox_requirement.detail.split()[0]


async def test_nothing_outlives_a_host_that_is_killed_at_work(mode: str, path: str) -> None:
    await eventually_gone(await kill_after(mode, path, None))


async def test_nothing_outlives_a_host_that_died_before_its_sandboxs_asked_to_die_with_it(
    mode: str, path: str, tmp_path: Path, require: Require
) -> None:
    require("bubblewrap", is_reachable(path), f"{path} cannot be reached by other users")
    wrapper = tmp_path / "bwrap"
    drop = 'for word do shift; [ "$word" = --die-with-parent ] || set -- "$@" "$word"; done'
    wrapper.write_text(f'#!/bin/sh\n{drop}\nexec {path} "$@"\n')
    wrapper.chmod(0o755)
    await eventually_gone(await kill_after(mode, str(wrapper), None))


async def test_nothing_outlives_a_host_that_is_killed_while_sandboxs_are_built(mode: str, path: str) -> None:
    marks = await asyncio.gather(*(kill_after(mode, path, 0.03 * step) for step in range(6)))
    for mark in marks:
        await eventually_gone(mark)
