"""How bubblewrap's sandboxes end, even if they are killed, cancelled or send forged reports.

`sandbox.conformance` checks what every sandbox must do, `tests/attacks` what it must withstand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from pathlib import Path

import pytest

from sandbox.sandbox_programs import find_processes, python_request, wait_until_gone
from suture.errors import SandboxBroken, UsageError
from suture.sandbox import BubblewrapSandbox, Mount, ProgramLimits, RunRequest, RunResult


async def test_a_program_that_stops_its_parent_does_not_block_the_host(sandbox: BubblewrapSandbox) -> None:
    code = "import os, time; os.kill(os.getppid(), 19); print('stopped', flush=True); time.sleep(60)"
    result = await sandbox.run(python_request(code, limits=ProgramLimits(wall_s=3)))
    # In modes where a program can reach its supervisor, stopping it ends the program.
    assert result.status in ("timeout", "signalled")
    assert result.stdout == b"stopped\n"


async def test_a_forged_report_does_not_block_the_host(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os, time
        for name in os.listdir("/proc/%d/fd" % os.getppid()):
            try: os.write(os.open("/proc/%d/fd/%s" % (os.getppid(), name), os.O_WRONLY), b"F" * 64)
            except OSError: pass
        time.sleep(600)
    """
    result = await sandbox.run(python_request(code, limits=ProgramLimits(wall_s=2), collect=("x",)))

    assert result.status in ("failed", "signalled", "timeout")  # root's pipes cannot even be opened
    assert result.files == {}


async def test_files_are_collected_from_a_folder_without_permissions(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os
        for path in ("left", "sub/left"):
            os.makedirs("sub", exist_ok=True)
            open(path, "w").write("x")
        os.chmod("/box", 0)
    """
    result = await sandbox.run(python_request(code, collect=("left", "sub/left", "sub/missing")))

    assert (result.status, result.exit_code) == ("ok", 0), result
    assert result.files == {"left": b"x", "sub/left": b"x"}


async def test_cancelling_kills_all_processes(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(sandbox.run(RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))))
    while not find_processes(marker):
        await asyncio.sleep(0.02)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    await wait_until_gone(marker)


async def test_close_ends_running_programs_and_may_be_called_twice(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(sandbox.run(RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))))
    while not find_processes(marker):
        await asyncio.sleep(0.02)
    await sandbox.close()
    await sandbox.close()
    (result,) = await asyncio.gather(task, return_exceptions=True)

    # The program runs, but the host may not have been notified of its start yet.
    assert isinstance(result, SandboxBroken) or (
        isinstance(result, RunResult) and result.status == "signalled"
    )

    await wait_until_gone(marker)


async def test_files_that_cannot_be_written_are_refused(sandbox: BubblewrapSandbox) -> None:
    files = {f"{'d' * 200}/" * 18 + "f": b"", "x": b""}
    with pytest.raises(UsageError):
        await sandbox.run(python_request("pass", files={**files, "x/y": b""}))


async def test_a_sandbox_that_cannot_be_built_leaves_nothing_behind(sandbox: BubblewrapSandbox) -> None:
    await sandbox.choose_bubblewrap()
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    request = python_request("pass", mounts=(Mount(source="/usr", target="/opt/" + "x" * 300),))

    for _ in range(3):
        with pytest.raises(SandboxBroken, match="name too long"):
            await sandbox.run(request)

    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # noqa: PTH208
    assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"


async def test_cancelling_while_the_sandbox_starts_leaves_nothing_behind(
    sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    marker = f"marker-{uuid.uuid4()}"
    # So that bubblewrap's own arguments contain the marker.
    mount = Mount(source=str(tmp_path), target=f"/opt/{marker}")
    for step in range(12):
        task = asyncio.create_task(sandbox.run(python_request("pass", mounts=(mount,))))
        await asyncio.sleep(0.002 + 0.006 * step)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, UsageError, SandboxBroken):
            await task
    await sandbox.close()
    await wait_until_gone(marker)


async def test_threads_are_limited_by_number_and_not_by_reserved_memory(
    sandbox: BubblewrapSandbox,
) -> None:
    code = (
        "import threading\nwait = threading.Event()\n"
        "def hold():\n    data = [bytearray(1000) for _ in range(50)]\n    wait.wait()\n"
        "threads = [threading.Thread(target=hold) for _ in range(60)]\n"
        "try:\n    for thread in threads: thread.start()\nfinally:\n    wait.set()\nprint('all')"
    )
    limits = ProgramLimits(memory_mb=1024, processes=128)
    environment = {"MALLOC_ARENA_MAX": "1"}  # as test commands set it; forked programs have it from the start

    result = await sandbox.run(RunRequest(python=code, env=environment, limits=limits))

    assert result.stdout == b"all\n", result.stderr
