"""`unsafe-subprocess` is used only by name, never silently, and enforces the limits that it claims."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sandbox.sandbox_programs import find_processes, python_request, wait_until_gone
from suture.core.settings.schema import KeySettings, SandboxSettings
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import BubblewrapSandbox, Mount, ProgramLimits, RunRequest, open_sandbox
from suture.sandbox.backends import find_sandbox_factory
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess


@pytest.fixture
async def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[UnsafeSubprocess]:
    """A sandbox in name only, which must leave no folder behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox = UnsafeSubprocess(notice=lambda: None)
    yield sandbox
    await sandbox.close()
    assert list(tmp_path.glob("suture-unsafe-*")) == []


async def test_a_warning_is_printed_before_the_first_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sandbox = UnsafeSubprocess()
    assert (await sandbox.capabilities()).level == "none"
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert (await sandbox.run(python_request("pass"))).status == "ok"

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("no sandbox (unsafe-subprocess)") == 1


async def test_the_files_of_a_request_do_not_use_the_space_of_its_program(sandbox: UnsafeSubprocess) -> None:
    files = {"one": bytes(1 << 20), "two": bytes(1 << 20)}
    limits = ProgramLimits(disk_mb=1, wall_s=30)
    result = await sandbox.run(python_request("pass", files=files, limits=limits))
    assert result.status == "ok", result


async def test_files_paths_and_environment_are_those_of_a_sandbox(sandbox: UnsafeSubprocess) -> None:
    code = "import os, sys; print(open('/box/a/b').read(), os.getcwd(), sorted(os.environ), sys.stdin.read())"
    result = await sandbox.run(RunRequest(python=code, files={"a/b": b"1"}, stdin=b"/box/x"))
    assert result.stdout == b"1 /box ['HOME', 'LANG', 'PATH', 'TMPDIR'] /box/x\n", result

    code = "import helper; open('out', 'w').write(helper.WORD)"
    result = await sandbox.run(
        RunRequest(python=code, modules={"helper.py": b"WORD = 'w'"}, collect=("out",))
    )

    assert result.files == {"out": b"w"}


@pytest.mark.parametrize(("code", "status"), [(0, "ok"), (3, "failed")])
async def test_exit_codes_and_signals_are_reported(sandbox: UnsafeSubprocess, code: int, status: str) -> None:
    assert (await sandbox.run(python_request(f"raise SystemExit({code})"))).status == status
    assert (await sandbox.run(python_request("import os; os.kill(os.getpid(), 11)"))).signal == 11


async def test_a_timeout_kills_processes_outside_the_group(sandbox: UnsafeSubprocess) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import subprocess, time
        for new in (True, False):
            words = ["/bin/sh", "-c", "trap '' TERM INT; sleep 600 # {marker}"]
            subprocess.Popen(words, start_new_session=new)
        time.sleep(600)
    """
    result = await sandbox.run(python_request(code, limits=ProgramLimits(wall_s=1.5)))

    assert result.status == "timeout"

    await wait_until_gone(marker)


async def test_a_daemon_does_not_outlive_its_program(sandbox: UnsafeSubprocess) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import os
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: os.execv("/bin/sh", ["sh", "-c", "sleep 600 # {marker}"])
            os._exit(0)
    """

    assert (await sandbox.run(python_request(code))).status == "ok"

    await wait_until_gone(marker)


async def test_memory_and_output_are_limited(sandbox: UnsafeSubprocess) -> None:
    limits = ProgramLimits(memory_mb=256, wall_s=30)
    assert (await sandbox.run(python_request("x = bytearray(900 << 20)", limits=limits))).status == "memory"

    code = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (40 << 20); time.sleep(60)"
    limits = ProgramLimits(total_memory_mb=150, wall_s=50)
    assert (await sandbox.run(python_request(code, limits=limits))).status == "memory"

    flood = "import os\nwhile True: os.write(1, b'x' * 65536)"
    limits = ProgramLimits(output_bytes=10_000, wall_s=60)
    assert (await sandbox.run(python_request(flood, limits=limits))).status == "output_limit"


async def test_nothing_survives_a_killed_host() -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = (
        "import asyncio\nfrom suture.sandbox import RunRequest\n"
        "from suture.sandbox.unsafe_subprocess import UnsafeSubprocess\n"
        f"request = RunRequest(argv=('/bin/sh', '-c', 'sleep 600 # {marker}'))\n"
        "asyncio.run(UnsafeSubprocess().run(request))"
    )
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    while not find_processes(f"sleep 600 # {marker}\0"):
        await asyncio.sleep(0.05)
    host.kill()
    await host.wait()
    await wait_until_gone(marker)


async def test_mounts_at_other_paths_are_refused(sandbox: UnsafeSubprocess) -> None:
    with pytest.raises(UsageError, match="every path is the host"):
        await sandbox.run(python_request("pass", mounts=(Mount(source="/usr", target="/opt/x"),)))


def test_its_name_alone_does_not_select_it() -> None:
    with pytest.raises(UsageError, match="isolates nothing") as caught:
        open_sandbox(SandboxSettings(backend="unsafe-subprocess"))
    assert "minimum_level" in caught.value.remedy
    sandbox = open_sandbox(SandboxSettings(backend="unsafe-subprocess", minimum_level="none"))
    assert sandbox.name == "unsafe-subprocess"


@pytest.mark.parametrize("name", ["subprocess", "docker", ""])
def test_an_unknown_name_is_answered_with_the_known_names(name: str) -> None:
    with pytest.raises(UsageError, match="there is no sandbox") as caught:
        open_sandbox(SandboxSettings(backend=name))
    assert "bubblewrap, container" in caught.value.remedy


def test_a_package_may_provide_a_sandbox() -> None:
    def entry_point(value: str) -> EntryPoint:
        return EntryPoint(name="mine", value=value, group="suture.sandboxes")

    factory = find_sandbox_factory("mine", [entry_point("sandbox.test_unsafe:open_example_sandbox")])

    assert factory(SandboxSettings(), KeySettings()).name == "bubblewrap"
    with pytest.raises(PrerequisiteError, match="does not load"):
        find_sandbox_factory("mine", [entry_point("no_such_module:make")])
    with pytest.raises(UsageError, match="mine, unsafe-subprocess"):
        find_sandbox_factory("other", [entry_point("x:y")])


def open_example_sandbox(settings: SandboxSettings) -> BubblewrapSandbox:
    """The factory to which the entry point of the example package refers."""
    return BubblewrapSandbox(mode=settings.mode)
