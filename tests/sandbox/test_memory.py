"""The limit on total memory: control groups where they can be created, and the sampler elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from requirements import Require
from sandbox.sandbox_programs import python_request
from suture.sandbox import BubblewrapSandbox, ProgramLimits, StartMode
from suture.sandbox.execution.memory_cgroups import MemoryCgroups, find_cgroup_parent
from suture.sandbox.seccomp import build_filter_for_host
from suture.sandbox.self_test.probe import ProbeReport, attack_sandbox

FILL_WITH_PROCESSES = """
    import os, time
    for _ in range(6):
        if os.fork() == 0: break
    data = b"x" * (30 << 20)
    time.sleep(30)
"""
FILL_WITH_FILES = """
    import time
    for folder in ("/box", "/tmp"):
        for n in range(5):
            with open(f"{folder}/{n}", "wb") as file: file.write(bytes(20 << 20))
    time.sleep(30)
"""
MEMORY_LIMIT = ProgramLimits(total_memory_mb=120, wall_s=60)


def without_cgroups() -> MemoryCgroups:
    """Return what a machine has on which no control group can be created."""
    return MemoryCgroups(lambda: (None, "there are none in this test"))


@pytest.mark.parametrize("code", [FILL_WITH_PROCESSES, FILL_WITH_FILES], ids=["processes", "files"])
async def test_without_cgroups_the_sampler_ends_programs_over_the_limit(mode: StartMode, code: str) -> None:
    sandbox = BubblewrapSandbox(mode=mode, cgroups=without_cgroups())

    try:
        capabilities = await sandbox.capabilities()
        assert capabilities.memory_enforcement == "sampler"
        assert "there are none in this test" in capabilities.reason
        assert "total_memory_mb" in capabilities.limits
        assert (await sandbox.run(python_request(code, limits=MEMORY_LIMIT))).status == "memory"

        # Forked processes share most of their pages, so the sampler must not count them twice.
        shared = "import os, time\nfor _ in range(5): os.fork()\ntime.sleep(0.3)"
        assert (await sandbox.run(python_request(shared, limits=MEMORY_LIMIT))).status == "ok"
    finally:
        await sandbox.close()


async def test_a_program_cannot_hide_from_the_sampler(mode: StartMode) -> None:
    hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n"
    code = hide + "import time; x = b'x' * (200 << 20); time.sleep(30)"
    sandbox = BubblewrapSandbox(mode=mode, cgroups=without_cgroups())

    try:
        assert (await sandbox.run(python_request(code, limits=MEMORY_LIMIT))).status == "memory"
    finally:
        await sandbox.close()


async def test_memory_files_are_unavailable_without_a_cgroup(mode: StartMode) -> None:
    code = """
        import errno, os
        try: os.memfd_create("x")
        except OSError as fault: print(errno.errorcode[fault.errno])
        from multiprocessing.shared_memory import SharedMemory
        shared = SharedMemory(create=True, size=1 << 20)
        shared.buf[0] = 1; shared.close(); shared.unlink(); print("fine")
    """
    sandbox = BubblewrapSandbox(mode=mode, cgroups=without_cgroups())

    try:
        assert (await sandbox.run(python_request(code))).stdout == b"ENOSYS\nfine\n"
    finally:
        await sandbox.close()


def allow_memory_files(*, namespaces: bool, memory_files: bool) -> bytes:
    """Build the filter that always allows memory files, whatever is requested."""
    return build_filter_for_host(namespaces=namespaces)


async def test_the_limit_is_not_claimed_if_memory_files_evade_it(
    monkeypatch: pytest.MonkeyPatch, mode: StartMode
) -> None:
    def probe() -> Awaitable[ProbeReport]:
        return attack_sandbox(lambda: BubblewrapSandbox(mode=mode, cgroups=without_cgroups()), "namespace")

    assert "total_memory_mb" in (await probe()).limits

    monkeypatch.setattr("suture.sandbox.bubblewrap.launcher.build_filter_for_host", allow_memory_files)
    report = await probe()
    assert (report.holes, "total_memory_mb" in report.limits) == ({}, False)


async def test_a_real_cgroup_limits_memory(mode: StartMode, require: Require) -> None:
    parent, reason = find_cgroup_parent()
    require("control-groups", parent is not None, reason)
    assert parent is not None

    pattern = f"suture-{os.getpid()}-*"
    before = set(parent.folder.glob(pattern))
    sandbox = BubblewrapSandbox(mode=mode)

    try:
        capabilities = await sandbox.capabilities()

        assert capabilities.memory_enforcement == parent.version
        for _ in range(2):
            result = await sandbox.run(python_request(FILL_WITH_PROCESSES, limits=MEMORY_LIMIT))
            assert result.status == "memory"

        assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"
        assert set(parent.folder.glob(pattern)) - before
    finally:
        await sandbox.close()

    remaining = {folder.name for folder in set(parent.folder.glob(pattern)) - before}
    assert not remaining, remaining


async def test_the_kernel_ends_programs_that_grow_between_two_samples(
    require: Require, mode: StartMode
) -> None:
    parent, reason = find_cgroup_parent()
    require("control-groups", parent is not None, reason)
    sandbox = BubblewrapSandbox(mode=mode)
    limits = ProgramLimits(total_memory_mb=64, memory_mb=2048, wall_s=60)

    try:
        await sandbox.capabilities()
        # The sampler cannot see this memory: a file without a name that no process has mapped.
        code = """
            import os
            for n in range(12):
                handle = os.memfd_create("x")
                for _ in range(5): os.write(handle, bytes(4 << 20))
        """

        assert (await sandbox.run(python_request(code, limits=limits))).status == "memory"
    finally:
        await sandbox.close()


FILL_SOCKET_BUFFERS = """
    import os, socket
    total = 0
    server, connections = socket.create_server(("127.0.0.1", 0)), []
    for _ in range(100):
        client = socket.create_connection(server.getsockname())
        connections += [client, server.accept()[0]]
        client.setblocking(False)
        try:
            while True: total += client.send(bytes(1 << 20))
        except BlockingIOError: pass
    print(total >> 20)
"""
STREAM_THROUGH_SOCKET = """
    import socket, threading
    server = socket.create_server(("127.0.0.1", 0))
    client, read = socket.create_connection(server.getsockname()), 0
    sender = threading.Thread(target=lambda: (client.sendall(bytes(150 << 20)), client.close()))
    sender.start()
    reader = server.accept()[0]
    while chunk := reader.recv(1 << 20): read += len(chunk)
    print(read >> 20)
"""


async def test_tcp_buffers_count_towards_the_limit_of_cgroup_v1(mode: StartMode, require: Require) -> None:
    sandbox = BubblewrapSandbox(mode=mode)

    try:
        enforcement = (await sandbox.capabilities()).memory_enforcement
        require("cgroup1", enforcement == "cgroup1", f"memory is limited by {enforcement}")
        result = await sandbox.run(python_request(FILL_SOCKET_BUFFERS, limits=MEMORY_LIMIT))

        assert result.status == "ok", result
        assert int(result.stdout) <= 200, result  # without a limit the kernel allows more than twice as much

        result = await sandbox.run(python_request(STREAM_THROUGH_SOCKET, limits=MEMORY_LIMIT))
        assert (result.status, result.stdout) == ("ok", b"150\n"), result
    finally:
        await sandbox.close()


def make_proc_tree(folder: Path, own_group: str, **controllers: str) -> Path:
    """Create a hierarchy of cgroup version 2, and a `/proc` that refers to it.

    Args:
        folder: Where to create both.
        own_group: The group of the process itself.
        controllers: The controllers that each group delegates; `__` in a name stands for a slash.
    """
    mount_point = folder / "cgroup"
    for path, delegated in controllers.items():
        cgroup = mount_point / path.replace("__", "/") if path != "root" else mount_point
        cgroup.mkdir(parents=True, exist_ok=True)
        (cgroup / "cgroup.subtree_control").write_text(delegated)
        (cgroup / "cgroup.procs").write_text("")
    proc = folder / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text(f"0::{own_group}\n")
    (proc / "self/mountinfo").write_text(
        f"22 1 0:20 / /proc rw - proc proc rw\n31 22 0:30 / {mount_point} rw - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    return proc


async def test_a_delegated_group_of_cgroup_v2_is_found(tmp_path: Path) -> None:
    proc = make_proc_tree(
        tmp_path, "/app/shell", root="cpu memory pids", app="cpu memory pids", app__shell=""
    )
    delegated_group = tmp_path / "cgroup/app"
    parent, reason = find_cgroup_parent(proc, delegated=lambda folder: folder == delegated_group)

    assert parent is not None
    assert (parent.folder, parent.version, reason) == (delegated_group, "cgroup2", "")


async def test_cgroup_v2_limits_memory_and_counts_oom_kills(tmp_path: Path) -> None:
    proc = make_proc_tree(tmp_path, "/app", root="memory", app="memory")
    parent, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    assert parent is not None

    cgroup = parent.create([])
    folder = next(parent.folder.glob("suture-*"))
    (folder / "memory.current").write_text(f"{10 << 20}\n")
    (folder / "memory.swap.max").write_text("max\n")
    cgroup.limit_growth(100)

    assert int((folder / "memory.max").read_text()) == (100 + 10 + 64) << 20
    assert (folder / "memory.swap.max").read_text() == "0"
    assert cgroup.count_oom_kills() == 0

    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert cgroup.count_oom_kills() == 2
    assert cgroup.enter_command[-1] == str(folder / "cgroup.procs")


@pytest.mark.parametrize(
    ("app", "delegated"), [("cpu pids", "app"), ("memory", "nothing")], ids=["no memory", "not ours"]
)
async def test_no_group_without_the_memory_controller_or_delegation(
    tmp_path: Path, app: str, delegated: str
) -> None:
    proc = make_proc_tree(tmp_path, "/app", root="memory", app=app)
    parent, reason = find_cgroup_parent(proc, delegated=lambda folder: folder.name == delegated)
    assert parent is None
    assert "may not create control groups" in reason


async def test_a_hierarchy_that_is_visible_only_in_part_is_not_used(tmp_path: Path) -> None:
    proc = make_proc_tree(tmp_path, "/../elsewhere", root="memory")
    assert find_cgroup_parent(proc, delegated=lambda _: True)[0] is None


async def test_only_groups_of_dead_processes_are_removed(tmp_path: Path) -> None:
    proc = make_proc_tree(tmp_path, "/app", root="memory", app="memory")
    parent, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    assert parent is not None

    for name in ("suture-4000001-0-aa", "suture-17-0-aa", "other-4000001-0"):
        (parent.folder / name).mkdir()
    (proc / "17").mkdir()
    parent.remove_stale(proc)
    remaining = {folder.name for folder in parent.folder.iterdir() if folder.is_dir()}

    assert remaining == {"suture-17-0-aa", "other-4000001-0"}


async def test_groups_whose_members_end_late_are_removed_at_the_end(require: Require) -> None:
    parent, reason = find_cgroup_parent()
    require("control-groups", parent is not None, reason)
    assert parent is not None

    group = parent.folder / "suture-4000001-0-aa"  # no process has such a high number
    group.mkdir()
    member = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        (group / "cgroup.procs").write_text(str(member.pid))
        groups = MemoryCgroups()
        assert groups.enforcement == parent.version
        assert group.is_dir()
    finally:
        member.kill()
        await member.wait()
    await groups.close()

    assert not group.exists()


async def test_the_sampler_is_used_if_the_kernel_refuses_a_group(tmp_path: Path) -> None:
    proc = make_proc_tree(tmp_path, "/app", root="memory", app="memory")
    parent, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    groups = MemoryCgroups(lambda: (parent, ""))

    # An ordinary folder is no control group, so it has no memory.current.
    assert groups.enforcement == "sampler"
    assert "cannot be made" in groups.reason
    assert groups.create() is None

    await asyncio.wait_for(groups.close(), 5)
