"""Watching real files with the system's change notifications; once the whole command with a real sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from suture.core.ledger import list_runs, read_ledger
from suture.core.records import Reason, Result, Spend
from suture.errors import StorageError, UsageError
from suture.interfaces.watch.project_watch import HealEnded, HealFailed, HealSuperseded, watch_project

BROKEN = "def double(n):\n    return n * 3\n"
CHECK = """import unittest
from code_here import double


class Doubles(unittest.TestCase):
    def test_four(self):
        self.assertEqual(double(4), 8)

    def test_nothing(self):
        self.assertEqual(double(0), 0)
"""
MOST_S = 90
"""For a whole run, on a machine that does much else."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "code_here.py").write_text(BROKEN)
    (folder / "test_code.py").write_text(CHECK)
    (folder / ".gitignore").write_text("*.log\n")
    return folder


def replace(path: Path, text: str) -> None:
    """Write a file in one step, so that no half of it is ever seen."""
    aside = path.parent.parent / "aside"
    aside.write_text(text)
    aside.replace(path)


class Runs:
    """Runs that go on until they are told to end, and note who was cancelled."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[asyncio.Future[Result]] = asyncio.Queue()
        self.cancelled = 0

    async def heal(self) -> Result:
        end: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.begun.put_nowait(end)
        try:
            return await end
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def healed() -> Result:
    return Result(run_id="a-run", outcome="healed", reason=Reason(code="checks_pass"), spend=Spend())


async def test_a_change_under_a_run_cancels_it_and_the_next_one_begins(project: Path) -> None:
    runs = Runs()
    async with aclosing(watch_project(project, runs.heal)) as seen:
        told = asyncio.ensure_future(anext(seen))
        await runs.begun.get()
        replace(project / "code_here.py", BROKEN + "# more\n")
        assert await told == HealSuperseded(changed=("code_here.py",))
        assert runs.cancelled == 1
        told = asyncio.ensure_future(anext(seen))
        (await runs.begun.get()).set_result(healed())
        assert await told == HealEnded(result=healed())


async def test_what_is_no_change_of_the_project_neither_stops_nor_starts_a_run(project: Path) -> None:
    runs = Runs()
    async with aclosing(watch_project(project, runs.heal)) as seen:
        told = asyncio.ensure_future(anext(seen))
        end = await runs.begun.get()
        replace(project / "code_here.py", BROKEN)  # the same text
        (project / "a.log").write_text("ignored")
        (project / "__pycache__").mkdir()
        await asyncio.sleep(1)
        assert (told.done(), runs.cancelled) == (False, 0)
        end.set_result(healed())
        await told
        told = asyncio.ensure_future(anext(seen))
        (project / "a.log").write_text("ignored again")
        await asyncio.sleep(1)
        assert runs.begun.empty()
        (project / "new.py").write_text("")
        (await runs.begun.get()).set_result(healed())
        assert isinstance(await told, HealEnded)


async def test_a_fix_is_not_written_over_what_the_user_wrote_meanwhile(project: Path) -> None:
    """The run ends in the same moment, before the operating system has told of the change."""
    applied: list[str] = []

    async def heal() -> Result:
        (project / "code_here.py").write_text("# mine\n")
        return healed()

    async with aclosing(watch_project(project, heal, _noting(applied))) as seen:
        assert await anext(seen) == HealSuperseded(changed=("code_here.py",))
    assert not applied


async def test_faults_of_a_run_and_of_writing_are_told_and_the_watch_goes_on(project: Path) -> None:
    faults = [UsageError("no test"), None]

    async def heal() -> Result:
        if (fault := faults.pop(0)) is not None:
            raise fault
        return healed()

    async def full(_: str) -> None:
        raise StorageError("the disk is full")

    async with aclosing(watch_project(project, heal, full)) as seen:
        first = await anext(seen)
        assert isinstance(first, HealFailed)
        assert str(first.fault) == "no test"
        told = asyncio.ensure_future(anext(seen))
        (project / "new.py").write_text("")
        second = await told
        assert isinstance(second, HealEnded)
        assert not second.applied
        assert str(second.fault) == "the disk is full"


def _noting(applied: list[str]) -> Callable[[str], Awaitable[object]]:
    async def apply(run: str) -> None:
        applied.append(run)

    return apply


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
def test_the_command_heals_what_breaks_writes_it_when_asked_and_ends_by_ctrl_c(
    project: Path, tmp_path: Path
) -> None:
    home, code = tmp_path / "home", project / "code_here.py"
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SUTURE_HOME": str(home)}
    command = [sys.executable, "-m", "suture.interfaces.cli", "watch", str(project), "--apply", "--test"]
    said = tmp_path / "said"
    with said.open("wb") as words:
        process = subprocess.Popen(
            [*command, "python -m unittest"], env=environ, cwd=tmp_path, stdout=words, stderr=words
        )
    try:
        _wait(lambda: code.read_text() != BROKEN and "Waiting for" in said.read_text(), process, said)
        assert "return n * 2" in code.read_text()
        replace(code, code.read_text() + "# mine\n")
        _wait(lambda: said.read_text().count("Waiting for") == 2, process, said)
    finally:
        process.send_signal(signal.SIGINT)
        ended = process.wait(MOST_S)
    words_said = said.read_text()
    assert ended == 130, words_said
    assert "Traceback" not in words_said
    assert "-    return n * 3" in words_said
    kinds = [read_ledger(run.ledger_path).events[-1].kind for run in list_runs(home)]
    assert len(kinds) == 2, words_said  # its own change is none of the user's


def _wait(until: Callable[[], bool], process: subprocess.Popen[bytes], said: Path) -> None:
    most = time.monotonic() + MOST_S
    while not until():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < most, said.read_text()
        time.sleep(0.1)
