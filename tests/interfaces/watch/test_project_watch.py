"""Watching real files with change notifications of the system, and `suture watch` with a real sandbox."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from watchfiles import awatch

from suture.core.ledger import list_runs, read_ledger
from suture.core.records import Reason, Result, Spend
from suture.errors import StorageError, UsageError
from suture.interfaces.watch import project_watch
from suture.interfaces.watch.project_watch import (
    WatchedRunEnded,
    WatchedRunFailed,
    WatchedRunSuperseded,
    watch_project,
)

BROKEN_CODE = "def double(n):\n    return n * 3\n"
TEST_CODE = """import unittest
from code_here import double


class Doubles(unittest.TestCase):
    def test_four(self):
        self.assertEqual(double(4), 8)

    def test_nothing(self):
        self.assertEqual(double(0), 0)
"""
MAX_RUN_S = 90
"""The time limit of a whole run on a busy machine."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with a wrong function and its tests."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "code_here.py").write_text(BROKEN_CODE)
    (folder / "test_code.py").write_text(TEST_CODE)
    (folder / ".gitignore").write_text("*.log\n")
    return folder


def replace_file(path: Path, text: str) -> None:
    """Write a file in one step, so that nobody reads half of it."""
    new_file = path.parent.parent / "aside"
    new_file.write_text(text)
    new_file.replace(path)


class ControlledRuns:
    """Runs that last until the test ends them, with a count of the cancelled ones."""

    def __init__(self) -> None:
        self.started_runs: asyncio.Queue[asyncio.Future[Result]] = asyncio.Queue()
        self.cancelled = 0

    async def heal(self) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.started_runs.put_nowait(future)
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def make_healed_result() -> Result:
    return Result(run_id="a-run", outcome="healed", reason=Reason(code="checks_pass"), spend=Spend())


async def test_a_change_during_a_run_cancels_it_and_starts_another(project: Path) -> None:
    runs = ControlledRuns()
    async with aclosing(watch_project(project, runs.heal)) as outcomes:
        next_outcome = asyncio.ensure_future(anext(outcomes))
        await runs.started_runs.get()
        replace_file(project / "code_here.py", BROKEN_CODE + "# more\n")
        assert await next_outcome == WatchedRunSuperseded(changed=("code_here.py",))
        assert runs.cancelled == 1

        next_outcome = asyncio.ensure_future(anext(outcomes))
        (await runs.started_runs.get()).set_result(make_healed_result())
        assert await next_outcome == WatchedRunEnded(result=make_healed_result())


async def test_without_notifications_of_the_system_files_are_polled(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Patched, because a real machine without inotify instances would disturb the other tests.

    def refuse_notifications(*paths: Path, force_polling: bool | None, **options: Any) -> Any:
        if not force_polling:
            raise OSError(errno.EMFILE, "OS file watch limit reached")
        return awatch(*paths, force_polling=True, **options)

    monkeypatch.setattr(project_watch, "awatch", refuse_notifications)
    runs = ControlledRuns()
    async with aclosing(watch_project(project, runs.heal)) as outcomes:
        next_outcome = asyncio.ensure_future(anext(outcomes))
        await runs.started_runs.get()
        for number in range(200):  # the first changes may come before the first look at the files
            replace_file(project / "code_here.py", f"{BROKEN_CODE}# {number}\n")
            if (await asyncio.wait([next_outcome], timeout=0.5))[0]:
                break
        assert await next_outcome == WatchedRunSuperseded(changed=("code_here.py",))


async def test_unchanged_and_ignored_files_neither_stop_nor_start_a_run(project: Path) -> None:
    runs = ControlledRuns()
    async with aclosing(watch_project(project, runs.heal)) as outcomes:
        next_outcome = asyncio.ensure_future(anext(outcomes))
        future = await runs.started_runs.get()
        replace_file(project / "code_here.py", BROKEN_CODE)  # the text does not change
        (project / "a.log").write_text("ignored")
        (project / "__pycache__").mkdir()
        await asyncio.sleep(1)
        assert (next_outcome.done(), runs.cancelled) == (False, 0)

        future.set_result(make_healed_result())
        await next_outcome
        next_outcome = asyncio.ensure_future(anext(outcomes))
        (project / "a.log").write_text("ignored again")
        await asyncio.sleep(1)
        assert runs.started_runs.empty()

        (project / "new.py").write_text("")
        (await runs.started_runs.get()).set_result(make_healed_result())
        assert isinstance(await next_outcome, WatchedRunEnded)


async def test_a_fix_does_not_overwrite_a_change_made_during_the_run(project: Path) -> None:
    """The run ends before the operating system has reported the change."""
    applied: list[str] = []

    async def heal() -> Result:
        (project / "code_here.py").write_text("# mine\n")
        return make_healed_result()

    async with aclosing(watch_project(project, heal, record_applied_runs(applied))) as outcomes:
        assert await anext(outcomes) == WatchedRunSuperseded(changed=("code_here.py",))

    assert not applied


async def test_errors_are_reported_and_the_watch_continues(project: Path) -> None:
    errors = [UsageError("no test"), None]

    async def heal() -> Result:
        if (error := errors.pop(0)) is not None:
            raise error
        return make_healed_result()

    async def fail_to_apply(_: Result) -> Mapping[str, str]:
        raise StorageError("the disk is full")

    async with aclosing(watch_project(project, heal, fail_to_apply)) as outcomes:
        first = await anext(outcomes)
        assert isinstance(first, WatchedRunFailed)
        assert str(first.fault) == "no test"

        next_outcome = asyncio.ensure_future(anext(outcomes))
        (project / "new.py").write_text("")
        second = await next_outcome
        assert isinstance(second, WatchedRunEnded)
        assert not second.written
        assert str(second.fault) == "the disk is full"


def record_applied_runs(applied: list[str]) -> Callable[[Result], Awaitable[Mapping[str, str]]]:
    """Return a function that applies nothing and records the ids of the runs."""

    async def apply(result: Result) -> Mapping[str, str]:
        applied.append(result.run_id)
        return {}

    return apply


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
def test_the_command_heals_a_project_applies_the_fix_and_ends_with_ctrl_c(
    project: Path, tmp_path: Path
) -> None:
    home, code = tmp_path / "home", project / "code_here.py"
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SUTURE_HOME": str(home)}
    command = [sys.executable, "-m", "suture.interfaces.cli", "watch", str(project), "--apply", "--test"]
    output_file = tmp_path / "said"
    with output_file.open("wb") as output:
        process = subprocess.Popen(
            [*command, "python -m unittest"], env=environ, cwd=tmp_path, stdout=output, stderr=output
        )
    try:
        wait_until(
            lambda: code.read_text() != BROKEN_CODE and "Waiting for" in output_file.read_text(),
            process,
            output_file,
        )
        assert "return n * 2" in code.read_text()

        replace_file(code, code.read_text() + "# mine\n")
        wait_until(lambda: output_file.read_text().count("Waiting for") == 2, process, output_file)
    finally:
        process.send_signal(signal.SIGINT)
        exit_code = process.wait(MAX_RUN_S)
    output_text = output_file.read_text()
    assert exit_code == 130, output_text
    assert "Traceback" not in output_text
    assert "-    return n * 3" in output_text

    kinds = [read_ledger(run.ledger_path).events[-1].kind for run in list_runs(home)]
    assert len(kinds) == 2, output_text  # the fix itself does not start another run


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], output_file: Path) -> None:
    """Wait until a condition holds; fail when the process ends or takes too long."""
    deadline_s = time.monotonic() + MAX_RUN_S
    while not condition():
        assert process.poll() is None, output_file.read_text()
        assert time.monotonic() < deadline_s, output_file.read_text()
        time.sleep(0.1)
