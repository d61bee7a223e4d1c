"""What the code under test prints cannot end a run with an error."""

from __future__ import annotations

import os
import shutil
import sys

from requirements import Require
from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import Sandbox, discover_programs

TESTS = (
    "const test = require('node:test');\nconst one = require('./one');\n"
    "test('one', () => { if (one() !== 1) throw new Error('no'); });\n"
)
WRONG = "module.exports = () => 2;\n"
LONG_LINE = (
    "module.exports = () => { const error = new Error('no');\n"
    "  error.stack = `Error: no\\n    at f (${__filename}:${'1'.repeat(5000)}:1)`; throw error; };\n"
)


async def check(code: str, sandbox: Sandbox, settings: SandboxSettings, require: Require) -> Verdict:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    files = {"one.js": WRONG.encode(), "one.test.js": TESTS.encode()}
    task = Task(
        statement="", kind="heal", files=files, test_command=("node", "--test"), language="javascript"
    )
    environ = {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}
    programs = discover_programs(None, environ, "javascript")
    suite = await prepare_suite(task, sandbox, settings, programs)
    return await check_candidate(Candidate(files={"one.js": code}, origin="sample"), suite)


async def test_a_line_number_that_is_too_long_does_not_end_the_run(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, require: Require
) -> None:
    verdict = await check(LONG_LINE, sandbox, sandbox_settings, require)
    assert "one.test.js::one" in {outcome.check_id for outcome in verdict.outcomes if not outcome.passed}


async def test_code_that_ends_a_test_program_with_success_passes_no_test(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    report = (
        '<testsuite><testcase name="Adds" classname="Roman"><failure message="no"/></testcase></testsuite>'
    )
    check = f". ./roman.h; mkdir -p _suture/reports; echo '{report}' > _suture/reports/roman.xml\n"
    files = {"roman.h": b":\n", "check.sh": check.encode()}
    task = Task(statement="", kind="heal", files=files, test_command=("sh", "check.sh"), language="cpp")
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, "cpp")
    suite = await prepare_suite(task, sandbox, sandbox_settings, programs)
    verdict = await check_candidate(Candidate(files={"roman.h": "exit 0\n"}, origin="sample"), suite)
    assert [(found.check_id, found.status) for found in verdict.outcomes] == [
        ("roman::Roman.Adds", "missing")
    ]
