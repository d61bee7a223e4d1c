"""A command whose first test never ends, so that its runner reports no test."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from requirements import Require
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.judge.failures import hit_time_limit
from suture.sandbox import BubblewrapSandbox, RunRequest, RunResult, discover_programs

pytestmark = pytest.mark.timeout(240)
ENDLESS = "exports.count = (n) => {\n  let i = 0;\n  while (i < n) i -= 1;\n  return i;\n};\n"
TESTS = (
    "const test = require('node:test'), assert = require('node:assert');\n"
    "const { count } = require('./count');\n"
    "test('counts', () => assert.equal(count(3), 3));\n"
    "test('more', () => assert.equal(count(5), 5));\n"
)
NAMES = {"count.test.js::counts", "count.test.js::more"}


class CountingSandbox(BubblewrapSandbox):
    """A sandbox that counts its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    async def run(self, request: RunRequest) -> RunResult:
        """Count the run, and run the program."""
        self.runs += 1
        return await super().run(request)


async def test_a_stopped_command_runs_once_and_each_test_decides(
    sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    files = {"count.js": ENDLESS.encode(), "count.test.js": TESTS.encode()}
    task = Task(
        statement="", kind="heal", files=files, test_command=("node", "--test"), language="javascript"
    )
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, "javascript")
    sandbox = CountingSandbox()

    try:
        suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=10), programs)
        base = await check_candidate(Candidate(files={}, origin="user"), suite)
        assert (sandbox.runs, base.passed, base.evidence) == (1, frozenset(), "nonce")
        assert all(map(hit_time_limit, base.outcomes))
        assert suite.test_files == ("count.test.js",)
        texts = {
            "right": ENDLESS.replace("-=", "+="),
            "ends": "process.exit(0);\n",
            "wrong": "exports.count = (n) => n && 3;\n",
        }
        verdicts = {
            name: await check_candidate(Candidate(files={"count.js": text}, origin="sample"), suite)
            for name, text in texts.items()
        }
    finally:
        await sandbox.close()

    assert verdicts["right"].passed == NAMES
    assert verdicts["right"].evidence == "nonce"
    assert verdicts["wrong"].failed == {"count.test.js::more"}
    # The file exits before it reports a test, so only its exit status is known.
    assert verdicts["ends"].evidence == "exit_status"
