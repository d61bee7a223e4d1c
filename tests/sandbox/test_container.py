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
from sandbox.sandbox_programs import LONG_LIMITS, find_processes, python_request
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import Mount, ProgramLimits, RunRequest, RunStatus, Sandbox, StartMode, tuning
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.container.container_sandbox import OWNER_LABEL, is_orphan, process_name
from suture.sandbox.container.container_spec import image_name, pack_image
from suture.sandbox.container.container_transport import Engine, attach, connect_to_engine, find_addresses

pytestmark = pytest.mark.heavy

SANDBOX_KINDS = {"warm": ("container", None), "spare": ("container", None), "gvisor": ("gvisor", "runsc")}


def start_engine(name: str, require: Require) -> str:
    """Return the address of a Podman service with gVisor or runc; skip the test if there is none."""
    try:
        return gvisor_host() if name == "gvisor" else podman_host()
    except SandboxUnavailable as fault:
        require(name, False, str(fault))
        raise


@pytest.fixture(params=list(SANDBOX_KINDS))
async def sandbox(request: pytest.FixtureRequest, require: Require) -> AsyncIterator[ContainerSandbox]:
    """A sandbox of each kind, which must leave no task behind."""
    name, runtime = SANDBOX_KINDS[request.param]
    mode = "spare" if request.param == "spare" else "auto"
    sandbox = ContainerSandbox(host=start_engine(name, require), runtime=runtime, mode=mode)
    before = asyncio.all_tasks()
    yield sandbox
    await sandbox.close()
    remaining = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not remaining, remaining


@pytest.fixture
def host(require: Require) -> str:
    """The address of a Podman service with runc."""
    return start_engine("container", require)


def list_containers(host: str, owner: str | None = None) -> list[Any]:
    """Return Suture's containers on an engine, or only those of one owner."""
    client = docker.APIClient(base_url=host, version="auto")
    try:
        label = OWNER_LABEL if owner is None else f"{OWNER_LABEL}={owner}"
        return list(client.containers(all=True, filters={"label": label}))
    finally:
        client.close()


async def test_capabilities_name_level_mode_and_engine(
    sandbox: ContainerSandbox, request: pytest.FixtureRequest
) -> None:
    capabilities = await sandbox.capabilities()
    kind = request.node.callspec.params["sandbox"]

    assert (capabilities.level, capabilities.mode) == (
        "user_kernel" if kind == "gvisor" else "container",
        "warm" if kind == "warm" else "spare",
    )
    assert all(part in capabilities.identity for part in ("Podman", "unix://", "sha256:", "seccomp"))


async def test_programs_and_python_code_run(sandbox: ContainerSandbox) -> None:
    code = "import os, sys; print(os.getcwd(), sorted(os.environ), sys.stdin.read()); sys.exit(3)"
    result = await sandbox.run(RunRequest(python=code, stdin=b"in", limits=LONG_LIMITS))
    assert (result.status, result.exit_code) == ("failed", 3), result
    assert result.stdout == b"/box ['HOME', 'LANG', 'PATH', 'TMPDIR'] in\n"

    shell = await sandbox.run(
        RunRequest(argv=("sh", "-c", "cat a/b; echo x > c; exit 0"), files={"a/b": b"1"})
    )
    assert (shell.status, shell.stdout) == ("ok", b"1"), shell


async def test_files_are_collected_and_folders_start_empty(sandbox: ContainerSandbox) -> None:
    write = "[open(f + '/x', 'w').write('1') for f in ('/box', '/tmp', '/dev/shm')]"
    assert (await sandbox.run(python_request(write, collect=("x", "y")))).files == {"x": b"1"}
    code = "import os; print([os.listdir(f) for f in ('/box', '/tmp', '/dev/shm')])"
    assert (await sandbox.run(python_request(code))).stdout == b"[[], [], []]\n"


async def test_programs_have_no_network_no_host_files_and_no_privileges(
    sandbox: ContainerSandbox, tmp_path: Path
) -> None:
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

    result = await sandbox.run(python_request(code))

    assert (result.status, result.stdout.decode()) == ("ok", f"True {'0' * 16}\n"), result


async def test_memory_disk_and_output_are_limited(sandbox: ContainerSandbox) -> None:
    memory = await sandbox.run(
        python_request("x = bytearray(900 << 20)", limits=ProgramLimits(memory_mb=256, wall_s=30))
    )
    assert memory.status == "memory"

    code = "import os\nfor n in range(40): open(f'/box/{n}', 'wb').write(bytes(1 << 20))"
    disk = await sandbox.run(python_request(code, limits=ProgramLimits(disk_mb=8, wall_s=30)))
    assert (disk.status, b"No space left" in disk.stderr) == ("failed", True)

    flood = "import os\nwhile True: os.write(1, b'x' * 65536)"
    output = await sandbox.run(python_request(flood, limits=ProgramLimits(output_bytes=10_000, wall_s=60)))
    assert (output.status, output.truncated) == ("output_limit", True)


async def test_total_memory_is_limited(sandbox: ContainerSandbox) -> None:
    code = """
        import os, time
        for _ in range(4):
            if os.fork() == 0: x = b"x" * (150 << 20); time.sleep(60); os._exit(0)
        time.sleep(60)
    """
    limits = ProgramLimits(total_memory_mb=300, wall_s=50)

    assert (await sandbox.run(python_request(code, limits=limits))).status == "memory"
    assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"


@pytest.mark.parametrize("mode", ["warm", "spare"])
async def test_an_oom_kill_is_reported_as_memory(
    host: str, mode: StartMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A negative base makes the engine's limit apply before Suture's own.
    monkeypatch.setattr(tuning, "CONTAINER_BASE_MB", -200)
    code = "import os, time\nif os.fork() == 0: x = b'x' * (450 << 20)\ntime.sleep(60)"
    assert await run_with_little_memory(code, host, mode) == "memory"


@pytest.mark.parametrize("mode", ["warm", "spare"])
async def test_unmapped_memory_counts_towards_the_limit(host: str, mode: StartMode) -> None:
    code = """
        import os
        handle = os.memfd_create("held")
        for _ in range(600): os.write(handle, bytes(1 << 20))
    """
    assert await run_with_little_memory(code, host, mode) == "memory"


SMALL_MEMORY = ProgramLimits(total_memory_mb=500, file_mb=2000, wall_s=50)


async def run_with_little_memory(code: str, host: str, mode: StartMode) -> RunStatus:
    """Return how code ends that has 500 MB of memory."""
    sandbox = ContainerSandbox(host=host, mode=mode)
    try:
        if (await sandbox.capabilities()).memory_enforcement != "engine":
            pytest.skip("this engine does not limit memory, as where a user without control groups runs it")
        return (await sandbox.run(python_request(code, limits=SMALL_MEMORY))).status
    finally:
        await sandbox.close()


async def test_a_timeout_kills_all_processes(sandbox: ContainerSandbox) -> None:
    code = """
        print("before", flush=True)
        import subprocess, time
        subprocess.Popen(["/bin/sh", "-c", "trap '' TERM INT; sleep 600"], start_new_session=True)
        time.sleep(600)
    """
    result = await sandbox.run(python_request(code, limits=ProgramLimits(wall_s=4)))

    assert (result.status, result.stdout) == ("timeout", b"before\n")

    code = """
        import os
        running = [open(f"/proc/{pid}/cmdline").read() for pid in os.listdir("/proc") if pid.isdigit()]
        print(sum(words.startswith("sleep") for words in running))
    """
    assert (await sandbox.run(python_request(code))).stdout == b"0\n"


async def test_a_program_that_kills_every_process_harms_only_itself(sandbox: ContainerSandbox) -> None:
    result = await sandbox.run(python_request("import os, time; os.kill(-1, 9); time.sleep(60)"))
    assert result.status in ("signalled", "failed")
    stop = "import os, time; os.kill(os.getppid(), 19); time.sleep(60)"
    result = await sandbox.run(python_request(stop, limits=ProgramLimits(wall_s=1)))
    assert result.status in ("timeout", "signalled")  # with a container of its own it can stop its supervisor
    assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"


async def test_frames_are_exchanged_with_a_program(sandbox: ContainerSandbox) -> None:
    code = """
        import sys
        while head := sys.stdin.buffer.read(4):
            word = sys.stdin.buffer.read(int.from_bytes(head, "big"))
            sys.stdout.buffer.write(head + word[::-1]); sys.stdout.flush()
    """

    async with sandbox.open(python_request(code)) as channel:
        for word in (b"abc", bytes(range(256)) * 2000):
            await channel.send(word)
            assert await channel.receive(30) == word[::-1]
        assert (await channel.finish()).status == "ok"


async def test_mounts_are_read_only(sandbox: ContainerSandbox, tmp_path: Path) -> None:
    (tmp_path / "shown.txt").write_text("hello")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)

    for target in ("/opt/shown", "/tmp/shown"):
        code = f"print(open('{target}/shown.txt').read()); open('{target}/planted', 'w')"
        result = await sandbox.run(python_request(code, mounts=(Mount(source=str(tmp_path), target=target),)))
        assert result.stdout == b"hello\n"
        assert b"Read-only file system" in result.stderr or b"Permission denied" in result.stderr


async def test_concurrent_runs_are_separate(sandbox: ContainerSandbox) -> None:
    code = "import os, sys; open('x', 'w').write(sys.stdin.read()); print(open('x').read(), os.listdir('.'))"
    results = await asyncio.gather(*(sandbox.run(python_request(code, stdin=b"%d" % n)) for n in range(4)))
    assert [result.stdout for result in results] == [b"%d ['x']\n" % n for n in range(4)]


async def test_closing_leaves_no_container(sandbox: ContainerSandbox) -> None:
    await sandbox.run(python_request("pass"))
    assert sandbox._host is not None
    assert list_containers(sandbox._host, process_name())
    await sandbox.close()
    assert not list_containers(sandbox._host, process_name())


async def test_cancelling_leaves_no_container(host: str) -> None:
    sandbox: Sandbox = ContainerSandbox(host=host, mode="cold")
    await sandbox.capabilities()

    for step in range(6):
        task = asyncio.create_task(sandbox.run(python_request("import time; time.sleep(60)")))
        await asyncio.sleep(0.05 * step)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await sandbox.close()
    assert not list_containers(host, process_name())


HOST_PROGRAM = """
import asyncio, sys
from suture.sandbox import RunRequest
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.container.container_sandbox import process_name
print(process_name(), flush=True)
sandbox = ContainerSandbox(host=sys.argv[1], mode=sys.argv[2])
asyncio.run(sandbox.run(RunRequest(argv=("/bin/sh", "-c", "sleep 600 # " + sys.argv[3]))))
"""


@pytest.mark.parametrize("mode", ["warm", "cold"])
async def test_nothing_survives_a_killed_host(host: str, mode: str) -> None:
    marker = f"marker-{uuid.uuid4()}"
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = (sys.executable, "-c", HOST_PROGRAM, host, mode, marker)
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None

    owner = (await process.stdout.readline()).decode().strip()
    while not find_processes(f"sleep 600 # {marker}\0"):
        await asyncio.sleep(0.05)
    process.kill()
    await process.wait()
    async with asyncio.timeout(60):
        while find_processes(f"sleep 600 # {marker}\0") or list_containers(host, owner):
            await asyncio.sleep(0.1)


async def test_stale_containers_are_removed_at_the_next_start(host: str) -> None:
    dead_owner = f"{process_name().rpartition('/')[0]}/1"  # our own process, but started at another time
    sandbox = ContainerSandbox(host=host)
    await sandbox.choose_mode()
    client = docker.APIClient(base_url=host, version="auto")
    for owner in (dead_owner, "another-machine/pid:[1]/1/1"):
        client.create_container(image_name(pack_image()), ["/bin/true"], labels={OWNER_LABEL: owner})
    client.close()
    await sandbox.close()
    second = ContainerSandbox(host=host)
    await second.choose_mode()
    await second.close()

    assert not list_containers(host, dead_owner)

    (remaining,) = list_containers(host, "another-machine/pid:[1]/1/1")
    client = docker.APIClient(base_url=host, version="auto")
    client.remove_container(remaining["Id"])
    client.close()


async def test_failed_removals_are_retried_at_the_next_start(
    host: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dead_owner = f"{process_name().rpartition('/')[0]}/2"
    client = docker.APIClient(base_url=host, version="auto")
    sandbox = ContainerSandbox(host=host)
    await sandbox.choose_mode()
    await sandbox.close()
    client.create_container(image_name(pack_image()), ["/bin/true"], labels={OWNER_LABEL: dead_owner})

    def fail(*_: object, **__: object) -> None:
        raise docker.errors.APIError("cleaning up failed")

    with monkeypatch.context() as patched:
        patched.setattr(docker.APIClient, "remove_container", fail)
        second = ContainerSandbox(host=host)
        await second.choose_mode()

    assert "cleaning up failed" in caplog.text
    assert list_containers(host, dead_owner)

    await second.close()
    third = ContainerSandbox(host=host)
    await third.choose_mode()
    await third.close()

    assert not list_containers(host, dead_owner)

    client.close()


def test_containers_of_living_processes_are_not_orphans() -> None:
    assert not is_orphan(process_name())
    assert not is_orphan(process_name(os.getppid()))
    assert not is_orphan("anything else")


async def test_a_different_runtime_is_an_error(host: str) -> None:
    with pytest.raises(SandboxUnavailable, match="used the runtime 'runc', not 'runsc'"):
        await ContainerSandbox(host=host, runtime="runsc").choose_mode()


async def test_an_unusable_image_is_an_error(host: str) -> None:
    sandbox = ContainerSandbox(host=host, image="no/such:image")
    with pytest.raises(SandboxUnavailable, match=r"podman pull no/such:image"):
        await sandbox.run(python_request("pass"))

    # Suture's own image is certainly present, but it is empty, so no Python can run in it.
    builder = ContainerSandbox(host=host)
    await builder.choose_mode()
    await builder.close()

    with pytest.raises(SandboxUnavailable, match=r"sandbox.image must be able to run"):
        await ContainerSandbox(host=host, image=image_name(pack_image())).run(python_request("pass"))


async def test_podman_with_crun_works_or_names_a_remedy(require: Require) -> None:
    try:
        host = crun_host()
    except SandboxUnavailable as fault:
        require("crun", False, str(fault))
    sandbox = ContainerSandbox(host=host)
    stdout, refusal = b"", None
    try:
        stdout = (await sandbox.run(python_request("print(1)"))).stdout
    except SandboxUnavailable as fault:
        refusal = fault
    finally:
        await sandbox.close()

    if refusal is None:
        assert stdout == b"1\n"
    else:  # the message of crun, and not only an HTTP status
        assert ("crun: " in refusal.message, "containers.conf" in refusal.remedy) == (True, True), refusal


@pytest.mark.parametrize(
    ("body", "reason"),
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
async def test_the_reason_of_the_engine_is_reported(tmp_path: Path, body: bytes, reason: str) -> None:
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
        with pytest.raises(
            SandboxBroken, match=re.escape(f"Podman 4.3.1 does not attach: HTTP/1.1 {reason}")
        ):
            await attach(engine, "a")


def test_known_refusals_have_their_own_remedies() -> None:
    sandbox = ContainerSandbox(host="unix:///nowhere")
    assert "runc" in sandbox.remedy("crun: cgroups in hybrid mode not supported, drop all controllers")
    assert "default_ulimits" in sandbox.remedy("crun: setrlimit (RLIM_MEMLOCK): Operation not permitted")
    assert "bubblewrap" in sandbox.remedy("anything else")


async def test_a_missing_engine_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="no container engine"):
        await ContainerSandbox(host=f"unix://{tmp_path}/nothing").run(python_request("pass"))
    with pytest.raises(SandboxUnavailable, match="not on this machine"):
        await ContainerSandbox(host="tcp://192.0.2.1:2375").run(python_request("pass"))


async def test_an_engine_that_disappears_is_reported(host: str) -> None:
    sandbox = ContainerSandbox(host=host, mode="cold")
    await sandbox.choose_mode()
    assert sandbox._engine is not None

    sandbox._engine.client.base_url = "http+docker://localhost/nowhere"
    with pytest.raises(SandboxBroken, match="container could not build the sandbox"):
        await sandbox.run(python_request("pass"))

    await sandbox.close()


def test_docker_host_selects_the_engine() -> None:
    assert find_addresses({"DOCKER_HOST": "unix:///a", "CONTAINER_HOST": "unix:///b"})[0] == "unix:///a"


def test_the_image_is_reproducible() -> None:
    assert pack_image() == pack_image()
    assert image_name(pack_image()) != image_name(pack_image(()))


@pytest.mark.parametrize(
    ("engine_info", "limits_memory"),
    [
        ({"MemoryLimit": True, "CgroupVersion": "1"}, True),
        ({"MemoryLimit": True, "CgroupVersion": "1", "Rootless": True}, False),
        ({"MemoryLimit": True, "CgroupVersion": "1", "SecurityOptions": ["name=rootless"]}, False),
        ({"MemoryLimit": True, "CgroupVersion": "2", "Rootless": True}, True),
        ({"MemoryLimit": False, "CgroupVersion": "2"}, False),
    ],
)
def test_memory_limits_are_assumed_only_where_the_engine_can_enforce_them(
    engine_info: dict[str, Any], limits_memory: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "socket").touch()
    client = SimpleNamespace(version=dict, info=lambda: engine_info)
    monkeypatch.setattr(docker, "APIClient", lambda **_: client)
    assert connect_to_engine(f"unix://{tmp_path}/socket", {}).limits_memory is limits_memory
