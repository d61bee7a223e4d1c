"""Containers of a real Podman, with runc and with gVisor."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from requirements import Require
from sandbox.engines import crun_host, gvisor_host, podman_host
from sandbox.sandbox_programs import LONG, python, survivors
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import Mount, ProgramLimits, RunRequest, RunStatus, Sandbox, StartMode, tuning
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.container.container_sandbox import OWNER_LABEL, is_orphan, process_name
from suture.sandbox.container.container_spec import image_name, pack_image
from suture.sandbox.container.container_transport import attach
from suture.sandbox.container.engine import Engine, connect_to_engine, find_addresses

pytestmark = pytest.mark.heavy

KINDS = {"warm": ("container", None), "spare": ("container", None), "gvisor": ("gvisor", "runsc")}


def engine(name: str, require: Require) -> str:
    try:
        return gvisor_host() if name == "gvisor" else podman_host()
    except SandboxUnavailable as fault:
        require(name, False, str(fault))
        raise


@pytest.fixture(params=list(KINDS))
async def box(request: pytest.FixtureRequest, require: Require) -> AsyncIterator[ContainerSandbox]:
    name, runtime = KINDS[request.param]
    mode = "spare" if request.param == "spare" else "auto"
    sandbox = ContainerSandbox(host=engine(name, require), runtime=runtime, mode=mode)
    before = asyncio.all_tasks()
    yield sandbox
    await sandbox.close()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, left


@pytest.fixture
def host(require: Require) -> str:
    return engine("container", require)


def containers(host: str, owner: str | None = None) -> list[Any]:
    client = docker.APIClient(base_url=host, version="auto")
    try:
        label = OWNER_LABEL if owner is None else f"{OWNER_LABEL}={owner}"
        return list(client.containers(all=True, filters={"label": label}))
    finally:
        client.close()


async def test_it_says_what_it_is(box: ContainerSandbox, request: pytest.FixtureRequest) -> None:
    found = await box.capabilities()
    kind = request.node.callspec.params["box"]
    assert (found.level, found.mode) == (
        "user_kernel" if kind == "gvisor" else "container",
        "warm" if kind == "warm" else "spare",
    )
    assert all(word in found.identity for word in ("Podman", "unix://", "sha256:", "seccomp"))


async def test_programs_and_code(box: ContainerSandbox) -> None:
    code = "import os, sys; print(os.getcwd(), sorted(os.environ), sys.stdin.read()); sys.exit(3)"
    result = await box.run(RunRequest(python=code, stdin=b"in", limits=LONG))
    assert (result.status, result.exit_code) == ("failed", 3), result
    assert result.stdout == b"/box ['HOME', 'LANG', 'PATH', 'TMPDIR'] in\n"
    shell = await box.run(RunRequest(argv=("sh", "-c", "cat a/b; echo x > c; exit 0"), files={"a/b": b"1"}))
    assert (shell.status, shell.stdout) == ("ok", b"1"), shell


async def test_files_come_back_and_the_folder_is_removed(box: ContainerSandbox) -> None:
    write = "[open(f + '/x', 'w').write('1') for f in ('/box', '/tmp', '/dev/shm')]"
    assert (await box.run(python(write, collect=("x", "y")))).files == {"x": b"1"}
    code = "import os; print([os.listdir(f) for f in ('/box', '/tmp', '/dev/shm')])"
    assert (await box.run(python(code))).stdout == b"[[], [], []]\n"


async def test_no_network_no_host_files_no_privilege(box: ContainerSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    code = f"""
        import os, socket
        for address in (("192.0.2.1", 80), ("127.0.0.1", 22)):
            try: socket.create_connection(address, 3); print("open")
            except OSError: pass
        try: socket.socket(40); print("vsock")
        except OSError: pass
        for path in ({str(secret)!r}, "/etc/shadow", "/home", {str(Path.home() / ".bashrc")!r}):
            if os.path.exists(path): print(path)
        for folder in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/root", "/run", "/var/tmp", "/opt"):
            try: open(folder + "/planted", "w"); print("WROTE", folder)
            except OSError: pass
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
        print(os.getuid() > 60000, status["CapEff"].strip())
    """
    result = await box.run(python(code))
    assert (result.status, result.stdout.decode()) == ("ok", f"True {'0' * 16}\n"), result


async def test_limits_hold(box: ContainerSandbox) -> None:
    memory = await box.run(python("x = bytearray(900 << 20)", limits=ProgramLimits(memory_mb=256, wall_s=30)))
    assert memory.status == "memory"
    code = "import os\nfor n in range(40): open(f'/box/{n}', 'wb').write(bytes(1 << 20))"
    disk = await box.run(python(code, limits=ProgramLimits(disk_mb=8, wall_s=30)))
    assert (disk.status, b"No space left" in disk.stderr) == ("failed", True)
    flood = "import os\nwhile True: os.write(1, b'x' * 65536)"
    out = await box.run(python(flood, limits=ProgramLimits(output_bytes=100_000, wall_s=60)))
    assert (out.status, out.truncated) == ("output_limit", True)


async def test_memory_in_all_has_a_limit(box: ContainerSandbox) -> None:
    code = """
        import os, time
        for _ in range(4):
            if os.fork() == 0: x = b"x" * (150 << 20); time.sleep(60); os._exit(0)
        time.sleep(60)
    """
    limits = ProgramLimits(total_memory_mb=300, wall_s=50)
    assert (await box.run(python(code, limits=limits))).status == "memory"
    assert (await box.run(python("print(1)"))).stdout == b"1\n"


@pytest.mark.parametrize("mode", ["warm", "spare"])
async def test_an_oom_kill_is_reported_as_memory(
    host: str, mode: StartMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A negative base makes the engine's limit apply before Suture's own.
    monkeypatch.setattr(tuning, "CONTAINER_BASE_MB", -200)
    code = "import os, time\nif os.fork() == 0: x = b'x' * (450 << 20)\ntime.sleep(60)"
    assert await _status(code, host, mode) == "memory"


@pytest.mark.parametrize("mode", ["warm", "spare"])
async def test_memory_that_no_process_has_mapped_is_memory_too(host: str, mode: StartMode) -> None:
    code = """
        import os
        handle = os.memfd_create("held")
        for _ in range(600): os.write(handle, bytes(1 << 20))
    """
    assert await _status(code, host, mode) == "memory"


LITTLE = ProgramLimits(total_memory_mb=500, file_mb=2000, wall_s=50)


async def _status(code: str, host: str, mode: StartMode) -> RunStatus:
    box = ContainerSandbox(host=host, mode=mode)
    try:
        if (await box.capabilities()).memory_enforcement != "engine":
            pytest.skip("this engine does not limit memory, as where a user without control groups runs it")
        return (await box.run(python(code, limits=LITTLE))).status
    finally:
        await box.close()


async def test_a_timeout_ends_the_tree(box: ContainerSandbox) -> None:
    code = """
        print("before", flush=True)
        import subprocess, time
        subprocess.Popen(["/bin/sh", "-c", "trap '' TERM INT; sleep 600"], start_new_session=True)
        time.sleep(600)
    """
    result = await box.run(python(code, limits=ProgramLimits(wall_s=4)))
    assert (result.status, result.stdout) == ("timeout", b"before\n")
    code = """
        import os
        running = [open(f"/proc/{pid}/cmdline").read() for pid in os.listdir("/proc") if pid.isdigit()]
        print(sum(words.startswith("sleep") for words in running))
    """
    assert (await box.run(python(code))).stdout == b"0\n"


async def test_ending_all_that_is_in_reach_is_only_its_own_end(box: ContainerSandbox) -> None:
    result = await box.run(python("import os, time; os.kill(-1, 9); time.sleep(60)"))
    assert result.status in ("signalled", "failed")
    stop = "import os, time; os.kill(os.getppid(), 19); time.sleep(60)"
    result = await box.run(python(stop, limits=ProgramLimits(wall_s=1)))
    assert result.status in ("timeout", "signalled")  # in a container of its own it reaches its supervisor
    assert (await box.run(python("print(1)"))).stdout == b"1\n"


async def test_a_conversation(box: ContainerSandbox) -> None:
    code = """
        import sys
        while head := sys.stdin.buffer.read(4):
            word = sys.stdin.buffer.read(int.from_bytes(head, "big"))
            sys.stdout.buffer.write(head + word[::-1]); sys.stdout.flush()
    """
    async with box.open(python(code)) as channel:
        for word in (b"abc", bytes(range(256)) * 2000):
            await channel.send(word)
            assert await channel.receive(30) == word[::-1]
        assert (await channel.finish()).status == "ok"


async def test_a_mount_is_shown_and_cannot_be_written(box: ContainerSandbox, tmp_path: Path) -> None:
    (tmp_path / "shown.txt").write_text("hello")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    for target in ("/opt/shown", "/tmp/shown"):
        code = f"print(open('{target}/shown.txt').read()); open('{target}/planted', 'w')"
        result = await box.run(python(code, mounts=(Mount(source=str(tmp_path), target=target),)))
        assert result.stdout == b"hello\n"
        assert b"Read-only file system" in result.stderr or b"Permission denied" in result.stderr


async def test_many_at_once(box: ContainerSandbox) -> None:
    code = "import os, sys; open('x', 'w').write(sys.stdin.read()); print(open('x').read(), os.listdir('.'))"
    results = await asyncio.gather(*(box.run(python(code, stdin=b"%d" % n)) for n in range(4)))
    assert [result.stdout for result in results] == [b"%d ['x']\n" % n for n in range(4)]


async def test_closing_leaves_no_container(box: ContainerSandbox) -> None:
    await box.run(python("pass"))
    assert box._host is not None
    assert containers(box._host, process_name())
    await box.close()
    assert not containers(box._host, process_name())


async def test_cancelling_leaves_no_container(host: str) -> None:
    sandbox: Sandbox = ContainerSandbox(host=host, mode="cold")
    await sandbox.capabilities()
    for step in range(6):
        task = asyncio.create_task(sandbox.run(python("import time; time.sleep(60)")))
        await asyncio.sleep(0.05 * step)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await sandbox.close()
    assert not containers(host, process_name())


HOST = """
import asyncio, sys
from suture.sandbox import RunRequest
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.container.container_sandbox import process_name
print(process_name(), flush=True)
sandbox = ContainerSandbox(host=sys.argv[1], mode=sys.argv[2])
asyncio.run(sandbox.run(RunRequest(argv=("/bin/sh", "-c", "sleep 600 # " + sys.argv[3]))))
"""


@pytest.mark.parametrize("mode", ["warm", "cold"])
async def test_nothing_outlives_a_host_that_is_killed(host: str, mode: str) -> None:
    marker = f"marker-{uuid.uuid4()}"
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    words = (sys.executable, "-c", HOST, host, mode, marker)
    process = await asyncio.create_subprocess_exec(*words, env=environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    owner = (await process.stdout.readline()).decode().strip()
    while not survivors(f"sleep 600 # {marker}\0"):
        await asyncio.sleep(0.05)
    process.kill()
    await process.wait()
    async with asyncio.timeout(60):
        while survivors(f"sleep 600 # {marker}\0") or containers(host, owner):
            await asyncio.sleep(0.1)


async def test_containers_of_a_killed_process_are_removed_at_the_next_start(host: str) -> None:
    gone = f"{process_name().rpartition('/')[0]}/1"  # our own process, but started at another time
    sandbox = ContainerSandbox(host=host)
    await sandbox.choose_mode()
    client = docker.APIClient(base_url=host, version="auto")
    for owner in (gone, "another-machine/pid:[1]/1/1"):
        client.create_container(image_name(pack_image()), ["/bin/true"], labels={OWNER_LABEL: owner})
    client.close()
    await sandbox.close()
    second = ContainerSandbox(host=host)
    await second.choose_mode()
    await second.close()
    assert not containers(host, gone)
    (left,) = containers(host, "another-machine/pid:[1]/1/1")
    client = docker.APIClient(base_url=host, version="auto")
    client.remove_container(left["Id"])
    client.close()


async def test_failed_removals_are_retried_at_the_next_start(
    host: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = f"{process_name().rpartition('/')[0]}/2"
    client = docker.APIClient(base_url=host, version="auto")
    sandbox = ContainerSandbox(host=host)
    await sandbox.choose_mode()
    await sandbox.close()
    client.create_container(image_name(pack_image()), ["/bin/true"], labels={OWNER_LABEL: gone})

    def refused(*_: object, **__: object) -> None:
        raise docker.errors.APIError("cleaning up failed")

    with monkeypatch.context() as patch:
        patch.setattr(docker.APIClient, "remove_container", refused)
        second = ContainerSandbox(host=host)
        await second.choose_mode()
    assert "cleaning up failed" in caplog.text
    assert containers(host, gone)
    await second.close()
    third = ContainerSandbox(host=host)
    await third.choose_mode()
    await third.close()
    assert not containers(host, gone)
    client.close()


def test_who_lives_is_no_orphan() -> None:
    assert not is_orphan(process_name())
    assert not is_orphan(process_name(os.getppid()))
    assert not is_orphan("anything else")


async def test_another_runtime_is_never_taken_silently(host: str) -> None:
    with pytest.raises(SandboxUnavailable, match="used the runtime 'runc', not 'runsc'"):
        await ContainerSandbox(host=host, runtime="runsc").choose_mode()


async def test_an_image_of_the_users(host: str) -> None:
    sandbox = ContainerSandbox(host=host, image="no/such:image")
    with pytest.raises(SandboxUnavailable, match=r"pull or build it first"):
        await sandbox.run(python("pass"))
    # The one image that is here for sure holds nothing at all, so our Python cannot run in it.
    own = ContainerSandbox(host=host)
    await own.choose_mode()
    await own.close()
    with pytest.raises(SandboxUnavailable, match=r"sandbox.image must be able to run"):
        await ContainerSandbox(host=host, image=image_name(pack_image())).run(python("pass"))


async def test_podman_with_crun_works_or_says_what_to_do(require: Require) -> None:
    try:
        host = crun_host()
    except SandboxUnavailable as fault:
        require("crun", False, str(fault))
    sandbox = ContainerSandbox(host=host)
    stdout, refusal = b"", None
    try:
        stdout = (await sandbox.run(python("print(1)"))).stdout
    except SandboxUnavailable as fault:
        refusal = fault
    finally:
        await sandbox.close()
    if refusal is None:
        assert stdout == b"1\n"
    else:  # its own words, and not the number of an HTTP status alone
        assert ("crun: " in refusal.message, "containers.conf" in refusal.remedy) == (True, True), refusal


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            b'{"message": "crun: cgroups in hybrid mode not supported"}',
            "409 Conflict: crun: cgroups in hybrid",
        ),
        (b'{"cause": "nothing"}', "409 Conflict"),
        (b"not JSON", "409 Conflict"),
        (b"[]", "409 Conflict"),
        (b'{"message": 7}', "409 Conflict"),
        (b'{"message": "' + b"x" * 100_000, "409 Conflict"),
    ],
)
async def test_an_engines_own_reason_is_reported(tmp_path: Path, body: bytes, told: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(refuse, str(tmp_path / "socket"))
    engine = Engine(
        client=cast(docker.APIClient, SimpleNamespace(api_version="1.41")),
        address=f"unix://{tmp_path}/socket",
        podman=True,
        version="Podman 4.3.1",
        limits_memory=True,
        security=(),
    )
    async with server:
        with pytest.raises(SandboxBroken, match=re.escape(f"Podman 4.3.1 does not attach: HTTP/1.1 {told}")):
            await attach(engine, "a")


def test_known_refusals_have_remedies_of_their_own() -> None:
    sandbox = ContainerSandbox(host="unix:///nowhere")
    assert "runc" in sandbox.remedy("crun: cgroups in hybrid mode not supported, drop all controllers")
    assert "default_ulimits" in sandbox.remedy("crun: setrlimit (RLIM_MEMLOCK): Operation not permitted")
    assert "bubblewrap" in sandbox.remedy("anything else")


async def test_no_engine(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="no container engine"):
        await ContainerSandbox(host=f"unix://{tmp_path}/nothing").run(python("pass"))
    with pytest.raises(SandboxUnavailable, match="not on this machine"):
        await ContainerSandbox(host="tcp://192.0.2.1:2375").run(python("pass"))


async def test_an_engine_that_goes_away(host: str) -> None:
    sandbox = ContainerSandbox(host=host, mode="cold")
    await sandbox.choose_mode()
    assert sandbox._engine is not None
    sandbox._engine.client.base_url = "http+docker://localhost/nowhere"
    with pytest.raises(SandboxBroken, match="container could not build the sandbox"):
        await sandbox.run(python("pass"))
    await sandbox.close()


def test_the_user_says_where_the_engine_is() -> None:
    assert find_addresses({"DOCKER_HOST": "unix:///a", "CONTAINER_HOST": "unix:///b"})[0] == "unix:///a"


def test_the_image_is_the_same_on_each_call() -> None:
    assert pack_image() == pack_image()
    assert image_name(pack_image()) != image_name(pack_image(()))


@pytest.mark.parametrize(
    ("told", "limits"),
    [
        ({"MemoryLimit": True, "CgroupVersion": "1"}, True),
        ({"MemoryLimit": True, "CgroupVersion": "1", "Rootless": True}, False),
        ({"MemoryLimit": True, "CgroupVersion": "1", "SecurityOptions": ["name=rootless"]}, False),
        ({"MemoryLimit": True, "CgroupVersion": "2", "Rootless": True}, True),
        ({"MemoryLimit": False, "CgroupVersion": "2"}, False),
    ],
)
def test_an_engine_is_not_believed_that_it_limits_memory_where_it_cannot(
    told: dict[str, Any], limits: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "socket").touch()
    client = SimpleNamespace(version=dict, info=lambda: told)
    monkeypatch.setattr(docker, "APIClient", lambda **_: client)
    assert connect_to_engine(f"unix://{tmp_path}/socket", {}).limits_memory is limits
