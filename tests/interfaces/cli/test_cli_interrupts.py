"""Commands on a real terminal, and commands that a signal stops."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import ReadFiles, Script
from interfaces.cli.double_task import CORRECT_REPLY
from interfaces.cli.real_terminal import restore_interrupts, wait_until

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox")]


def test_run_asks_for_the_task_on_a_terminal(environ: dict[str, str], tmp_path: Path, script: Script) -> None:
    terminal_fd, command_fd = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "suture.interfaces.cli", "run", "--model", script(CORRECT_REPLY)],
        stdin=command_fd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
    )
    os.close(command_fd)
    os.write(terminal_fd, b"Write a function double(n).\n>>> double(4)\n8\n\n")
    output, errors = process.communicate(timeout=100)

    os.close(terminal_fd)

    assert process.returncode == 0, errors.decode()
    assert b"What should Suture write?" in errors
    assert output == b"def double(n):\n    return 2 * n\n"


@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_names_its_record_and_changes_no_file(
    stop_signal: signal.Signals,
    environ: dict[str, str],
    tmp_path: Path,
    broken_project: Path,
    script: Script,
    home: Path,
    read_files: ReadFiles,
) -> None:
    (broken_project / "test_slow.py").write_text("import time\n\n\ndef test_slow():\n    time.sleep(8)\n")
    before = read_files(broken_project)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "suture.interfaces.cli",
            "heal",
            str(broken_project),
            "--apply",
            "--model",
            script(CORRECT_REPLY),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=restore_interrupts,
    )
    ledgers = "runs/*/ledger.jsonl"
    wait_until(lambda: any("task.prepared" in path.read_text() for path in home.glob(ledgers)), process)
    process.send_signal(stop_signal)

    output, errors = process.communicate(timeout=60)

    assert process.returncode == 130, errors.decode()
    assert output == b""
    assert b"Traceback" not in errors
    assert b"suture show" in errors
    assert read_files(broken_project) == before


def test_ctrl_c_at_the_prompt_cancels_without_a_traceback(environ: dict[str, str], tmp_path: Path) -> None:
    terminal_fd, command_fd = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "suture.interfaces.cli", "run"],
        stdin=command_fd,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=restore_interrupts,
    )
    os.close(command_fd)
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], 60)[0]

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    os.close(terminal_fd)
    assert process.returncode == 130
    assert b"cancelled" in errors
    assert b"Traceback" not in errors
