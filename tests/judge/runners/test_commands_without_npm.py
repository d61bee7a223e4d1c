"""Trials of a command that npm starts skip npm if the unchanged code then prints the same."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from requirements import Require
from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.exit_status_runner import ExitStatusRunner
from suture.sandbox import BubblewrapSandbox, RunRequest, RunResult, discover_programs

RIGHT = b"exports.twice = (n) => n * 2;\n"
CHECK = b"""console.log('1 check');
if (require('./twice').twice(5) !== 10) { console.log('no'); process.exit(3); }
"""


class RecordingSandbox(BubblewrapSandbox):
    """A sandbox that records what it starts."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[str] = []

    async def run(self, request: RunRequest) -> RunResult:
        """Record the program, and run it."""
        self.started.append(request.argv[0])
        return await super().run(request)


@pytest.mark.parametrize(
    ("script", "skips_npm"), [("node check.js", True), ("echo $npm_lifecycle_event; node check.js", False)]
)
async def test_a_trial_skips_npm_if_the_base_run_agrees(
    script: str, skips_npm: bool, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    files = {
        "package.json": json.dumps({"scripts": {"check": script}}).encode(),
        "twice.js": RIGHT.replace(b"*", b"+"),
        "check.js": CHECK,
    }
    task = Task(
        statement="", kind="heal", files=files, test_command=("npm", "run", "check"), language="javascript"
    )
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, "javascript")
    line = CommandLine(task=task, settings=SandboxSettings(), interpreter=programs)
    sandbox = RecordingSandbox()

    try:
        command = ExitStatusRunner(line, sandbox)
        await command.try_base()
        sandbox.started.clear()
        (wrong,) = await command.run_selected(files, ())
        (right,) = await command.run_selected({**files, "twice.js": RIGHT}, ())
    finally:
        await sandbox.close()

    assert (wrong.passed, right.passed) == (False, True)
    # The first trial checks without npm that the unchanged code prints the same. If so, it counts as the run.
    assert sandbox.started == ["/bin/sh"] * 2 if skips_npm else ["/bin/sh", "npm", "npm"]
