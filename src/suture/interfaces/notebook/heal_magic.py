"""The cell magic `%%heal`: test a cell's asserts in the sandbox, and insert the repaired cell below."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError as MagicUsageError
from IPython.core.interactiveshell import InteractiveShell

from suture.core.interruption import LoopThread
from suture.core.ledger import Event, last_payload, read_ledger
from suture.core.ledger.kinds import RunFinished, RunPaused
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.core.temporary_folders import temporary_folder
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.interfaces.narrative.run_progress_text import ProgressNarrator
from suture.interfaces.notebook.cell_project import CODE_FILE, EARLIER_FILE, CellProject, make_cell_project

TEST_COMMAND = "python -m pytest -q"
"""Runs the tests that a cell's asserts become."""


def register_magic(shell: InteractiveShell) -> None:
    """Register the magic in a notebook."""

    def heal(line: str, cell: str) -> Result | None:
        """Repair a cell until its asserts hold; `%%heal --help` lists the options."""
        try:
            return heal_cell(shell, line, cell)
        except SutureError as fault:
            raise MagicUsageError(sanitize_text(str(fault))) from fault

    register: Any = shell.register_magic_function  # its declared type is wrong
    register(heal, "cell", "heal")


def heal_cell(shell: InteractiveShell, line: str, cell: str) -> Result | None:
    """Repair a cell until its asserts hold.

    If they hold already, the cell is executed. Otherwise none of it is executed here: the asserts are tested
    in a sandbox, and the repaired cell is inserted below for the user to execute.

    Raises:
        SutureError: The cell cannot be tested, or the run failed.
    """
    arguments = _parse_arguments(line)
    project = make_cell_project(cell, shell.user_ns)
    settings = load_settings(Path.cwd(), _settings_from(arguments)).settings
    result = _wait_in_thread(_run_project(project, arguments, settings))
    if result.outcome == "nothing_to_heal":
        run: Any = shell.run_cell  # untyped in IPython
        run(cell)
        return None
    if result.outcome == "healed" and result.candidate is not None:
        code = result.candidate.files.get(CODE_FILE, project.files[CODE_FILE])
        shell.set_next_input(project.restore_cell(code), replace=arguments.replace)
    return result


class _Parser(ArgumentParser):
    """A parser that does not exit the kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%heal: {message}", remedy=self.format_usage().strip())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or "nothing was executed", remedy="leave out --help")


def _parse_arguments(line: str) -> Namespace:
    parser = _Parser(prog="%%heal", description="Repair this cell until its asserts hold.")
    parser.add_argument("--model", help="the model, as PROVIDER:MODEL; `none` tries small edits only")
    parser.add_argument("--seconds", type=float, help="max seconds")
    parser.add_argument("--replace", action="store_true", help="replace this cell with the repaired text")
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as fault:
        raise UsageError(f"%%heal: {fault}") from fault


def _settings_from(arguments: Namespace) -> dict[str, object]:
    values = {
        "model.name": arguments.model,
        "budget.seconds": arguments.seconds,
        "sandbox.python": sys.executable,
    }
    return {name: value for name, value in values.items() if value is not None}


async def _run_project(project: CellProject, arguments: Namespace, settings: Settings) -> Result:
    """Run a heal on a temporary project."""
    narrator = ProgressNarrator()

    async def report(event: Event) -> None:
        for line in narrator.lines_for(event):
            print(sanitize_text(line), file=sys.stderr)

    with temporary_folder("suture-cell-") as project_folder:
        _write_files(project, project_folder)
        request = {"path": str(project_folder), "test": TEST_COMMAND, "protect": [EARLIER_FILE]}
        folder, _ = await run_standalone_job(
            settings.paths.home, "heal", request, report, job_flags=_settings_from(arguments)
        )
    events = read_ledger(folder.ledger_path).events
    end = last_payload(events, RunFinished) or last_payload(events, RunPaused)
    assert end is not None  # a job without an error has finished or parked its run
    return folder.load_record(Result, end.result)


def _write_files(project: CellProject, folder: Path) -> None:
    for name, text in project.files.items():
        (folder / name).write_text(text, "utf-8")


def _wait_in_thread(coroutine: Any) -> Result:
    """Run a coroutine in another thread, because this one runs the kernel's event loop, and wait; Ctrl-C stops it."""
    thread: LoopThread[Result] = LoopThread(coroutine)
    try:
        return thread.end.result()
    except KeyboardInterrupt:
        thread.cancel()
        with suppress(BaseException):  # the run is recorded as cancelled, and the interrupt is raised again
            thread.end.result()
        raise
