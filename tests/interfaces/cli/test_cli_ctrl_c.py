"""Ctrl-C on a real terminal while the process computes and does not return to its event loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.cli.real_terminal import Terminal, own_terminal
from suture.core.ledger import read_ledger

CTRL_C = "\x03"
BUSY = """
import time


def endless(task):
    print("it computes", flush=True)
    while True:
        sum(range(1000))
"""
RECIPE = 'repair_opening = true\nrepair_width = 1\n\n[helpers]\ncheck_sources = ["busy"]\n'
TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"
WRONG = "```python\ndef double(n):\n    return n\n```"


@pytest.fixture
def busy(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """The environment of a process in which a package is installed whose source of checks never ends."""
    packages = tmp_path / "packages"
    about = packages / "busy_package-1.0.dist-info"
    about.mkdir(parents=True)
    (packages / "busy_package.py").write_text(BUSY)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: busy-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[suture.check_sources]\nbusy = busy_package:endless\n")
    (tmp_path / "own.toml").write_text(RECIPE)
    return {**environ, "PYTHONPATH": str(packages)}


@pytest.mark.usefixtures("sandbox")
def test_ctrl_c_ends_a_run_that_computes_and_the_run_is_recorded_as_cancelled(
    busy: dict[str, str], tmp_path: Path, home: Path, script: Callable[..., str]
) -> None:
    arguments = ["run", TASK, "--model", script(WRONG), "--recipe", str(tmp_path / "own.toml")]
    terminal = Terminal(arguments, busy, tmp_path)
    terminal.wait_for("it computes")
    terminal.type(CTRL_C)  # once
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


async def winding_up():
    print("begun", flush=True)
    try:
        {work}
    finally:
        await asyncio.sleep(0)
        print("wound up", flush=True)


try:
    run_sync(winding_up())
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(130)
"""
WORK = {
    "it computes": "compute()",
    "another task computes": "await asyncio.gather(asyncio.sleep(1000), computing())",
    "it waits": "await asyncio.Event().wait()",
    "it computes once it is told to stop": "await stubborn()",
}
HELPERS = """

async def computing():
    compute()


async def stubborn():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        compute()

"""


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_one_ctrl_c_is_enough_wherever_the_program_is(work: str, tmp_path: Path) -> None:
    program = PROGRAM.format(work=work).replace("async def winding_up", HELPERS + "async def winding_up", 1)
    here, there = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=own_terminal,
        text=True,
    )
    os.close(there)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.2)  # it is on its way into the work; that the signal comes earlier would do no harm
    os.write(here, CTRL_C.encode())
    output, errors = process.communicate(timeout=100)
    os.close(here)
    assert (process.returncode, errors) == (130, "")
    assert output.endswith("wound up\nstopped\n")


def test_the_second_ctrl_c_waits_for_nothing(tmp_path: Path) -> None:
    program = PROGRAM.format(work="await asyncio.shield(asyncio.Event().wait())").replace(
        "await asyncio.sleep(0)", "print('asked', flush=True); await asyncio.sleep(1000)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=hears_interrupts
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert (process.returncode, output) == (130, "stopped\n")


def hears_interrupts() -> None:
    """A suite that runs in the background of a script ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
