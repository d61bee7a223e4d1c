"""Suites of Python projects in folders, for the tests of trials and of the search."""

from __future__ import annotations

from pathlib import Path

from bare_pytest import BARE_PYTEST
from suture.core.settings import SandboxSettings
from suture.judge import Suite, prepare_suite
from suture.judge.runners.test_command import TestCommand
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import Sandbox, discover_interpreter


async def prepare_python_suite(
    folder: Path, sandbox: Sandbox, command: str = BARE_PYTEST
) -> tuple[Suite, TestCommand]:
    """Return the suite of the project in a folder, and its test command.

    Args:
        folder: The folder of the project.
        sandbox: The sandbox in which the tests run.
        command: The command that runs the tests.
    """
    task, _ = build_heal_task(folder, test=command)
    suite = await prepare_suite(task, sandbox, SandboxSettings(), discover_interpreter(folder, {}))
    assert suite.command is not None
    return suite, suite.command
