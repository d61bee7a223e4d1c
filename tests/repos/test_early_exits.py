"""Code that ends the test process before its tests have run is not healed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import BubblewrapSandbox, discover_programs

EXITS = {
    "node": "process.exit(0);\n",
    "go": 'package clock\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Add(a, b int) int { return a }',
}


async def make_suite(root: Path, sandbox: BubblewrapSandbox) -> Suite:
    task, _ = build_heal_task(root)
    environ = {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}
    return await prepare_suite(
        task, sandbox, SandboxSettings(), discover_programs(root, environ, task.language)
    )


async def test_an_early_exit_does_not_pass(
    foreign_project: dict[str, Any], sandbox: BubblewrapSandbox
) -> None:
    suite = await make_suite(foreign_project["root"], sandbox)
    wrong = Candidate(files={foreign_project["fix"][0]: EXITS[foreign_project["needs"]]}, origin="repair")

    verdict = await check_candidate(wrong, suite)

    # node:test reports the file itself as passed, so only outcomes inside it count.
    outcomes = [outcome for outcome in verdict.outcomes if "::" in outcome.check_id]
    assert outcomes
    assert {outcome.status for outcome in outcomes} == {"missing"}
    facts = [outcome.counterexample for outcome in outcomes if outcome.counterexample is not None]
    assert facts
    assert "never reported it (exit code 0)" in facts[0].exception


async def test_a_candidate_cannot_write_tests_settings_or_other_languages(
    foreign_project: dict[str, Any], sandbox: BubblewrapSandbox
) -> None:
    suite = await make_suite(foreign_project["root"], sandbox)
    paths = [
        *(path for path in suite.task.files if path != foreign_project["fix"][0]),
        "helper.py",
        "node_modules/a.js",
    ]

    verdict = await check_candidate(Candidate(files=dict.fromkeys(paths, "exit 0"), origin="repair"), suite)

    refused_paths = {
        path for note in verdict.notes if note.code == "protected_file" for path in note.subjects
    }
    assert refused_paths >= {"helper.py", "node_modules/a.js", *(path for path in paths if "test" in path)}
    assert refused_paths & {"package.json", "go.mod"}
