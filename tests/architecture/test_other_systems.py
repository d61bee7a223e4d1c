"""Without what only Linux has, Suture starts, and says what to do instead of healing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, source_files
from project_files import write_files

POSIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
"""Standard modules that Windows lacks."""
LINUX_NAMES = (
    "O_DIRECT", "O_PATH", "O_TMPFILE", "eventfd", "getxattr", "listxattr", "memfd_create", "pidfd_open",
    "posix_fadvise", "sched_getaffinity", "sched_setaffinity", "setns", "setresuid", "unshare",
)  # fmt: skip
"""Names in `os` that macOS and Windows lack."""
POSIX_NAMES = {
    "os": (
        "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fchown", "fork",
        "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid", "killpg", "mkfifo", "pread", "pwrite",
        "setsid", "sysconf", "uname",
    ),
    "signal": ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGUSR1", "setitimer"),
    "socket": ("SO_PEERCRED"),
    "select": ("epoll", "poll"),
    "time": ("tzset",),
}  # fmt: skip
"""Names that Windows lacks."""
RUNS_IN_THE_SANDBOX = (
    "sandbox/e2b/bootstrap.py",
    "judge/trials/inside/collected_tests.py",
    "judge/trials/inside/trial_plugin.py",
)
"""Programs that only ever run in the sandbox, which is Linux whatever the user's system is."""
SYSTEM = f"""
import asyncio, ctypes, importlib, os, platform, sys, sysconfig, tempfile, urllib.request
tempfile._O_TMPFILE_WORKS = False  # was set when the module was imported
sysconfig.get_config_vars(), platform.uname()  # the standard library asks for the platform once
def load_none(*arguments, **more):
    raise OSError("there is no such library")
ctypes.CDLL = load_none  # no C library of Linux, and no libseccomp
names = dict(os={LINUX_NAMES!r})
sys.platform = sys.argv.pop(1)
if sys.platform != "darwin":
    sys.modules.update(dict.fromkeys({POSIX_MODULES!r}))
    posix_names = {POSIX_NAMES!r}
    names = posix_names | dict(os=names["os"] + posix_names["os"])
for module, hidden in names.items():
    for name in hidden:
        if hasattr(importlib.import_module(module), name):
            delattr(importlib.import_module(module), name)
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


LEDGER = Path(__file__).parents[1] / "core" / "ledger" / "samples" / "heal.jsonl"
SYSTEMS = pytest.mark.parametrize("system", ["darwin", "without-posix"])
"""A Mac, and Windows under another name, because libraries would look for more than is hidden here. Both are simulated:
nothing was tried on a real machine."""


@SYSTEMS
@pytest.mark.parametrize(
    "command", ["--help", "config show", "history", "judge --help", "verify --help", "completion bash"]
)
def test_what_needs_no_sandbox_works(command: str, system: str, tmp_path: Path) -> None:
    ended = run_suture(system, *command.split(), folder=tmp_path)
    assert ended.returncode == 0, ended.stderr


@SYSTEMS
def test_files_of_settings_and_ledgers_are_read(system: str, tmp_path: Path) -> None:
    write_files(tmp_path, {".config/suture/suture.toml": "[budget]\nseconds = 77\n"})
    run = tmp_path / "runs" / "runs" / "20261123-120000000-abc123"
    run.mkdir(parents=True)
    shutil.copy(LEDGER, run / "ledger.jsonl")

    settings = run_suture(system, "config", "show", folder=tmp_path)
    history = run_suture(system, "history", folder=tmp_path)
    verified = run_suture(system, "verify", run.name, folder=tmp_path)

    assert re.search(r"^budget.seconds +77", settings.stdout, re.MULTILINE), settings
    assert "3 failing tests" in history.stdout, history
    assert (verified.returncode, "bug in Suture" in verified.stderr) == (2, False), verified


@pytest.mark.parametrize("backend", ["auto", "bubblewrap", "container"])
def test_a_heal_on_a_mac_says_how_to_heal_in_a_container(backend: str, tmp_path: Path) -> None:
    write_files(
        tmp_path, {"a.py": "A = 1\n", "test_a.py": "import a\n\n\ndef test_a():\n    assert a.A == 2\n"}
    )
    setting = f"sandbox.backend={backend}"
    ended = run_suture("darwin", "heal", ".", "--no-model", "--set", setting, folder=tmp_path)
    assert ended.returncode == 3, ended.stderr
    assert "this is darwin" in ended.stderr
    assert "docker run" in ended.stderr


@SYSTEMS
def test_the_doctor_reports_what_is_missing(system: str, tmp_path: Path) -> None:
    ended = run_suture(system, "doctor", "--json", folder=tmp_path)
    assert ended.returncode == 3, ended.stderr
    assert f"this is {system}" in ended.stdout
    assert "docker run" in ended.stdout
