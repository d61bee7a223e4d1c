"""Ctrl-C on a real terminal while the process computes and does not return to its event loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script
from interfaces.cli.double_task import TASK
from interfaces.cli.real_terminal import Terminal, restore_interrupts, take_terminal
from suture.core.ledger import read_ledger

CTRL_C = "\x03"
BUSY_PACKAGE = """
import time


def endless(task):
    print("computing", flush=True)
    while True:
        sum(range(1000))
"""
RECIPE = 'repair_opening = true\nrepair_width = 1\n\n[helpers]\ncheck_sources = ["busy"]\n'
WRONG = "```python\ndef double(n):\n    return n\n```"


@pytest.fixture
def busy_environ(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """Install a package whose source of checks never returns, and return the environment that finds it."""
    packages = tmp_path / "packages"
    metadata = packages / "busy_package-1.0.dist-info"
    metadata.mkdir(parents=True)
    (packages / "busy_package.py").write_text(BUSY_PACKAGE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: busy-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[suture.check_sources]\nbusy = busy_package:endless\n")
    (tmp_path / "own.toml").write_text(RECIPE)
    return {**environ, "PYTHONPATH": str(packages)}


@pytest.mark.usefixtures("sandbox")
def test_ctrl_c_cancels_a_run_that_blocks_its_event_loop(
    busy_environ: dict[str, str], tmp_path: Path, home: Path, script: Script
) -> None:
    arguments = ["run", TASK, "--model", script(WRONG), "--recipe", str(tmp_path / "own.toml")]
    terminal = Terminal(arguments, busy_environ, tmp_path)
    terminal.wait_for("computing")
    terminal.type(CTRL_C)
    assert terminal.end() == 130, terminal.screen
    assert "Traceback" not in terminal.screen

    (ledger,) = home.glob("runs/*/ledger.jsonl")
    last = read_ledger(ledger).events[-1]
    assert (last.kind, last.data["outcome"]) == ("run.finished", "cancelled")


PROGRAM = """
import asyncio, sys
from suture.api import run_sync


def compute():
    while True:
        sum(range(1000))


async def work_and_clean_up():
    print("started", flush=True)
    try:
        {work}
    finally:
        await asyncio.sleep(0)
        print("cleaned up", flush=True)


try:
    run_sync(work_and_clean_up())
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(130)
"""
WORK_BY_SITUATION = {
    "main task computes": "compute()",
    "another task computes": "await asyncio.gather(asyncio.sleep(1000), compute_in_task())",
    "main task waits": "await asyncio.Event().wait()",
    "main task computes when cancelled": "await compute_when_cancelled()",
}
HELPERS = """

async def compute_in_task():
    compute()


async def compute_when_cancelled():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        compute()

"""


@pytest.mark.parametrize("work", WORK_BY_SITUATION.values(), ids=WORK_BY_SITUATION)
def test_one_ctrl_c_stops_a_program_in_every_situation(work: str, tmp_path: Path) -> None:
    main = "async def work_and_clean_up"
    program = PROGRAM.format(work=work).replace(main, HELPERS + main, 1)
    terminal_fd, program_fd = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=program_fd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=take_terminal,
        text=True,
    )
    os.close(program_fd)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"

    time.sleep(0.2)  # lets the program reach its work; an earlier signal would do no harm
    os.write(terminal_fd, CTRL_C.encode())
    output, errors = process.communicate(timeout=100)
    os.close(terminal_fd)
    assert (process.returncode, errors) == (130, "")
    assert output.endswith("cleaned up\nstopped\n")


def test_a_second_ctrl_c_does_not_wait_for_cleanup(tmp_path: Path) -> None:
    program = PROGRAM.format(work="await asyncio.shield(asyncio.Event().wait())").replace(
        "await asyncio.sleep(0)", "print('cleaning up', flush=True); await asyncio.sleep(1000)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=restore_interrupts
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"

    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "cleaning up\n"

    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert (process.returncode, output) == (130, "stopped\n")
