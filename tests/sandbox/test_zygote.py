"""One zygote serves many runs, and no state of one remains for the next."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from requirements import Require
from sandbox.sandbox_programs import eventually_gone, survivors
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, ProgramLimits, Requirement, RunRequest
from suture.sandbox.bubblewrap.root_staging import is_reachable
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.tuning import MAX_ZYGOTE_AGE_S, MAX_ZYGOTE_RUNS
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.inside.kernel import SocketCounter
from suture.sandbox.zygote.zygote_transport import ProcessTransport

LEAVINGS = """
import ctypes, math, os, socket, subprocess, sys, time
math.pi = 3
sys.modules["planted"] = math
os.environ["LEFT"] = "x"
os.umask(0)
for folder in ("/box", "/tmp", "/dev/shm"):
    open(folder + "/left", "w").write("x")
ctypes.CDLL(None).sethostname(b"left", 4)
subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
"""
LOOK = """
import math, os, sys
shm = open("/proc/sysvipc/shm").read().count("\\n")
folders = [os.listdir(folder) for folder in ("/box", "/tmp", "/dev/shm")]
processes = sum(name.isdigit() for name in os.listdir("/proc"))
kept = ["planted" in sys.modules, "LEFT" in os.environ, math.pi == 3]
print(kept, os.umask(0o22), folders, shm, processes, os.uname().nodename, os.getcwd())
"""
HUNT = """
import re
found = set()
for line in open("/proc/self/maps"):
    place, rights = line.split()[:2]
    first, last = (int(word, 16) for word in place.split("-"))
    if "r" in rights and "[v" not in line:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(first)
            found.update(re.findall(b"left by " + rb"an? \\w+", memory.read(last - first)))
print(sorted(found))
"""
CLEAN = b"[False, False, False] 18 [[], [], []] 1 2 box /box\n"


@pytest.fixture
async def sandbox(sandbox_requirement: Requirement, require: Require) -> AsyncIterator[BubblewrapSandbox]:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    sandbox = BubblewrapSandbox()
    found = await sandbox.capabilities()
    require("bubblewrap", found.mode == "warm", f"no warm sandbox: {found.reason}")
    yield sandbox
    await sandbox.close()


def zygotes() -> set[int]:
    """Processes below this one that a bubblewrap is the parent of, and that are themselves no bubblewrap."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        found[int(folder.name)] = (int(rest.split()[1]), name)
    below = {os.getpid()}
    while more := {pid for pid, (parent, _) in found.items() if parent in below} - below:
        below |= more
    bubblewraps = {pid for pid in below if found.get(pid, (0, ""))[1] == "bwrap"}
    return {pid for pid in below - bubblewraps if found.get(pid, (0, ""))[0] in bubblewraps}


async def test_one_zygote_serves_many_runs_and_keeps_nothing(sandbox: BubblewrapSandbox) -> None:
    served = set()
    for _ in range(4):
        assert (await sandbox.run(RunRequest(python=LEAVINGS))).status == "ok"
        assert (await sandbox.run(RunRequest(python=LOOK))).stdout == CLEAN
        served |= zygotes()
    assert len(served) == 1


@pytest.mark.parametrize("times", [1, 50, 20_000])
async def test_the_memory_of_a_run_holds_nothing_of_what_others_read_and_wrote(
    sandbox: BubblewrapSandbox, times: int
) -> None:
    code = (
        "import os, sys; open('kept', 'wb').write(b'left by a' + b' file;'); n = int(sys.stdin.readline());"
    )
    code += "os.write(1, (b'left by a' + b' print;') * n); os.write(2, (b'left by a' + b' complaint;') * n)"
    told = b"%d\n" % times + b"left by a word;" * times
    result = await sandbox.run(RunRequest(python=code, stdin=told, collect=("kept",)))
    assert (result.status, len(result.files)) == ("ok", 1)
    assert (await sandbox.run(RunRequest(python=HUNT))).stdout == b"[]\n"


@pytest.mark.parametrize("pause_s", [0, 1])
async def test_stdin_may_be_longer_than_what_a_zygote_holds(
    sandbox: BubblewrapSandbox, pause_s: float
) -> None:
    told = bytes(range(256)) * (40 << 10)
    code = f"import hashlib, sys, time; first = sys.stdin.buffer.read(5 << 20); time.sleep({pause_s})\n"
    code += "print(hashlib.sha256(first + sys.stdin.buffer.read()).hexdigest())"
    result = await sandbox.run(RunRequest(python=code, stdin=told))
    assert (result.status, result.stdout.decode().strip()) == ("ok", hashlib.sha256(told).hexdigest())
    assert (await sandbox.run(RunRequest(python="print(1)", stdin=told))).stdout == b"1\n"


async def test_the_memory_of_a_run_holds_nothing_of_the_requests_before_it(
    sandbox: BubblewrapSandbox,
) -> None:
    files = {"solution.py": b"# left by a file\n" * 3}
    assert b"file" in (await sandbox.run(RunRequest(python=HUNT, files=files))).stdout
    async with sandbox.open(RunRequest(python="import sys; sys.stdin.buffer.read(20)")) as channel:
        await channel.send(b"left by a frame" * 9)
        await channel.receive(30)
    assert (await sandbox.run(RunRequest(python=HUNT))).stdout == b"[]\n"


async def test_runs_at_once_have_a_zygote_each_and_do_not_meet(sandbox: BubblewrapSandbox) -> None:
    listen = """
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind("\\0meeting")
tcp = socket.create_server(("127.0.0.1", 7777))
open("mine", "w").write("x")
sys.stdout.buffer.write(b"\\0\\0\\0\\2on"); sys.stdout.flush(); sys.stdin.read()
"""
    async with (
        sandbox.open(RunRequest(python=listen)) as first,
        sandbox.open(RunRequest(python=listen)) as second,
    ):
        assert [await first.receive(30), await second.receive(30)] == [b"on", b"on"]
        assert len(zygotes()) == 2


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
async def test_a_port_that_one_run_has_used_is_free_for_the_next(
    sandbox: BubblewrapSandbox, family: str
) -> None:
    bind = f"""
import socket
kind = socket.{family}
server = socket.socket(kind)
server.bind(("localhost" if kind == socket.AF_INET else "::1", 7799))
"""
    # Who closes first is left with the connection, and here that is the server's port.
    talk = """
server.listen()
client = socket.socket(kind); client.connect(server.getsockname())
peer, _ = server.accept(); peer.close(); client.close()
"""
    await sandbox.run(RunRequest(python=""))
    served = [zygotes()]
    for code in (bind + talk, bind, bind):
        result = await sandbox.run(RunRequest(python=code))
        assert result.status == "ok", result.stderr
        served.append(zygotes())
    # Sockets without a connection leave nothing, and the same one serves on.
    assert [served[0] == served[1], served[2] == served[3]] == [False, True]


def test_connections_are_counted_again_each_time(tmp_path: Path) -> None:
    counts = tmp_path / "sockstat"
    counts.write_text("sockets: used 74\nTCP: inuse 0 orphan 9 tw 0 alloc 8 mem 1\nUDP: inuse 1 mem 0\n")
    sockets = SocketCounter((str(counts), str(tmp_path / "missing")))
    assert sockets.count_sockets() == 0  # orphans may be anybody's
    counts.write_text("sockets: used 74\nTCP: inuse 2 orphan 9 tw 3 alloc 8 mem 1\nUDP: inuse 1 mem 0\n")
    assert sockets.count_sockets() == 5


async def test_a_killed_zygote_is_replaced(sandbox: BubblewrapSandbox) -> None:
    task = asyncio.create_task(sandbox.run(RunRequest(python="import time; time.sleep(60)")))
    while sandbox._starting or not sandbox._programs:  # it has begun once nothing is being started
        await asyncio.sleep(0.02)
    alive = zygotes()
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SandboxBroken, match="killed from outside"):
        await task
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert not zygotes() & alive


async def test_a_conversation_with_a_zygote_that_has_just_died_is_a_fault(sandbox: BubblewrapSandbox) -> None:
    await sandbox.run(RunRequest(python=""))
    (waiting,) = zygotes()
    os.kill(waiting, signal.SIGKILL)
    while waiting in zygotes():
        time.sleep(0.02)  # not asyncio.sleep: the host must hear of it only as it begins
    async with asyncio.timeout(30):
        with pytest.raises(SandboxBroken):
            async with sandbox.open(RunRequest(python="")):
                pytest.fail("it was begun")
        async with sandbox.open(RunRequest(python="")) as channel:
            assert (await channel.finish()).status == "ok"


async def test_a_zygote_is_replaced_after_three_kills(sandbox: BubblewrapSandbox) -> None:
    loop = RunRequest(
        python="while True: print('x' * 65536)", limits=ProgramLimits(output_bytes=2, wall_s=60)
    )
    before = zygotes()
    for _ in range(3):
        assert (await sandbox.run(loop)).status == "output_limit"
        assert (zygotes() or before) == before
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert not zygotes() & before


async def test_no_more_than_so_many_runs(sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suture.sandbox.tuning.MAX_ZYGOTE_RUNS", 3)
    served: list[set[int]] = []
    for _ in range(6):
        assert (await sandbox.run(RunRequest(python="print(1)"))).status == "ok"
        served.append(zygotes())
    assert len(set().union(*served)) > 1
    assert MAX_ZYGOTE_RUNS == 500


async def test_old_zygotes_are_ended_even_if_unused(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox.run(RunRequest(python="import a", modules={"a.py": b""}))
    old = zygotes()
    assert old
    monkeypatch.setattr("suture.sandbox.tuning.MAX_ZYGOTE_AGE_S", 0)
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert zygotes() == set()
    assert MAX_ZYGOTE_AGE_S == 900


async def test_a_sandbox_that_forbids_nesting_is_spare(
    tmp_path: Path, require: Require, sandbox_requirement: Requirement
) -> None:
    real = sandbox_requirement.detail.split()[0]
    require(
        "bubblewrap",
        sandbox_requirement.ok and is_reachable(real),
        f"{sandbox_requirement.detail}, for other users too",
    )
    wrapper = tmp_path / "bwrap"
    wrapper.write_text(f'#!/bin/sh\nexec {real} --disable-userns "$@"\n')
    wrapper.chmod(0o755)
    warm = BubblewrapSandbox(find=lambda: (str(wrapper),), mode="warm")
    with pytest.raises(SandboxUnavailable, match=r"no warm bubblewrap: .*no new namespaces") as caught:
        await warm.capabilities()
    assert caught.value.remedy == "set sandbox.mode = 'auto'"
    await warm.close()
    sandbox = BubblewrapSandbox(find=lambda: (str(wrapper),))
    try:
        found = await sandbox.capabilities()
        assert found.mode == "spare"
        assert "no new namespaces" in found.reason
        result = await sandbox.run(RunRequest(python="import os; print(os.getuid())"))
        assert (result.status, result.stdout) == ("ok", b"65534\n")
    finally:
        await sandbox.close()


async def test_nothing_outlives_us(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    program = f"""
import asyncio
from suture.sandbox import BubblewrapSandbox, RunRequest
async def main():
    sandbox = BubblewrapSandbox()
    async with sandbox.open(RunRequest(argv=("/bin/sh", "-c", "sleep 600 # {marker}"))):
        await asyncio.sleep(600)
asyncio.run(main())
"""
    host = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    while len(survivors(marker)) < 2:
        await asyncio.sleep(0.05)
    host.kill()
    host.wait()
    await eventually_gone(marker)


FAKE = """
import os, sys, time
os.write(1, b"h\\0\\0\\0\\0")
{words}
time.sleep(60)
"""


async def fake_zygote(words: str) -> Zygote:
    command = (sys.executable, "-I", "-c", FAKE.format(words=words))
    return await Zygote.start(await ProcessTransport.start(command), b"")


@pytest.mark.parametrize(
    "words",
    [
        "os.write(1, b'o\\xff\\xff\\xff\\xff')",
        "os.write(1, b'z\\0\\0\\0\\0')",
        "os.write(1, b'.\\0\\0\\0\\2[]')",
        "os.write(1, b'.\\0\\0\\0\\5{oops')",
        "os.write(1, b'.\\0\\0\\0\\x0a' + b'[' * 10)",
        "os.write(1, b'p\\0\\0\\0\\1x')",
        "os.write(1, b'h\\0\\0\\0\\1x')",
        "os.write(1, b'o\\0'); os._exit(3)",
        "os._exit(0)",
    ],
)
async def test_a_zygote_that_makes_no_sense_is_ended(words: str) -> None:
    wait = "os.read(0, 1 << 20); "
    zygote = await fake_zygote(wait + words)
    try:
        run = zygote.start_run(b"")
        async with asyncio.timeout(20):
            assert await run.wait() < 0
            assert await run.stdout.read() == b""
        assert not zygote.is_usable
    finally:
        await zygote.shut_down()


@pytest.mark.parametrize(("anomaly", "is_usable"), [("", True), ("descriptors", False)])
async def test_a_zygote_with_an_anomaly_is_replaced(anomaly: str, is_usable: bool) -> None:
    told = json.dumps({"status": 0, "starved": False, "anomaly": anomaly}).encode()
    words = f"os.read(0, 1 << 20); os.write(1, b'.' + {len(told).to_bytes(4, 'big')!r} + {told!r})"
    zygote = await fake_zygote(words)
    try:
        assert await zygote.start_run(b"").wait() == 0
        assert zygote.is_usable is is_usable
    finally:
        await zygote.shut_down()


async def test_a_zygote_that_does_not_end_a_child_is_ended() -> None:
    zygote = await fake_zygote("")
    run = zygote.start_run(b"")
    run.kill()
    async with asyncio.timeout(30):
        assert await run.wait() < 0
    await zygote.shut_down()


async def test_who_stops_waiting_for_its_end_leaves_nothing_of_it() -> None:
    before = asyncio.all_tasks()
    zygote = await fake_zygote("")
    ending = asyncio.create_task(zygote.shut_down())
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
    assert asyncio.all_tasks() == before


async def test_a_zygote_that_does_not_start_says_why() -> None:
    command = (sys.executable, "-I", "-c", "import sys; sys.exit('no reason at all')")
    with pytest.raises(SandboxNotStarted, match="no reason at all"):
        await Zygote.start(await ProcessTransport.start(command), b"x" * 1_000_000)
