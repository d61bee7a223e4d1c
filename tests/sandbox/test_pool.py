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

from sandbox.sandbox_programs import find_processes, wait_until_gone, write_script
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
    StartMode,
    SupportsCloseCallbacks,
)


class CountingSandbox:
    """Records its instances, how many requests each runs at once, and how often it is closed."""

    name = "counted"
    instances: list[CountingSandbox]

    def __init__(self) -> None:
        self.close_count = 0
        self.running = self.max_running = 0
        self.may_finish = asyncio.Event()
        self.may_finish.set()
        CountingSandbox.instances.append(self)

    async def capabilities(self) -> Capabilities:
        return Capabilities(level="none", mode="cold")

    async def run(self, request: RunRequest) -> RunResult:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            await self.may_finish.wait()
            await asyncio.sleep(0)
            if request.python == "break":
                raise SandboxBroken("the sandbox fell")
            return RunResult(status="ok", stdout=(request.python or "").encode())
        finally:
            self.running -= 1

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        raise SandboxBroken("the sandbox fell")

    async def close(self) -> None:
        self.close_count += 1


@pytest.fixture(autouse=True)
def _forget_instances() -> None:
    """Start each test without recorded instances."""
    CountingSandbox.instances = []


async def run_request(sandbox: Sandbox, request: RunRequest) -> RunResult:
    """Run a request in a sandbox, as a task of the pool."""
    return await sandbox.run(request)


def output_of(answer: RunResult | SandboxBroken) -> bytes | None:
    """Return what a program printed, or nothing if its sandbox broke."""
    return None if isinstance(answer, SandboxBroken) else answer.stdout


def numbered_requests(count: int, consumed: list[int] | None = None) -> Iterator[RunRequest]:
    """Yield requests whose code is their number, and note each one that is consumed."""
    for number in range(count):
        if consumed is not None:
            consumed.append(number)
        yield RunRequest(python=str(number))


async def test_results_come_in_order_and_sandboxes_are_reused() -> None:
    async with SandboxPool(CountingSandbox, size=3) as pool:
        results = [output_of(result) async for result in pool.map(run_request, numbered_requests(20))]
    assert results == [str(number).encode() for number in range(20)]
    assert len(CountingSandbox.instances) == 3
    assert [sandbox.max_running for sandbox in CountingSandbox.instances] == [1, 1, 1]
    assert all(sandbox.close_count for sandbox in CountingSandbox.instances)


async def test_requests_are_consumed_only_as_fast_as_they_run() -> None:
    consumed: list[int] = []

    async with SandboxPool(CountingSandbox, size=2) as pool:
        async with contextlib.aclosing(pool.map(run_request, numbered_requests(1000, consumed))) as results:
            assert output_of(await anext(results)) == b"0"
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(consumed) <= 5
            assert output_of(await anext(results)) == b"1"

        assert len(consumed) <= 6
        assert all(sandbox.running == 0 for sandbox in CountingSandbox.instances)

        async with asyncio.timeout(5), pool.lease(), pool.lease():
            pass


async def test_an_async_stream_of_requests_is_served() -> None:
    async def stream() -> AsyncIterator[RunRequest]:
        for request in numbered_requests(5):
            await asyncio.sleep(0)
            yield request

    async with SandboxPool(CountingSandbox, size=2) as pool:
        answers = [output_of(answer) async for answer in pool.map(run_request, stream())]

    assert answers == [b"0", b"1", b"2", b"3", b"4"]


async def test_borrowers_wait_for_their_turn() -> None:
    async with SandboxPool(CountingSandbox, size=1) as pool:
        order = []

        async def borrow(name: str) -> Sandbox:
            async with pool.lease() as sandbox:
                order.append(name)
                await asyncio.sleep(0.01)
                return sandbox

        sandboxes = await asyncio.gather(*map(borrow, "abc"))

        assert order == ["a", "b", "c"]
        assert len(set(map(id, sandboxes))) == 1


async def test_a_broken_sandbox_is_replaced() -> None:
    async with SandboxPool(CountingSandbox, size=1) as pool:
        for break_sandbox in (break_in_a_run, break_in_a_channel):
            async with pool.lease() as sandbox:
                await break_sandbox(sandbox)  # the borrower catches the error itself
        async with pool.lease() as sandbox:
            assert (await sandbox.run(RunRequest(python="1"))).stdout == b"1"

    assert [sandbox.close_count for sandbox in CountingSandbox.instances] == [1, 1, 1]


async def break_in_a_run(sandbox: Sandbox) -> None:
    """Break a sandbox with a run."""
    with pytest.raises(SandboxBroken):
        await sandbox.run(RunRequest(python="break"))


async def break_in_a_channel(sandbox: Sandbox) -> None:
    """Break a sandbox with a channel."""
    with pytest.raises(SandboxBroken):
        async with sandbox.open(RunRequest(python="break")):
            pytest.fail("the channel was opened")


async def test_a_broken_sandbox_does_not_affect_other_requests() -> None:
    codes = ("0", "break", "2", "break", "break", "5", "6")
    async with SandboxPool(CountingSandbox, size=2) as pool:
        answers = [
            answer async for answer in pool.map(run_request, (RunRequest(python=code) for code in codes))
        ]

    assert [output_of(answer) for answer in answers] == [b"0", None, b"2", None, None, b"5", b"6"]
    assert len(CountingSandbox.instances) == 5
    assert [sandbox.close_count for sandbox in CountingSandbox.instances] == [1] * 5


async def test_any_other_fault_ends_the_iteration() -> None:
    async def fail(sandbox: Sandbox, number: int) -> int:
        if number == 2:
            raise UsageError("two")
        return number

    async with SandboxPool(CountingSandbox, size=2) as pool:
        answers = pool.map(fail, range(100))
        assert [await anext(answers), await anext(answers)] == [0, 1]
        with pytest.raises(UsageError, match="two"):
            await anext(answers)
        assert all(sandbox.running == 0 for sandbox in CountingSandbox.instances)


async def test_close_callbacks_run_when_the_sandbox_closes() -> None:
    close_counts = []

    async def callback() -> None:
        close_counts.append(CountingSandbox.instances[0].close_count)

    async with SandboxPool(CountingSandbox, size=1) as pool, pool.lease() as sandbox:
        assert isinstance(sandbox, SupportsCloseCallbacks)
        sandbox.add_close_callback(callback)

    assert close_counts == [0]


async def test_an_empty_or_closed_pool_is_refused() -> None:
    with pytest.raises(UsageError, match="0 sandboxes"):
        SandboxPool(CountingSandbox, size=0)

    pool = SandboxPool(CountingSandbox, size=1)
    await pool.close()
    await pool.close()

    with pytest.raises(UsageError, match="closed"):
        async with pool.lease():
            pytest.fail("a sandbox was lent")


async def test_a_pool_of_real_sandboxes(mode: StartMode) -> None:
    code = "import os; print(sum(range(int(input()))), os.listdir('.'), end='')"
    requests = (RunRequest(python=code, stdin=str(number).encode()) for number in range(12))
    async with SandboxPool(lambda: BubblewrapSandbox(mode=mode), size=2) as pool:
        results = [output_of(result) async for result in pool.map(run_request, requests)]
    assert results == [f"{number * (number - 1) // 2} []".encode() for number in range(12)]


HOST_PROGRAM = """
import asyncio, sys
from suture.sandbox import BubblewrapSandbox, Mount, ProgramLimits, RunRequest, SandboxPool
marker, mode, path = sys.argv[1:]
# Bubblewrap's own arguments contain the marker too, so that a sandbox which is still starting is found.
mount = Mount(source="/usr/lib", target="/opt/" + marker)
limits = ProgramLimits(wall_s=300)
request = RunRequest(argv=("/bin/sh", "-c", "sleep 600 # " + marker), mounts=(mount,), limits=limits)
def run(sandbox, request): return sandbox.run(request)
async def main():
    pool = SandboxPool(lambda: BubblewrapSandbox(mode=mode, find=lambda: (path,)), size=3)
    print("ready", flush=True)
    async for _ in pool.map(run, (request for _ in range(100))): pass
asyncio.run(main())
"""


async def kill_host(mode: str, bubblewrap_path: str, delay_s: float | None) -> str:
    """Start a host with a pool, kill it, and return the marker of its programs.

    Args:
        mode: The start mode of the sandboxes.
        bubblewrap_path: The bubblewrap that they use.
        delay_s: When the host is killed, in seconds; `None` waits until three programs run.
    """
    marker = f"marker-{uuid.uuid4()}"
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOST_PROGRAM,
        marker,
        mode,
        bubblewrap_path,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert host.stdout is not None
    await host.stdout.readline()
    if delay_s is None:
        while len(find_processes(f"sleep 600 # {marker}\0")) < 3:
            await asyncio.sleep(0.02)
    else:
        await asyncio.sleep(delay_s)
    host.kill()
    await host.wait()
    return marker


@pytest.fixture
def bubblewrap_path(sandbox_requirement: Requirement) -> str:
    """The path of the working bubblewrap."""
    return sandbox_requirement.detail.split()[0]


async def test_nothing_survives_a_host_that_is_killed_during_runs(
    mode: StartMode, bubblewrap_path: str
) -> None:
    await wait_until_gone(await kill_host(mode, bubblewrap_path, None))


async def test_nothing_survives_without_the_parent_death_signal(
    mode: StartMode, reachable_bubblewrap: str, tmp_path: Path
) -> None:
    """The host may die before its bubblewrap has requested the signal, so its death must be noticed anyway."""
    drop_option = 'for word do shift; [ "$word" = --die-with-parent ] || set -- "$@" "$word"; done'
    wrapper = write_script(tmp_path / "bwrap", f'{drop_option}\nexec {reachable_bubblewrap} "$@"')
    await wait_until_gone(await kill_host(mode, str(wrapper), None))


async def test_nothing_survives_a_host_that_is_killed_while_sandboxes_start(
    mode: StartMode, bubblewrap_path: str
) -> None:
    markers = await asyncio.gather(*(kill_host(mode, bubblewrap_path, 0.03 * step) for step in range(6)))
    for marker in markers:
        await wait_until_gone(marker)
