"""A program forked from a preloaded interpreter behaves like one that was started, only faster."""

from __future__ import annotations

import asyncio
import re
import sys
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

MARK = "import sys, statistics; sys.forked = True"
LONG = ProgramLimits(wall_s=100, cpu_s=100)


def module(source: str, **fields: Any) -> RunRequest:
    argv = (get_own_interpreter().executable, "-m", "program", "a", "b")
    files = {"program.py": source.encode(), **fields.pop("files", {})}
    return RunRequest(argv=argv, files=files, preload=MARK, limits=LONG, **fields)


async def was_forked(sandbox: BubblewrapSandbox, **fields: Any) -> bool:
    result = await sandbox.run(module("import sys; print(hasattr(sys, 'forked'))", **fields))
    assert result.status == "ok", result.stderr
    return result.stdout == b"True\n"


async def test_a_sandbox_that_is_ready_forks(sandbox: BubblewrapSandbox) -> None:
    ready = (await sandbox.capabilities()).mode != "cold"
    for _ in range(2):
        assert await was_forked(sandbox) is ready


async def test_a_run_may_use_more_cpu_time_than_the_preload(sandbox: BubblewrapSandbox) -> None:
    asks = "import resource; print(*resource.getrlimit(resource.RLIMIT_CPU))"
    result = await sandbox.run(replace(module(asks), limits=ProgramLimits(wall_s=1000, cpu_s=1000)))
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


async def test_a_module_inside_a_package_stands_for_nothing_else(sandbox: BubblewrapSandbox) -> None:
    ready = (await sandbox.capabilities()).mode != "cold"
    files = {"package/__init__.py": b"", "package/statistics.py": b""}
    assert await was_forked(sandbox, files=files) is ready


async def test_compiled_files_do_not_shadow_modules(sandbox: BubblewrapSandbox) -> None:
    ready = (await sandbox.capabilities()).mode != "cold"
    compiled = {"package/__init__.py": b"", "package/__pycache__/statistics.cpython-311.pyc": b""}
    assert await was_forked(sandbox, files=compiled) is ready


async def test_code_that_fails_does_no_harm(sandbox: BubblewrapSandbox) -> None:
    request = RunRequest(
        argv=(get_own_interpreter().executable, "-m", "program"),
        files={"program.py": b"print('ran')"},
        preload="raise SystemExit('never ready')",
    )
    for _ in range(2):
        assert (await sandbox.run(request)).stdout == b"ran\n"


async def test_preloaded_plugins_see_the_working_directory(sandbox: BubblewrapSandbox) -> None:
    noted = "import os, sys\nsys.stood = os.getcwd()"
    asks = replace(module("import sys; print(getattr(sys, 'stood', 'not forked'))"), preload=noted)
    ready = (await sandbox.capabilities()).mode != "cold"
    assert (await sandbox.run(asks)).stdout.decode().strip() == (BOX if ready else "not forked")


async def was_served(sandbox: BubblewrapSandbox, preload: str) -> bool:
    asks = replace(module("import sys; print(hasattr(sys, 'forked'))"), preload=f"{MARK}\n{preload}")
    result = await sandbox.run(asks)
    assert result.status == "ok", result.stderr
    return result.stdout == b"True\n"


async def test_code_that_leaves_processes_behind_is_not_forked_from(sandbox: BubblewrapSandbox) -> None:
    ready = (await sandbox.capabilities()).mode != "cold"
    ended = "import os, subprocess\nleft = subprocess.Popen(['true'])\n"
    ended += "os.waitid(os.P_PID, left.pid, os.WEXITED | os.WNOWAIT)"
    assert await was_served(sandbox, ended) is ready
    assert not await was_served(sandbox, "import os, time\nif os.fork() == 0: time.sleep(60)")


async def test_all_that_is_preloaded_has_a_limit_together(
    sandbox: BubblewrapSandbox, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await sandbox.capabilities()
    require("control-groups", found.memory_enforcement in ("cgroup1", "cgroup2"), found.reason)
    ready = found.mode != "cold"
    monkeypatch.setattr("suture.sandbox.bubblewrap.launcher.PRELOAD_MB", 200)
    held = "import os\nfor _ in range(2):\n child = os.fork()\n"
    held += " if child == 0: held = b'x' * ({} << 20); os._exit(0)\n"
    held += " sys.forked &= os.waitpid(child, 0)[1] == 0"
    assert await was_served(sandbox, held.format(1)) is ready
    asks = replace(
        module("import sys; print(getattr(sys, 'forked', False))"), preload=f"{MARK}\n{held.format(400)}"
    )
    assert (await sandbox.run(asks)).stdout == b"False\n"


@pytest.mark.parametrize(("memory_mb", "processes"), [(512, 100), (4096, 1000)])
async def test_each_process_that_preloads_has_limits_and_a_run_its_own(
    sandbox: BubblewrapSandbox, memory_mb: int, processes: int
) -> None:
    ready = (await sandbox.capabilities()).mode != "cold"
    asks = "import resource, sys\n"
    asks += "for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC): print(resource.getrlimit(kind)[1])\n"
    asks += "print(getattr(sys, 'allowed', None))"
    kinds = "resource.getrlimit(resource.RLIMIT_AS)[1] >> 20, resource.getrlimit(resource.RLIMIT_NPROC)[1]"
    limits = replace(LONG, memory_mb=memory_mb, processes=processes)
    result = await sandbox.run(
        replace(module(asks), preload=f"import resource, sys; sys.allowed = {kinds}", limits=limits)
    )
    allowed = (max(memory_mb, 2048), max(processes, 256)) if ready else None
    assert result.stdout.decode() == f"{memory_mb << 20}\n{processes}\n{allowed}\n", result.stderr


async def test_its_names_are_those_of_a_fresh_interpreter(sandbox: BubblewrapSandbox) -> None:
    source = (
        "import os, sys; print(__name__, __file__, __spec__.name, sys.argv, sys.path, sorted(os.environ))"
    )
    request = module(source, env={"PYTHONPATH": "/box/src", "PYTHONDONTWRITEBYTECODE": "1"})
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


def pytest_on(files: dict[str, str]) -> RunRequest:
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
        limits=LONG,
    )


@pytest.mark.heavy
@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
@pytest.mark.parametrize("name", PROJECTS)
async def test_pytest_says_the_same(sandbox: BubblewrapSandbox, name: str) -> None:
    request = pytest_on(PROJECTS[name])
    fresh = await sandbox.run(request)
    for _ in range(2):
        forked = await sandbox.run(RunRequest(**{**vars(request), "preload": preload(request.argv)}))
        assert (forked.status, forked.exit_code) == (fresh.status, fresh.exit_code)
        assert timeless(forked.stdout) == timeless(fresh.stdout)
        assert timeless(forked.stderr) == timeless(fresh.stderr)


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_a_plugin_that_the_command_switches_off_is_not_waited_for(sandbox: BubblewrapSandbox) -> None:
    test = "import sys\ndef test_it(): assert 'langsmith' not in sys.modules and 'anyio' in sys.modules"
    request = pytest_on({"test_it.py": test})
    result = await sandbox.run(replace(request, preload=preload(request.argv)))
    assert result.exit_code == 0, result.stdout


def timeless(output: bytes) -> str:
    text = re.sub(r"\d+\.\d+s", "TIME", output.decode())
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


@pytest.mark.parametrize("sandbox", ["warm"], indirect=True)
async def test_expensive_zygotes_are_waited_for(sandbox: BubblewrapSandbox) -> None:
    slow = f"import time; time.sleep(4); {MARK}; import uuid; sys.who = uuid.uuid4().hex"
    request = RunRequest(**{**vars(module("import sys; print(sys.who)")), "preload": slow})
    results = await asyncio.gather(*(sandbox.run(request) for _ in range(5)))
    assert len({result.stdout for result in results}) == 2  # two are started at once
