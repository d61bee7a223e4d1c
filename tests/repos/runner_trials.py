"""Trials with a test runner of a project that npm installs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from failing_projects import make_failing_project
from suture.core.records import CheckOutcome
from suture.core.settings import SandboxSettings
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.drivers.driver_protocol import find_driver
from suture.judge.trials.drivers.driver_trials import DriverTrials
from suture.judge.trials.trial_records import Proposal
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation.edits import compute_line_edits
from suture.sandbox import BubblewrapSandbox, discover_programs

__all__ = ["install_package", "make_proposals", "open_trials"]


def install_package(project: Path, package: str, timeout_s: float = 200) -> bool:
    """Install an npm package in a project without running package scripts, and return whether it worked."""
    command = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", package]
    completed = subprocess.run(command, cwd=project, capture_output=True, check=False, timeout=timeout_s)
    return completed.returncode == 0


async def open_trials(
    project: Path, sandbox: BubblewrapSandbox, path: str, text: str
) -> tuple[DriverTrials, tuple[CheckOutcome, ...]]:
    """Return trials of changes to one file of a project, and the outcomes of its unchanged tests."""
    task, _ = build_heal_task(project)
    programs = discover_programs(project, os.environ, task.language)
    command = TestCommand(task, sandbox, SandboxSettings(), programs)
    await command.collect()
    outcomes = tuple((await command.run(task.files)).outcomes)
    driver = find_driver(task.test_command, task.files, task.language)
    assert driver is not None
    failing_project = make_failing_project(
        command, task.files, {path: text}, *outcomes, argv=task.test_command, language=task.language
    )
    return DriverTrials(driver, failing_project), outcomes


def make_proposals(path: str, text: str, candidates: Sequence[str]) -> list[Proposal]:
    """Return a proposal that changes the text of a file into each candidate."""
    return [
        Proposal(
            path=path,
            edits=compute_line_edits(text, candidate),
            label="",
            score=1.0,
            operators=(),
            is_swappable=False,
        )
        for candidate in candidates
    ]
