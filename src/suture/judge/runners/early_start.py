"""Start a project's pytest in the sandbox before the run that will use it has begun.

Pytest takes as long to start as Suture's own modules take to import, and another process starts it. Whether the project
is tested by pytest is only guessed here: a wrong guess costs what it starts, and changes nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from suture.core.records import Task
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.pytest_runner import PytestRunner
from suture.project.languages import is_pytest_command
from suture.project.test_commands import split_command
from suture.sandbox import Sandbox, SupportsPreparation, discover_interpreter, lend_pytest, open_sandbox

DEFAULT_COMMAND = ("python", "-m", "pytest")
TEST_FILES = ("test_*.py", "*_test.py")
RUNS_AT_ONCE = 2
"""The first run of the tests, and the search's own process or what measures the coverage."""
MAX_FOLDERS = 50
"""Folders in which a test file is looked for."""


@asynccontextmanager
async def open_early_sandbox(settings: Settings, project: Path, test: str | None) -> AsyncIterator[Sandbox]:
    """Open the sandbox of a run, and start the project's pytest there in the background; close it at the end.

    Args:
        project: The project's folder.
        test: The user's test command; by default that of the settings.

    Raises:
        UsageError: The settings name no usable sandbox.
    """
    sandbox = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    starting = asyncio.create_task(
        _start_pytest(sandbox, settings, project, test or settings.project.test or "")
    )
    try:
        yield sandbox
    finally:
        starting.cancel()
        await asyncio.wait([starting])
        await sandbox.close()


async def _start_pytest(sandbox: Sandbox, settings: Settings, project: Path, test: str) -> None:
    # A run that meets the same error reports it.
    with suppress(SutureError, OSError):
        command = split_command(test) if test else DEFAULT_COMMAND
        is_likely = is_pytest_command(command) if test else has_pytest_tests(project)
        if not is_likely or not isinstance(sandbox, SupportsPreparation):
            return
        found = await asyncio.to_thread(discover_interpreter, project, os.environ, settings.sandbox.python)
        interpreter = lend_pytest(found)
        if interpreter is not None and not interpreter.loaned_pytest:
            task = Task(statement="", kind="heal", test_command=command)
            line = CommandLine(task=task, settings=settings.sandbox, interpreter=interpreter)
            await sandbox.prepare_runs(PytestRunner(line, sandbox).early_request(), RUNS_AT_ONCE)


def has_pytest_tests(project: Path) -> bool:
    """Return whether one of a project's first folders has a file that pytest collects by its name."""
    for number, (_, folders, names) in enumerate(os.walk(project)):
        if any(fnmatch(name, glob) for name in names for glob in TEST_FILES):
            return True
        if number >= MAX_FOLDERS:
            return False
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
    return False
