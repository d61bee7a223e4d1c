"""If the system refuses a resource while a sandbox starts, `SandboxBroken` is raised and nothing is left behind."""

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
def limit_free_descriptors(count: int) -> Iterator[None]:
    """Limit how many more descriptors this process can open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = []
    try:
        # Fill every gap first: the limit is on the highest number, not on how many are open.
        highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
        while (handle := os.open(os.devnull, os.O_RDONLY)) < highest:
            fillers.append(handle)
        os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (handle + count, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for handle in fillers:
            os.close(handle)


def list_groups() -> set[str]:
    """Return the names of all control groups of this process."""
    parent, _ = find_cgroup_parent()
    return {folder.name for folder in parent.folder.glob(f"suture-{os.getpid()}-*")} if parent else set()


@pytest.fixture(autouse=True)
def earlier_groups() -> set[str]:
    """The control groups that other tests of this process still use."""
    return list_groups()


@pytest.mark.parametrize("with_channel", [False, True])
async def test_a_host_without_free_descriptors_is_reported(
    earlier_groups: set[str], sandbox: BubblewrapSandbox, with_channel: bool
) -> None:
    await sandbox.capabilities()
    request, errors = RunRequest(python="print(1)"), set()
    for free in range(0, 22, 3):
        await sandbox.release()  # so that the run must start a sandbox
        try:
            with limit_free_descriptors(free):
                if with_channel:
                    async with sandbox.open(request) as channel:
                        await channel.finish()
                else:
                    await sandbox.run(request)
        except SandboxBroken as fault:
            errors.add((fault.message.partition(":")[0], "ulimit -n" in fault.remedy))

    assert ("bubblewrap could not build the sandbox", True) in errors

    await sandbox.release()
    for _ in range(100):
        if not list_groups() - earlier_groups:
            break
        await asyncio.sleep(0.02)

    assert not list_groups() - earlier_groups
    assert (await sandbox.run(request)).stdout == b"1\n"


async def test_a_group_that_cannot_be_limited_is_removed(
    earlier_groups: set[str], sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
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
    assert not list_groups() - earlier_groups


async def test_a_channel_that_outlives_the_close_leaves_no_group(
    earlier_groups: set[str], sandbox: BubblewrapSandbox
) -> None:
    if (await sandbox.capabilities()).memory_enforcement == "sampler":
        pytest.skip("no control groups")
    async with sandbox.open(RunRequest(python="import time; time.sleep(600)")):
        assert list_groups() - earlier_groups
        await sandbox.close()
    assert not list_groups() - earlier_groups


async def test_a_missing_temporary_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(SandboxBroken, match="cannot make a folder for a program"):
        await UnsafeSubprocess(notice=lambda: None).run(python_request("pass"))


async def test_a_failed_self_test_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class ClaimingSandbox(BubblewrapSandbox):
        async def capabilities(self) -> Capabilities:
            return Capabilities(level="namespace", mode="cold", identity=str(tmp_path))

    before = set(KNOWN_REPORTS)
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    sandbox = SelfTestedSandbox(ClaimingSandbox)

    with pytest.raises(SandboxBroken, match="bubblewrap could not be tested"):
        await sandbox.run(python_request("pass"))
    assert set(KNOWN_REPORTS) == before, "a fault was kept as a finding"

    await sandbox.close()
