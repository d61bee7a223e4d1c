"""The capabilities of a sandbox, in each mode."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from suture.errors import SandboxUnavailable
from suture.sandbox import (
    ISOLATION_LEVELS,
    LIMIT_NAMES,
    BubblewrapSandbox,
    Capabilities,
    ProgramLimits,
    RunRequest,
)


async def test_a_sandbox_says_what_it_is_worth(sandbox: BubblewrapSandbox) -> None:
    found = await sandbox.capabilities()
    assert found == await sandbox.capabilities()
    assert found.level == "namespace"
    assert found.missing_limits == (() if found.mode == "warm" else ("inodes",))
    assert found.memory_enforcement in ("cgroup1", "cgroup2", "sampler")
    path, size, _ = found.identity.rsplit(" ", 2)
    assert path == await sandbox.choose_bubblewrap()
    assert int(size) == Path(path).stat().st_size


async def test_the_languages_are_those_whose_programs_are_there(sandbox: BubblewrapSandbox) -> None:
    found = await sandbox.capabilities()
    assert "python" in found.languages
    for language, argv in (
        ("shell", ("sh", "-c", "exit 0")),
        ("javascript", ("node", "-e", "")),
        ("go", ("go", "version")),
    ):
        limits = ProgramLimits(memory_mb=8192, wall_s=60)
        result = await sandbox.run(RunRequest(argv=argv, limits=limits, env={"GOCACHE": "/tmp/go"}))
        assert (result.status == "ok") is (language in found.languages), (language, result.stderr)


def test_levels_are_in_order() -> None:
    assert ISOLATION_LEVELS == ("none", "process", "namespace", "container", "wasm", "user_kernel", "vm")
    found = Capabilities(level="container", mode="cold")
    assert [level for level in ISOLATION_LEVELS if found.meets_level(level)] == [
        "none",
        "process",
        "namespace",
        "container",
    ]
    assert found.missing_limits == LIMIT_NAMES


async def test_a_mode_that_was_asked_for_and_cannot_be_had(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    real = shutil.which("false")
    assert real is not None
    sandbox = BubblewrapSandbox(find=lambda: (real,), mode="warm")
    with pytest.raises(SandboxUnavailable):
        await sandbox.capabilities()
    await sandbox.close()


async def test_only_a_warm_sandbox_serves_more_than_one_program(sandbox: BubblewrapSandbox) -> None:
    who = b"import os\nme = os.urandom(8).hex()\n"
    request = RunRequest(python="import who; print(who.me)", modules={"who.py": who})
    told = [(await sandbox.run(request)).stdout for _ in range(4)]
    assert len(set(told)) == (1 if (await sandbox.capabilities()).mode == "warm" else 4)


async def test_another_size_of_folder_is_another_sandbox(sandbox: BubblewrapSandbox) -> None:
    code = "import os; print(os.statvfs('/box').f_blocks * os.statvfs('/box').f_frsize >> 20)"
    for size in (8, 32, 8):
        request = RunRequest(python=code, limits=ProgramLimits(disk_mb=size, wall_s=30))
        assert (await sandbox.run(request)).stdout == f"{size}\n".encode()
