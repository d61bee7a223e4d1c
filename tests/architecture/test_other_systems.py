"""Without what only Linux has, Suture starts, and says what to do instead of healing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, source_files
from project_files import write_files

POSIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
"""Standard modules that Windows lacks."""
LINUX_FUNCTIONS = (
    "eventfd",
    "memfd_create",
    "pidfd_open",
    "sched_getaffinity",
    "setresuid",
    "setns",
    "unshare",
)
"""Functions of `os` that macOS and Windows lack."""
RUNS_IN_THE_SANDBOX = (
    "sandbox/e2b/bootstrap.py",
    "judge/trials/inside/collected_tests.py",
    "judge/trials/inside/trial_plugin.py",
)
"""Programs that only ever run in the sandbox, which is Linux whatever the user's system is."""
SYSTEM = f"""
import os, sys, sysconfig, urllib.request
sysconfig.get_config_vars()  # the standard library asks for the platform once
for name in {LINUX_FUNCTIONS!r}:
    if hasattr(os, name):
        delattr(os, name)
if sys.argv.pop(1) == "mac":
    sys.platform = "darwin"
else:  # Windows; with its name, the standard library would look for more than is hidden here
    sys.modules.update(dict.fromkeys({POSIX_MODULES!r}))
from suture.interfaces.cli import main
main()
"""


def run_suture(system: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as if this were another system."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SUTURE_HOME": str(folder / "runs")}
    command = [sys.executable, "-c", SYSTEM, system, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def test_modules_that_only_some_systems_have_are_imported_where_they_are_used() -> None:
    found = {
        file.path
        for file in source_files(SOURCE)
        for node in file.tree.body
        for name in [*(alias.name for alias in getattr(node, "names", ())), getattr(node, "module", "")]
        if name in POSIX_MODULES
    }
    assert found == {*RUNS_IN_THE_SANDBOX}


@pytest.mark.parametrize("system", ["mac", "windows"])
@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"]])
def test_the_command_line_starts(arguments: list[str], system: str, tmp_path: Path) -> None:
    ended = run_suture(system, *arguments, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("backend", ["bubblewrap", "container"])
def test_a_heal_on_a_mac_says_how_to_heal_in_a_container(backend: str, tmp_path: Path) -> None:
    write_files(
        tmp_path, {"a.py": "A = 1\n", "test_a.py": "import a\n\n\ndef test_a():\n    assert a.A == 2\n"}
    )
    setting = f"sandbox.backend={backend}"
    ended = run_suture("mac", "heal", ".", "--no-model", "--set", setting, folder=tmp_path)
    assert ended.returncode == 3, ended.stderr
    assert "this is darwin" in ended.stderr
    assert "docker run" in ended.stderr


def test_the_doctor_reports_the_system_as_missing(tmp_path: Path) -> None:
    ended = run_suture("mac", "doctor", "--json", folder=tmp_path)
    assert ended.returncode == 3, ended.stderr
    assert "docker run" in ended.stdout
