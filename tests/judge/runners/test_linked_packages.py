"""Packages are mounted at the root of the sandbox and linked into projects that refer to them by path."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import Sandbox, discover_programs

WRONG = "exports.add = (a, b) => a - b;\n"
CHECKER = (
    "#!/usr/bin/env node\nconst { add } = require(process.cwd() + '/src/sum.js');\n"
    "require('assert').equal(add(1, 2), require('three'));\nconsole.log('# tests 1');\n"
)


@pytest.mark.parametrize(
    "script",
    [
        "node --no-warnings node_modules/checker/check.js",
        "./node_modules/.bin/checker",
        "node run.js",
    ],
)
async def test_a_path_into_the_packages_resolves(
    script: str, tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    files = {
        "package.json": json.dumps({"name": "sums", "scripts": {"test": script}}),
        "run.js": "require(__dirname + '/node_modules/checker/check.js');\n",
        "src/sum.js": WRONG,
        "node_modules/checker/check.js": CHECKER,
        "node_modules/three/index.js": "module.exports = 3;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "node_modules/checker/check.js").chmod(0o755)
    (tmp_path / "node_modules/.bin").mkdir()
    (tmp_path / "node_modules/.bin/checker").symlink_to("../checker/check.js")
    task, _ = build_heal_task(tmp_path)
    programs = discover_programs(tmp_path, os.environ, task.language)
    suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=60.0), programs)
    wrong = await check_candidate(Candidate(files={}, origin="sample"), suite)
    assert not wrong.all_passed
    assert "AssertionError" in wrong.output, wrong

    right = {"src/sum.js": WRONG.replace("-", "+")}
    assert (await check_candidate(Candidate(files=right, origin="sample"), suite)).all_passed
