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


async def test_capabilities_state_level_limits_and_identity(sandbox: BubblewrapSandbox) -> None:
    capabilities = await sandbox.capabilities()
    assert capabilities == await sandbox.capabilities()
    assert capabilities.level == "namespace"
    assert capabilities.missing_limits == (() if capabilities.mode == "warm" else ("inodes",))
    assert capabilities.memory_enforcement in ("cgroup1", "cgroup2", "sampler")

    path, size, _ = capabilities.identity.rsplit(" ", 2)
    assert path == await sandbox.choose_bubblewrap()
    assert int(size) == Path(path).stat().st_size


async def test_languages_are_those_whose_programs_exist(sandbox: BubblewrapSandbox) -> None:
    capabilities = await sandbox.capabilities()

    assert "python" in capabilities.languages
    for language, argv in (
        ("shell", ("sh", "-c", "exit 0")),
        ("javascript", ("node", "-e", "")),
        ("go", ("go", "version")),
    ):
        limits = ProgramLimits(memory_mb=8192, wall_s=60)
        result = await sandbox.run(RunRequest(argv=argv, limits=limits, env={"GOCACHE": "/tmp/go"}))
        assert (result.status == "ok") is (language in capabilities.languages), (language, result.stderr)


def test_isolation_levels_are_ordered() -> None:
    assert ISOLATION_LEVELS == ("none", "process", "namespace", "container", "wasm", "user_kernel", "vm")

    capabilities = Capabilities(level="container", mode="cold")

    assert [level for level in ISOLATION_LEVELS if capabilities.meets_level(level)] == [
        "none",
        "process",
        "namespace",
        "container",
    ]
    assert capabilities.missing_limits == LIMIT_NAMES


async def test_an_unavailable_mode_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    broken_bubblewrap = shutil.which("false")
    assert broken_bubblewrap is not None

    sandbox = BubblewrapSandbox(find=lambda: (broken_bubblewrap,), mode="warm")
    with pytest.raises(SandboxUnavailable):
        await sandbox.capabilities()

    await sandbox.close()


async def test_only_a_warm_sandbox_reuses_its_process(sandbox: BubblewrapSandbox) -> None:
    module = b"import os\nme = os.urandom(8).hex()\n"
    request = RunRequest(python="import who; print(who.me)", modules={"who.py": module})
    outputs = [(await sandbox.run(request)).stdout for _ in range(4)]
    assert len(set(outputs)) == (1 if (await sandbox.capabilities()).mode == "warm" else 4)


async def test_the_disk_limit_sets_the_size_of_the_folder(sandbox: BubblewrapSandbox) -> None:
    code = "import os; print(os.statvfs('/box').f_blocks * os.statvfs('/box').f_frsize >> 20)"
    for size in (8, 32, 8):
        request = RunRequest(python=code, limits=ProgramLimits(disk_mb=size, wall_s=30))
        assert (await sandbox.run(request)).stdout == f"{size}\n".encode()
