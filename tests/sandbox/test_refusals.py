"""If the system refuses something while a sandbox is built, that is a `SandboxBroken`, and nothing is left
behind."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.sandbox_programs import python_request
from suture.errors import SandboxBroken
from suture.sandbox import BubblewrapSandbox, Capabilities, RunRequest
from suture.sandbox.execution.memory_cgroups import find_cgroup_parent
from suture.sandbox.self_test.self_tested_sandbox import KNOWN_REPORTS, SelfTestedSandbox
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess


@contextmanager
def descriptors(more: int) -> Iterator[None]:
    """So many more can be had than are open now."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    try:
        # Filled up, as the limit is on the highest number and not on how many there are.
        highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
        while (handle := os.open(os.devnull, os.O_RDONLY)) < highest:
            held.append(handle)
        os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (handle + more, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for handle in held:
            os.close(handle)


def all_groups() -> set[str]:
    home, _ = find_cgroup_parent()
    return {folder.name for folder in home.folder.glob(f"suture-{os.getpid()}-*")} if home else set()


@pytest.fixture(autouse=True)
def earlier() -> set[str]:
    """What other tests of this process still hold."""
    return all_groups()


@pytest.mark.parametrize("conversation", [False, True])
async def test_a_host_that_can_open_no_more_files(
    earlier: set[str], sandbox: BubblewrapSandbox, conversation: bool
) -> None:
    await sandbox.capabilities()
    request, told = RunRequest(python="print(1)"), set()
    for more in range(0, 22, 3):
        await sandbox.release()  # so that a sandbox must be built
        try:
            with descriptors(more):
                if conversation:
                    async with sandbox.open(request) as channel:
                        await channel.finish()
                else:
                    await sandbox.run(request)
        except SandboxBroken as fault:
            told.add((fault.message.partition(":")[0], "ulimit -n" in fault.remedy))
    assert ("bubblewrap could not build the sandbox", True) in told
    await sandbox.release()
    for _ in range(100):
        if not all_groups() - earlier:
            break
        await asyncio.sleep(0.02)
    assert not all_groups() - earlier
    assert (await sandbox.run(request)).stdout == b"1\n"


async def test_a_group_that_cannot_be_limited_is_taken_away(
    earlier: set[str], sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (await sandbox.capabilities()).memory_enforcement == "sampler":
        pytest.skip("no control groups")

    def refuse(*_: object) -> None:
        raise PermissionError("no such right")

    await sandbox.release()
    monkeypatch.setattr("suture.sandbox.execution.memory_cgroups.MemoryCgroup._write_limit", refuse)
    with pytest.raises(SandboxBroken, match="no such right"):
        await sandbox.run(RunRequest(python=""))
    await sandbox.release()
    assert not all_groups() - earlier


async def test_a_conversation_that_outlives_the_close_leaves_no_group(
    earlier: set[str], sandbox: BubblewrapSandbox
) -> None:
    if (await sandbox.capabilities()).memory_enforcement == "sampler":
        pytest.skip("no control groups")
    async with sandbox.open(RunRequest(python="import time; time.sleep(600)")):
        assert all_groups() - earlier
        await sandbox.close()
    assert not all_groups() - earlier


async def test_no_folder_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(SandboxBroken, match="cannot make a folder for a program"):
        await UnsafeSubprocess(notice=lambda: None).run(python_request("pass"))


async def test_a_sandbox_that_cannot_be_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Claiming(BubblewrapSandbox):
        async def capabilities(self) -> Capabilities:
            return Capabilities(level="namespace", mode="cold", identity=str(tmp_path))

    before = set(KNOWN_REPORTS)
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    self_tested_cache = SelfTestedSandbox(Claiming)
    with pytest.raises(SandboxBroken, match="bubblewrap could not be tested"):
        await self_tested_cache.run(python_request("pass"))
    assert set(KNOWN_REPORTS) == before, "a fault was kept as a finding"
    await self_tested_cache.close()
