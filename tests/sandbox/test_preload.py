"""A program forked from a preloaded interpreter behaves like one that was started, only faster."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from requirements import Require
from suture.judge.runners.pytest_runner import preload
from suture.project.languages import program_environment
from suture.sandbox import (
    BOX,
    BubblewrapSandbox,
    ProgramLimits,
    RunRequest,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.contract import Mount
from suture.sandbox.zygote.zygote_pool import WarmRunner

MARK_AS_FORKED = "import sys, statistics; sys.forked = True"
RUN_LIMITS = ProgramLimits(wall_s=100, cpu_s=100)


def program_request(source: str, **fields: Any) -> RunRequest:
    """Return a request that runs `source` as `python -m program` after a preload that marks its process."""
    argv = (get_own_interpreter().executable, "-m", "program", "a", "b")
    files = {"program.py": source.encode(), **fields.pop("files", {})}
    return RunRequest(argv=argv, files=files, preload=MARK_AS_FORKED, limits=RUN_LIMITS, **fields)


async def was_forked(sandbox: BubblewrapSandbox, **fields: Any) -> bool:
    """Return whether a program was forked from a preloaded interpreter."""
    result = await sandbox.run(program_request("import sys; print(hasattr(sys, 'forked'))", **fields))
    assert result.status == "ok", result.stderr
    return result.stdout == b"True\n"


async def test_a_warm_or_spare_sandbox_forks(sandbox: BubblewrapSandbox) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    for _ in range(2):
        assert await was_forked(sandbox) is forks


async def test_a_run_may_use_more_cpu_time_than_the_preload(sandbox: BubblewrapSandbox) -> None:
    source = "import resource; print(*resource.getrlimit(resource.RLIMIT_CPU))"
    result = await sandbox.run(
        replace(program_request(source), limits=ProgramLimits(wall_s=1000, cpu_s=1000))
    )
    assert (result.status, result.stdout) == ("ok", b"1000 1001\n"), result.stderr


@pytest.mark.parametrize(
    "fields",
    [
        {"files": {"statistics.py": b""}},
        {"files": {"statistics/inner.py": b""}},
        {"files": {"tests/statistics.py": b""}},
        {"files": {"package/__init__.py": b"", "package/inner/statistics.py": b""}},
        {"env": {"PYTHONOPTIMIZE": "1"}},
    ],
)
async def test_unforkable_requests_start_an_interpreter(
    sandbox: BubblewrapSandbox, fields: dict[str, Any]
) -> None:
    assert not await was_forked(sandbox, **fields)


async def test_a_module_inside_a_package_shadows_nothing(sandbox: BubblewrapSandbox) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    files = {"package/__init__.py": b"", "package/statistics.py": b""}
    assert await was_forked(sandbox, files=files) is forks


async def test_compiled_files_do_not_shadow_modules(sandbox: BubblewrapSandbox) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    files = {"package/__init__.py": b"", "package/__pycache__/statistics.cpython-311.pyc": b""}
    assert await was_forked(sandbox, files=files) is forks


async def test_data_shadows_no_module(sandbox: BubblewrapSandbox) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    files = {"statistics.ini": b"", "docs/statistics.md": b"", "statistics": b""}
    assert await was_forked(sandbox, files=files) is forks


async def test_a_compiled_extension_shadows_a_module(sandbox: BubblewrapSandbox) -> None:
    assert not await was_forked(sandbox, files={"statistics.so": b""})
    assert not await was_forked(sandbox, files={"statistics.pyc": b""})


async def test_failing_preload_code_does_no_harm(sandbox: BubblewrapSandbox) -> None:
    request = RunRequest(
        argv=(get_own_interpreter().executable, "-m", "program"),
        files={"program.py": b"print('ran')"},
        preload="raise SystemExit('never ready')",
    )

    for _ in range(2):
        assert (await sandbox.run(request)).stdout == b"ran\n"


async def test_preloaded_plugins_see_the_working_directory(sandbox: BubblewrapSandbox) -> None:
    preload_code = "import os, sys\nsys.stood = os.getcwd()"
    request = replace(
        program_request("import sys; print(getattr(sys, 'stood', 'not forked'))"), preload=preload_code
    )
    forks = (await sandbox.capabilities()).mode != "cold"
    assert (await sandbox.run(request)).stdout.decode().strip() == (BOX if forks else "not forked")


async def was_forked_after(sandbox: BubblewrapSandbox, preload: str) -> bool:
    """Return whether a program was forked although its preload also runs this code."""
    request = replace(
        program_request("import sys; print(hasattr(sys, 'forked'))"), preload=f"{MARK_AS_FORKED}\n{preload}"
    )
    result = await sandbox.run(request)
    assert result.status == "ok", result.stderr
    return result.stdout == b"True\n"


async def test_a_preload_that_leaves_processes_is_not_forked_from(sandbox: BubblewrapSandbox) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    leave_zombie = "import os, subprocess\nleft = subprocess.Popen(['true'])\n"
    leave_zombie += "os.waitid(os.P_PID, left.pid, os.WEXITED | os.WNOWAIT)"
    assert await was_forked_after(sandbox, leave_zombie) is forks
    assert not await was_forked_after(sandbox, "import os, time\nif os.fork() == 0: time.sleep(60)")


async def test_all_preloaded_processes_share_a_memory_limit(
    sandbox: BubblewrapSandbox, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities = await sandbox.capabilities()
    require("control-groups", capabilities.memory_enforcement in ("cgroup1", "cgroup2"), capabilities.reason)
    forks = capabilities.mode != "cold"
    monkeypatch.setattr("suture.sandbox.bubblewrap.launcher.PRELOAD_MB", 200)
    fill_memory = "import os\nfor _ in range(2):\n child = os.fork()\n"
    fill_memory += " if child == 0: held = b'x' * ({} << 20); os._exit(0)\n"
    fill_memory += " sys.forked &= os.waitpid(child, 0)[1] == 0"

    assert await was_forked_after(sandbox, fill_memory.format(1)) is forks

    request = replace(
        program_request("import sys; print(getattr(sys, 'forked', False))"),
        preload=f"{MARK_AS_FORKED}\n{fill_memory.format(400)}",
    )
    assert (await sandbox.run(request)).stdout == b"False\n"


@pytest.mark.parametrize(("memory_mb", "processes"), [(512, 100), (4096, 1000)])
async def test_a_preload_and_a_run_have_their_own_limits(
    sandbox: BubblewrapSandbox, memory_mb: int, processes: int
) -> None:
    forks = (await sandbox.capabilities()).mode != "cold"
    source = "import resource, sys\n"
    source += "for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC): print(resource.getrlimit(kind)[1])\n"
    source += "print(getattr(sys, 'allowed', None))"
    read_limits = (
        "resource.getrlimit(resource.RLIMIT_AS)[1] >> 20, resource.getrlimit(resource.RLIMIT_NPROC)[1]"
    )
    limits = replace(RUN_LIMITS, memory_mb=memory_mb, processes=processes)
    result = await sandbox.run(
        replace(
            program_request(source),
            preload=f"import resource, sys; sys.allowed = {read_limits}",
            limits=limits,
        )
    )
    allowed = (max(memory_mb, 2048), max(processes, 256)) if forks else None

    assert result.stdout.decode() == f"{memory_mb << 20}\n{processes}\n{allowed}\n", result.stderr


async def test_a_forked_program_sees_the_names_of_a_fresh_interpreter(sandbox: BubblewrapSandbox) -> None:
    source = (
        "import os, sys; print(__name__, __file__, __spec__.name, sys.argv, sys.path, sorted(os.environ))"
    )
    request = program_request(source, env={"PYTHONPATH": "/box/src", "PYTHONDONTWRITEBYTECODE": "1"})
    fresh = RunRequest(argv=request.argv, files=request.files, env=request.env)
    assert (await sandbox.run(request)).stdout == (await sandbox.run(fresh)).stdout


PROJECTS = {
    "outcomes": {
        "test_it.py": """
import pytest
@pytest.mark.parametrize("n", range(3))
def test_passes(n, tmp_path, capsys): print(n); assert capsys.readouterr().out == f"{n}\\n"
def test_fails(): assert [1, 2] == [1, 3]
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.skip(reason="no")
def test_skipped(): pass
def test_error(nothing): pass
def test_prints(): print("to stdout"); assert 0
"""
    },
    "warnings are errors": {
        "pytest.ini": "[pytest]\nfilterwarnings = error\n",
        "test_it.py": "import hypothesis, anyio\ndef test_it(): pass\n",
    },
    "fixtures and a package": {
        "app/__init__.py": "",
        "app/core.py": "def double(n): return n + n\n",
        "tests/conftest.py": "import pytest\n@pytest.fixture\ndef four(): return 4\n",
        "tests/test_app.py": "from app.core import double\ndef test_it(four): assert double(four) == 9\n",
    },
    "a property": {
        "test_it.py": """
from hypothesis import given, settings, strategies as st
@settings(derandomize=True)
@given(st.integers())
def test_it(n): assert n < 100
"""
    },
    "no tests": {"test_it.py": ""},
    "a broken file": {"test_it.py": "def test_it(:\n"},
    "coroutines": {
        "test_it.py": "import pytest\n@pytest.mark.asyncio\nasync def test_it(): assert 1 == 2\n",
    },
}


def pytest_request(files: dict[str, str]) -> RunRequest:
    """Return a request that runs pytest on these files."""
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    return RunRequest(
        argv=(
            interpreter.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:langsmith_plugin",
        ),
        files={path: text.encode() for path, text in files.items()},
        env={**program_environment(interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1"},
        mounts=mounts_for_interpreter(interpreter),
        limits=RUN_LIMITS,
    )


@pytest.mark.heavy
@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
@pytest.mark.parametrize("name", PROJECTS)
async def test_pytest_prints_the_same_when_forked(sandbox: BubblewrapSandbox, name: str) -> None:
    request = pytest_request(PROJECTS[name])
    fresh = await sandbox.run(request)

    for _ in range(2):
        forked = await sandbox.run(replace(request, preload=preload(request.argv)))
        assert (forked.status, forked.exit_code) == (fresh.status, fresh.exit_code)
        assert mask_times_and_addresses(forked.stdout) == mask_times_and_addresses(fresh.stdout)
        assert mask_times_and_addresses(forked.stderr) == mask_times_and_addresses(fresh.stderr)


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_a_plugin_that_the_command_disables_is_not_preloaded(sandbox: BubblewrapSandbox) -> None:
    source = "import sys\ndef test_it(): assert 'langsmith' not in sys.modules and 'anyio' in sys.modules"
    request = pytest_request({"test_it.py": source})
    result = await sandbox.run(replace(request, preload=preload(request.argv)))
    assert result.exit_code == 0, result.stdout


def mask_times_and_addresses(output: bytes) -> str:
    """Replace what differs between two equal runs of pytest."""
    text = re.sub(r"\d+\.\d+s", "TIME", output.decode())
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_concurrent_runs_wait_for_an_expensive_preload(sandbox: BubblewrapSandbox) -> None:
    slow_preload = f"import time; time.sleep(4); {MARK_AS_FORKED}; import uuid; sys.who = uuid.uuid4().hex"
    request = replace(program_request("import sys; print(sys.who)"), preload=slow_preload)
    results = await asyncio.gather(*(sandbox.run(request) for _ in range(5)))
    assert len({result.stdout for result in results}) == 2  # a pool starts two zygotes at once


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_a_run_uses_the_interpreter_that_was_prepared_for_it(sandbox: BubblewrapSandbox) -> None:
    slow_preload = (
        f"import time; began = time.monotonic(); time.sleep(2); {MARK_AS_FORKED}; sys.began = began"
    )
    request = replace(program_request("import sys; print(sys.began)"), preload=slow_preload)
    await sandbox.prepare_runs(replace(request, files={}), 1)
    await asyncio.sleep(1)
    requested_s = time.monotonic()
    result = await sandbox.run(request)
    assert float(result.stdout) < requested_s  # and it was not ready then


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_interpreters_are_prepared_one_after_the_other(sandbox: BubblewrapSandbox) -> None:
    slow_preload = (
        f"import time; began = time.monotonic(); time.sleep(1); {MARK_AS_FORKED}; sys.began = began"
    )
    program = "import sys, time; time.sleep(4); print(sys.began)"
    request = replace(program_request(program), preload=slow_preload)
    requested_s = time.monotonic()
    await sandbox.prepare_runs(replace(request, files={}), 2)
    results = await asyncio.gather(sandbox.run(request), sandbox.run(request))
    first_s, second_s = sorted(float(result.stdout) for result in results)
    assert requested_s < first_s < second_s - 1


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_closing_ends_what_was_prepared_and_never_used(sandbox: BubblewrapSandbox) -> None:
    await sandbox.capabilities()
    tasks = asyncio.all_tasks()
    await sandbox.prepare_runs(replace(program_request(""), preload=f"{MARK_AS_FORKED}; import uuid"), 2)
    assert asyncio.all_tasks() > tasks
    await sandbox.close()
    assert asyncio.all_tasks() <= tasks


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_a_run_reports_what_its_preparation_could_not_start(sandbox: BubblewrapSandbox) -> None:
    request = replace(program_request("print('ran')"), preload="raise SystemExit('never ready')")
    await sandbox.prepare_runs(request, 1)
    assert (await sandbox.run(request)).stdout == b"ran\n"


ANNOUNCE = """
import sys
name = sys.who.encode()
sys.stdout.buffer.write(len(name).to_bytes(4, "big") + name)
sys.stdout.buffer.flush()
sys.stdin.read()
"""


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_a_long_run_waits_for_a_short_one_if_two_are_in_progress(sandbox: BubblewrapSandbox) -> None:
    preload_code = f"import time; time.sleep(3); {MARK_AS_FORKED}; import uuid; sys.who = uuid.uuid4().hex"
    long_request = replace(program_request(ANNOUNCE), preload=preload_code)
    short = "import sys, time; print(sys.who); sys.stdout.flush(); time.sleep(1)"
    short_request = replace(program_request(short), preload=preload_code)
    async with sandbox.open(long_request) as first:
        first_name = await first.receive(60)
        await sandbox.run(short_request)  # its interpreter is ready now
        running = asyncio.create_task(sandbox.run(short_request))
        await asyncio.sleep(0.3)
        async with sandbox.open(long_request) as second:
            second_name = await second.receive(60)
        short_name = (await running).stdout.strip()
    assert second_name == short_name != first_name


def test_preparing_what_cannot_be_shown_is_no_error() -> None:
    async def start(*_: Any) -> Any:
        raise AssertionError("nothing is started")

    runner = WarmRunner(get_own_interpreter())
    mounts = [Mount(source="/nowhere/at/all", target="/packages")]
    runner.prepare(program_request(""), mounts, start, 1)  # the run reports it
