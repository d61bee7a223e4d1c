"""Total memory: where control groups can be created, and what happens to a program that uses too much."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from requirements import Require
from sandbox.sandbox_programs import python
from suture.sandbox import BubblewrapSandbox, ProgramLimits, Requirement, StartMode
from suture.sandbox.execution.memory_cgroups import MemoryCgroups, find_cgroup_parent
from suture.sandbox.seccomp import build_filter_for_host
from suture.sandbox.self_test.probe import ProbeReport, attack_sandbox

TOO_MUCH = """
    import os, time
    for _ in range(6):
        if os.fork() == 0: break
    kept = b"x" * (30 << 20)
    time.sleep(30)
"""
IN_FILES = """
    import time
    for folder in ("/box", "/tmp"):
        for n in range(5):
            with open(f"{folder}/{n}", "wb") as file: file.write(bytes(20 << 20))
    time.sleep(30)
"""
TOTAL = ProgramLimits(total_memory_mb=120, wall_s=60)


def no_groups() -> MemoryCgroups:
    return MemoryCgroups(lambda: (None, "there are none in this test"))


@pytest.fixture(params=["warm", "spare", "cold"])
def mode(request: pytest.FixtureRequest, sandbox_requirement: Requirement, require: Require) -> StartMode:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    mode: StartMode = request.param
    return mode


@pytest.mark.parametrize("code", [TOO_MUCH, IN_FILES], ids=["processes", "files"])
async def test_without_control_groups_the_sampler_ends_what_holds_too_much(
    mode: StartMode, code: str
) -> None:
    sandbox = BubblewrapSandbox(mode=mode, cgroups=no_groups())
    try:
        found = await sandbox.capabilities()
        assert found.memory_enforcement == "sampler"
        assert "there are none in this test" in found.reason
        assert "total_memory_mb" in found.limits
        assert (await sandbox.run(python(code, limits=TOTAL))).status == "memory"
        # Its processes share most of their pages with each other and with whoever forked them.
        shared = "import os, time\nfor _ in range(5): os.fork()\ntime.sleep(0.3)"
        assert (await sandbox.run(python(shared, limits=TOTAL))).status == "ok"
    finally:
        await sandbox.close()


async def test_hiding_from_the_sampler_does_not_help(mode: StartMode) -> None:
    hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n"
    code = hide + "import time; x = b'x' * (200 << 20); time.sleep(30)"
    sandbox = BubblewrapSandbox(mode=mode, cgroups=no_groups())
    try:
        assert (await sandbox.run(python(code, limits=TOTAL))).status == "memory"
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
    sandbox = BubblewrapSandbox(mode=mode, cgroups=no_groups())
    try:
        assert (await sandbox.run(python(code))).stdout == b"ENOSYS\nfine\n"
    finally:
        await sandbox.close()


def allow_memory_files(*, namespaces: bool, memory_files: bool) -> bytes:
    return build_filter_for_host(namespaces=namespaces)


async def test_a_limit_that_such_files_pass_is_missing(
    monkeypatch: pytest.MonkeyPatch, mode: StartMode
) -> None:
    def report() -> Awaitable[ProbeReport]:
        return attack_sandbox(lambda: BubblewrapSandbox(mode=mode, cgroups=no_groups()), "namespace")

    assert "total_memory_mb" in (await report()).limits
    monkeypatch.setattr("suture.sandbox.bubblewrap.launcher.build_filter_for_host", allow_memory_files)
    found = await report()
    assert (found.holes, "total_memory_mb" in found.limits) == ({}, False)


async def test_a_real_control_group(mode: StartMode, require: Require) -> None:
    home, why = find_cgroup_parent()
    require("control-groups", home is not None, why)
    assert home is not None
    own = f"suture-{os.getpid()}-*"
    before = set(home.folder.glob(own))
    sandbox = BubblewrapSandbox(mode=mode)
    try:
        found = await sandbox.capabilities()
        assert found.memory_enforcement == home.version
        for _ in range(2):
            result = await sandbox.run(python(TOO_MUCH, limits=TOTAL))
            assert result.status == "memory"
        assert (await sandbox.run(python("print(1)"))).stdout == b"1\n"
        assert set(home.folder.glob(own)) - before
    finally:
        await sandbox.close()
    left = {folder.name for folder in set(home.folder.glob(own)) - before}
    assert not left, left


async def test_the_kernel_ends_what_grows_between_two_looks(require: Require, mode: StartMode) -> None:
    home, why = find_cgroup_parent()
    require("control-groups", home is not None, why)
    sandbox = BubblewrapSandbox(mode=mode)
    limits = ProgramLimits(total_memory_mb=64, memory_mb=2048, wall_s=60)
    try:
        await sandbox.capabilities()
        # Nobody sees this one: a file without a name, that no process has mapped.
        code = """
            import os
            for n in range(12):
                handle = os.memfd_create("x")
                for _ in range(5): os.write(handle, bytes(4 << 20))
        """
        assert (await sandbox.run(python(code, limits=limits))).status == "memory"
    finally:
        await sandbox.close()


IN_SOCKETS = """
    import os, socket
    total = 0
    server, kept = socket.create_server(("127.0.0.1", 0)), []
    for _ in range(100):
        client = socket.create_connection(server.getsockname())
        kept += [client, server.accept()[0]]
        client.setblocking(False)
        try:
            while True: total += client.send(bytes(1 << 20))
        except BlockingIOError: pass
    print(total >> 20)
"""
AND_THROUGH_THEM = """
    import socket, threading
    server = socket.create_server(("127.0.0.1", 0))
    client, read = socket.create_connection(server.getsockname()), 0
    sender = threading.Thread(target=lambda: (client.sendall(bytes(150 << 20)), client.close()))
    sender.start()
    reader = server.accept()[0]
    while chunk := reader.recv(1 << 20): read += len(chunk)
    print(read >> 20)
"""


async def test_buffers_of_tcp_count_in_a_group_of_version_1(mode: StartMode, require: Require) -> None:
    sandbox = BubblewrapSandbox(mode=mode)
    try:
        found = (await sandbox.capabilities()).memory_enforcement
        require("cgroup1", found == "cgroup1", f"the keeper is {found}")
        result = await sandbox.run(python(IN_SOCKETS, limits=TOTAL))
        assert result.status == "ok", result
        assert int(result.stdout) <= 200, (
            result
        )  # the machine itself would let it have twice as much and more
        result = await sandbox.run(python(AND_THROUGH_THEM, limits=TOTAL))
        assert (result.status, result.stdout) == ("ok", b"150\n"), result
    finally:
        await sandbox.close()


def tree(folder: Path, own: str, **controllers: str) -> Path:
    """A `/proc` that tells of one hierarchy of version 2, and that hierarchy."""
    point = folder / "cgroup"
    for path, delegated in controllers.items():
        cgroup = point / path.replace("__", "/") if path != "root" else point
        cgroup.mkdir(parents=True, exist_ok=True)
        (cgroup / "cgroup.subtree_control").write_text(delegated)
        (cgroup / "cgroup.procs").write_text("")
    proc = folder / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text(f"0::{own}\n")
    (proc / "self/mountinfo").write_text(
        f"22 1 0:20 / /proc rw - proc proc rw\n31 22 0:30 / {point} rw - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    return proc


async def test_a_delegated_group_of_version_2(tmp_path: Path) -> None:
    proc = tree(tmp_path, "/app/shell", root="cpu memory pids", app="cpu memory pids", app__shell="")
    mine = tmp_path / "cgroup/app"
    home, why = find_cgroup_parent(proc, delegated=lambda folder: folder == mine)
    assert home is not None
    assert (home.folder, home.version, why) == (mine, "cgroup2", "")


async def test_limits_and_kills_of_version_2(tmp_path: Path) -> None:
    proc = tree(tmp_path, "/app", root="memory", app="memory")
    home, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    assert home is not None
    cgroup = home.create([])
    folder = next(home.folder.glob("suture-*"))
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
async def test_no_group_where_memory_or_the_right_is_missing(
    tmp_path: Path, app: str, delegated: str
) -> None:
    proc = tree(tmp_path, "/app", root="memory", app=app)
    home, why = find_cgroup_parent(proc, delegated=lambda folder: folder.name == delegated)
    assert home is None
    assert "may not create control groups" in why


async def test_a_hierarchy_of_which_only_a_part_is_seen(tmp_path: Path) -> None:
    proc = tree(tmp_path, "/../elsewhere", root="memory")
    assert find_cgroup_parent(proc, delegated=lambda _: True)[0] is None


async def test_groups_of_dead_processes_are_cleared_and_others_are_not(tmp_path: Path) -> None:
    proc = tree(tmp_path, "/app", root="memory", app="memory")
    home, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    assert home is not None
    for name in ("suture-4000001-0-aa", "suture-17-0-aa", "other-4000001-0"):
        (home.folder / name).mkdir()
    (proc / "17").mkdir()
    home.remove_stale(proc)
    left = {folder.name for folder in home.folder.iterdir() if folder.is_dir()}
    assert left == {"suture-17-0-aa", "other-4000001-0"}


async def test_a_kernel_that_refuses_a_group_is_no_keeper(tmp_path: Path) -> None:
    proc = tree(tmp_path, "/app", root="memory", app="memory")
    home, _ = find_cgroup_parent(proc, delegated=lambda folder: folder.name == "app")
    groups = MemoryCgroups(lambda: (home, ""))
    assert (
        groups.enforcement == "sampler"
    )  # a folder that is may not create control groups has no memory.current
    assert "cannot be made" in groups.reason
    assert groups.create() is None
    await asyncio.wait_for(groups.close(), 5)
