"""With a real terminal, and with Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox")]
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"


def test_run_asks_on_a_terminal(environ: dict[str, str], tmp_path: Path, script: Script) -> None:
    here, there = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "suture.interfaces.cli", "run", "--model", script(RIGHT)],
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
    )
    os.close(there)
    os.write(here, b"Write a function double(n).\n>>> double(4)\n8\n\n")
    output, errors = process.communicate(timeout=100)
    os.close(here)
    assert process.returncode == 0, errors.decode()
    assert b"What should Suture write?" in errors
    assert output == b"def double(n):\n    return 2 * n\n"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_where_it_lies_and_changes_nothing(
    sent: signal.Signals,
    environ: dict[str, str],
    tmp_path: Path,
    broken: Path,
    script: Script,
    home: Path,
    files_of: FilesOf,
) -> None:
    (broken / "test_slow.py").write_text("import time\n\n\ndef test_slow():\n    time.sleep(60)\n")
    before = files_of(broken)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "suture.interfaces.cli",
            "heal",
            str(broken),
            "--apply",
            "--model",
            script(RIGHT),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )
    wait_for(lambda: any("task.prepared" in p.read_text() for p in home.glob("runs/*/ledger.jsonl")), process)
    process.send_signal(sent)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert output == b""
    assert b"Traceback" not in errors
    assert b"suture show" in errors
    assert files_of(broken) == before


def test_ctrl_c_at_the_prompt(environ: dict[str, str], tmp_path: Path) -> None:
    here, there = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "suture.interfaces.cli", "run"],
        stdin=there,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )
    os.close(there)
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], 60)[0]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    os.close(here)
    assert process.returncode == 130
    assert b"cancelled" in errors
    assert b"Traceback" not in errors


def hears_interrupts() -> None:
    """A suite that runs in the background of a script ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not happened():
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.05)
