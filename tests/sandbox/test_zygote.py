"""One zygote serves many runs, and no state of one run remains for the next."""

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
from sandbox.sandbox_programs import find_processes, wait_until_gone, write_script
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, ProgramLimits, RunRequest
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.tuning import MAX_ZYGOTE_AGE_S, MAX_ZYGOTE_RUNS
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.inside.kernel import SocketCounter
from suture.sandbox.zygote.zygote_transport import ProcessTransport

LEAVE_STATE = """
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
FIND_STATE = """
import math, os, sys
shm = open("/proc/sysvipc/shm").read().count("\\n")
folders = [os.listdir(folder) for folder in ("/box", "/tmp", "/dev/shm")]
processes = sum(name.isdigit() for name in os.listdir("/proc"))
remaining = ["planted" in sys.modules, "LEFT" in os.environ, math.pi == 3]
print(remaining, os.umask(0o22), folders, shm, processes, os.uname().nodename, os.getcwd())
"""
SEARCH_MEMORY = """
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
NO_STATE = b"[False, False, False] 18 [[], [], []] 1 2 box /box\n"


@pytest.fixture
async def sandbox(bubblewrap_works: None, require: Require) -> AsyncIterator[BubblewrapSandbox]:
    """A warm sandbox."""
    sandbox = BubblewrapSandbox()
    capabilities = await sandbox.capabilities()
    require("bubblewrap", capabilities.mode == "warm", f"no warm sandbox: {capabilities.reason}")
    yield sandbox
    await sandbox.close()


def find_zygotes() -> set[int]:
    """Return the descendants of this process whose parent is a bubblewrap and that are no bubblewrap."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        processes[int(folder.name)] = (int(rest.split()[1]), name)
    descendants = {os.getpid()}
    while children := {pid for pid, (parent, _) in processes.items() if parent in descendants} - descendants:
        descendants |= children
    bubblewraps = {pid for pid in descendants if processes.get(pid, (0, ""))[1] == "bwrap"}
    return {pid for pid in descendants - bubblewraps if processes.get(pid, (0, ""))[0] in bubblewraps}


async def test_one_zygote_serves_many_runs_and_keeps_no_state(sandbox: BubblewrapSandbox) -> None:
    serving_zygotes = set()
    for _ in range(4):
        assert (await sandbox.run(RunRequest(python=LEAVE_STATE))).status == "ok"
        assert (await sandbox.run(RunRequest(python=FIND_STATE))).stdout == NO_STATE
        serving_zygotes |= find_zygotes()
    assert len(serving_zygotes) == 1


@pytest.mark.parametrize("times", [1, 50, 20_000])
async def test_memory_holds_no_data_that_earlier_runs_read_or_wrote(
    sandbox: BubblewrapSandbox, times: int
) -> None:
    code = (
        "import os, sys; open('kept', 'wb').write(b'left by a' + b' file;'); n = int(sys.stdin.readline());"
    )
    code += "os.write(1, (b'left by a' + b' print;') * n); os.write(2, (b'left by a' + b' complaint;') * n)"
    stdin = b"%d\n" % times + b"left by a word;" * times

    result = await sandbox.run(RunRequest(python=code, stdin=stdin, collect=("kept",)))

    assert (result.status, len(result.files)) == ("ok", 1)
    assert (await sandbox.run(RunRequest(python=SEARCH_MEMORY))).stdout == b"[]\n"


@pytest.mark.parametrize("pause_s", [0, 1])
async def test_stdin_may_exceed_the_buffers_of_a_zygote(sandbox: BubblewrapSandbox, pause_s: float) -> None:
    stdin = bytes(range(256)) * (40 << 10)
    code = f"import hashlib, sys, time; first = sys.stdin.buffer.read(5 << 20); time.sleep({pause_s})\n"
    code += "print(hashlib.sha256(first + sys.stdin.buffer.read()).hexdigest())"
    result = await sandbox.run(RunRequest(python=code, stdin=stdin))
    assert (result.status, result.stdout.decode().strip()) == ("ok", hashlib.sha256(stdin).hexdigest())
    assert (await sandbox.run(RunRequest(python="print(1)", stdin=stdin))).stdout == b"1\n"


async def test_memory_holds_no_data_of_earlier_requests(
    sandbox: BubblewrapSandbox,
) -> None:
    files = {"solution.py": b"# left by a file\n" * 3}
    assert b"file" in (await sandbox.run(RunRequest(python=SEARCH_MEMORY, files=files))).stdout
    async with sandbox.open(RunRequest(python="import sys; sys.stdin.buffer.read(20)")) as channel:
        await channel.send(b"left by a frame" * 9)
        await channel.receive(30)
    assert (await sandbox.run(RunRequest(python=SEARCH_MEMORY))).stdout == b"[]\n"


async def test_concurrent_runs_use_separate_zygotes(sandbox: BubblewrapSandbox) -> None:
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
        assert len(find_zygotes()) == 2


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
async def test_a_used_port_is_free_for_the_next_run(sandbox: BubblewrapSandbox, family: str) -> None:
    bind = f"""
import socket
kind = socket.{family}
server = socket.socket(kind)
server.bind(("localhost" if kind == socket.AF_INET else "::1", 7799))
"""
    # The side that closes first keeps the connection in TIME_WAIT, here with the server's port.
    talk = """
server.listen()
client = socket.socket(kind); client.connect(server.getsockname())
peer, _ = server.accept(); peer.close(); client.close()
"""
    await sandbox.run(RunRequest(python=""))
    zygotes = [find_zygotes()]

    for code in (bind + talk, bind, bind):
        result = await sandbox.run(RunRequest(python=code))
        assert result.status == "ok", result.stderr
        zygotes.append(find_zygotes())

    # A socket that never had a connection leaves nothing, so the same zygote serves the next run.
    assert [zygotes[0] == zygotes[1], zygotes[2] == zygotes[3]] == [False, True]


def test_open_connections_are_counted_on_each_call(tmp_path: Path) -> None:
    counts = tmp_path / "sockstat"
    counts.write_text("sockets: used 74\nTCP: inuse 0 orphan 9 tw 0 alloc 8 mem 1\nUDP: inuse 1 mem 0\n")
    sockets = SocketCounter((str(counts), str(tmp_path / "missing")))
    assert sockets.count_sockets() == 0  # orphaned sockets may belong to other network namespaces
    counts.write_text("sockets: used 74\nTCP: inuse 2 orphan 9 tw 3 alloc 8 mem 1\nUDP: inuse 1 mem 0\n")
    assert sockets.count_sockets() == 5


async def test_paths_and_folders_that_were_there_for_a_moment_are_reported(
    sandbox: BubblewrapSandbox,
) -> None:
    code = """
import os
os.mkdir("tests/gone"); os.rmdir("tests/gone")
open("other/conftest.py", "w").close(); os.rename("other/conftest.py", "tests/conftest.py")
os.remove("tests/conftest.py")
os.rename("tests/deep", "kept"); os.mkdir("tests/deep"); os.rmdir("tests/deep"); os.rename("kept", "tests/deep")
print(os.listdir("/proc/self/fd"))
"""
    files = {"tests/deep/test_a.py": b"", "other/file": b""}

    result = await sandbox.run(RunRequest(python=code, files=files, watched=("tests/deep/test_a.py",)))

    assert result.changed == {"tests/deep"}
    assert result.created == {"kept", "other/conftest.py", "tests/conftest.py", "tests/deep", "tests/gone"}
    assert result.stdout == b"['0', '1', '2', '3']\n", "the program could read what the kernel reports"


async def test_lost_events_are_a_change(sandbox: BubblewrapSandbox) -> None:
    code = """
import os
for number in range(9000):
    for name in (f"a{number}", f"b{number}"):
        os.close(os.open(name, os.O_CREAT)); os.remove(name)
"""
    result = await sandbox.run(RunRequest(python=code, files={"watched": b""}, watched=("watched",)))

    assert result.changed == {"."}
    assert not result.created


async def test_a_killed_zygote_is_replaced(sandbox: BubblewrapSandbox) -> None:
    task = asyncio.create_task(sandbox.run(RunRequest(python="import time; time.sleep(60)")))
    while sandbox._starting or not sandbox._programs:  # the run begins once no start is pending
        await asyncio.sleep(0.02)
    killed_zygotes = find_zygotes()
    for pid in killed_zygotes:
        os.kill(pid, signal.SIGKILL)

    with pytest.raises(SandboxBroken, match="killed from outside"):
        await task
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert not find_zygotes() & killed_zygotes


async def test_opening_a_channel_to_a_dead_zygote_is_an_error(sandbox: BubblewrapSandbox) -> None:
    await sandbox.run(RunRequest(python=""))
    (idle_zygote,) = find_zygotes()
    os.kill(idle_zygote, signal.SIGKILL)
    while idle_zygote in find_zygotes():
        time.sleep(0.02)  # not asyncio.sleep: the host must notice the death only when it opens the channel

    async with asyncio.timeout(30):
        with pytest.raises(SandboxBroken):
            async with sandbox.open(RunRequest(python="")):
                pytest.fail("the channel was opened")
        async with sandbox.open(RunRequest(python="")) as channel:
            assert (await channel.finish()).status == "ok"


async def test_a_zygote_is_replaced_after_three_kills(sandbox: BubblewrapSandbox) -> None:
    endless_output = RunRequest(
        python="while True: print('x' * 65536)", limits=ProgramLimits(output_bytes=2, wall_s=60)
    )
    before = find_zygotes()

    for _ in range(3):
        assert (await sandbox.run(endless_output)).status == "output_limit"
        assert (find_zygotes() or before) == before

    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert not find_zygotes() & before


async def test_a_zygote_is_replaced_after_its_maximum_number_of_runs(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suture.sandbox.tuning.MAX_ZYGOTE_RUNS", 3)
    serving_zygotes: list[set[int]] = []

    for _ in range(6):
        assert (await sandbox.run(RunRequest(python="print(1)"))).status == "ok"
        serving_zygotes.append(find_zygotes())

    assert len(set().union(*serving_zygotes)) > 1
    assert MAX_ZYGOTE_RUNS == 500


async def test_old_zygotes_are_ended_even_if_they_are_unused(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox.run(RunRequest(python="import a", modules={"a.py": b""}))
    old = find_zygotes()
    assert old

    monkeypatch.setattr("suture.sandbox.tuning.MAX_ZYGOTE_AGE_S", 0)
    assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
    assert find_zygotes() == set()
    assert MAX_ZYGOTE_AGE_S == 900


async def test_without_nested_namespaces_the_sandbox_is_spare(
    tmp_path: Path, reachable_bubblewrap: str
) -> None:
    wrapper = write_script(tmp_path / "bwrap", f'exec {reachable_bubblewrap} --disable-userns "$@"')
    warm = BubblewrapSandbox(find=lambda: (str(wrapper),), mode="warm")

    with pytest.raises(SandboxUnavailable, match=r"no warm bubblewrap: .*no new namespaces") as caught:
        await warm.capabilities()
    assert caught.value.remedy == "set sandbox.mode = 'auto'"

    await warm.close()
    sandbox = BubblewrapSandbox(find=lambda: (str(wrapper),))

    try:
        capabilities = await sandbox.capabilities()
        assert capabilities.mode == "spare"
        assert "no new namespaces" in capabilities.reason
        result = await sandbox.run(RunRequest(python="import os; print(os.getuid())"))
        assert (result.status, result.stdout) == ("ok", b"65534\n")
    finally:
        await sandbox.close()


async def test_nothing_survives_a_killed_host(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
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
    while len(find_processes(marker)) < 2:
        await asyncio.sleep(0.05)
    host.kill()
    host.wait()
    await wait_until_gone(marker)


FAKE_ZYGOTE = """
import os, sys, time
os.write(1, b"h\\0\\0\\0\\0")
{code}
time.sleep(60)
"""


async def start_fake_zygote(code: str) -> Zygote:
    """Start a zygote that runs this code instead of serving requests."""
    command = (sys.executable, "-I", "-c", FAKE_ZYGOTE.format(code=code))
    return await Zygote.start(await ProcessTransport.start(command), b"")


@pytest.mark.parametrize(
    "code",
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
async def test_a_zygote_that_breaks_the_protocol_is_ended(code: str) -> None:
    wait = "os.read(0, 1 << 20); "
    zygote = await start_fake_zygote(wait + code)

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
    report = json.dumps({"status": 0, "starved": False, "anomaly": anomaly}).encode()
    code = f"os.read(0, 1 << 20); os.write(1, b'.' + {len(report).to_bytes(4, 'big')!r} + {report!r})"
    zygote = await start_fake_zygote(code)

    try:
        assert await zygote.start_run(b"").wait() == 0
        assert zygote.is_usable is is_usable
    finally:
        await zygote.shut_down()


async def test_a_zygote_that_does_not_end_its_child_is_ended() -> None:
    zygote = await start_fake_zygote("")
    run = zygote.start_run(b"")
    run.kill()
    async with asyncio.timeout(30):
        assert await run.wait() < 0
    await zygote.shut_down()


async def test_a_cancelled_shutdown_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    zygote = await start_fake_zygote("")
    shutdown = asyncio.create_task(zygote.shut_down())
    await asyncio.sleep(0)
    shutdown.cancel()

    await asyncio.wait([shutdown])

    assert shutdown.cancelled()
    assert asyncio.all_tasks() == before


async def test_a_zygote_that_does_not_start_reports_the_reason() -> None:
    command = (sys.executable, "-I", "-c", "import sys; sys.exit('no reason at all')")
    with pytest.raises(SandboxNotStarted, match="no reason at all"):
        await Zygote.start(await ProcessTransport.start(command), b"x" * 1_000_000)
