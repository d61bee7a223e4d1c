"""`%%heal`: a cell's asserts are tested behind the wall, and its mended text is put into the next cell."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError as MagicRefused
from IPython.core.interactiveshell import InteractiveShell

from suture.core.ledger import Event, RunFolder, last_of, read_ledger
from suture.core.ledger.kinds import RunFinished, RunPaused
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.interfaces.narrative.run_progress_text import ProgressNarrator
from suture.interfaces.notebook.cell_project import CODE, EARLIER, CellProject, make_cell_project

TEST = "python -m pytest -q"


def register_magic(shell: InteractiveShell) -> None:
    """Give a notebook its magic."""

    def heal(line: str, cell: str) -> Result | None:
        """Repair a cell until its asserts hold; `%%heal --help` lists what it takes."""
        try:
            return heal_cell(shell, line, cell)
        except SutureError as fault:
            raise MagicRefused(sanitize_text(str(fault))) from fault

    register: Any = shell.register_magic_function  # whose types are those of its class's function
    register(heal, "cell", "heal")


def heal_cell(shell: InteractiveShell, line: str, cell: str) -> Result | None:
    """Repair a cell until its asserts hold.

    Where they hold as it is, the cell is run. Else nothing of it is run here: the asserts are tested in a
    sandbox, and the mended cell is put below, for the user to run.

    Raises:
        SutureError: The cell cannot be tested, or the run could not be made.
    """
    asked = _asked(line)
    project = make_cell_project(cell, shell.user_ns)
    result = _waited_for(_run(project, asked, load_settings(Path.cwd(), _flags(asked)).settings))
    if result.outcome == "nothing_to_heal":
        run: Any = shell.run_cell  # which has no types
        run(cell)
        return None
    if result.outcome == "healed" and result.candidate is not None:
        code = result.candidate.files.get(CODE, project.files[CODE])
        shell.set_next_input(project.cell_of(code), replace=asked.replace)
    return result


class _Parser(ArgumentParser):
    """A parser that ends no kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%heal: {message}", remedy=self.format_usage().strip())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or "nothing was run", remedy="leave out --help")


def _asked(line: str) -> Namespace:
    parser = _Parser(prog="%%heal", description="Repair this cell until its asserts hold.")
    parser.add_argument("--model", help="who answers, as PROVIDER:MODEL; `none` tries small edits alone")
    parser.add_argument("--seconds", type=float, help="the most seconds")
    parser.add_argument("--replace", action="store_true", help="put the mended text into this very cell")
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as fault:
        raise UsageError(f"%%heal: {fault}") from fault


def _flags(asked: Namespace) -> dict[str, object]:
    given = {"model.name": asked.model, "budget.seconds": asked.seconds, "sandbox.python": sys.executable}
    return {name: value for name, value in given.items() if value is not None}


async def _run(project: CellProject, asked: Namespace, settings: Settings) -> Result:
    """A run over a project of its own, which is gone afterwards."""
    narrator = ProgressNarrator()

    async def report(event: Event) -> None:
        for line in narrator.lines_for(event):
            print(sanitize_text(line), file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="suture-cell-") as place:
        _lay(project, Path(place))
        request = {"path": place, "test": TEST, "protect": [EARLIER]}
        folder, _ = await run_standalone_job(
            settings.paths.home, "heal", request, report, chosen=_flags(asked)
        )
    return _result_of(folder)


def _lay(project: CellProject, place: Path) -> None:
    for name, text in project.files.items():
        (place / name).write_text(text, "utf-8")


def _result_of(folder: RunFolder) -> Result:
    events = read_ledger(folder.ledger_path).events
    end = last_of(events, RunFinished) or last_of(events, RunPaused)
    assert end is not None  # a job that ends without an error has ended or parked its run
    return folder.get_record(Result, end.result)


def _waited_for(work: Any) -> Result:
    """Wait in this thread, whose event loop is the kernel's, for work in another; Ctrl-C stops it."""
    began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Result]]] = Future()
    ended: Future[Result] = Future()

    async def do() -> None:
        task = asyncio.ensure_future(work)
        began.set_result((asyncio.get_running_loop(), task))
        await asyncio.wait([task])
        if task.cancelled():
            ended.cancel()
        elif (fault := task.exception()) is not None:
            ended.set_exception(fault)
        else:
            ended.set_result(task.result())

    threading.Thread(target=asyncio.run, args=(do(),), daemon=True).start()
    try:
        return ended.result()
    except KeyboardInterrupt:
        loop, task = began.result()
        loop.call_soon_threadsafe(task.cancel)
        with suppress(BaseException):  # it is written down as cancelled, and the interrupt goes on
            ended.result()
        raise
