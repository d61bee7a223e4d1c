"""A JavaScript and a Go project are healed by a model whose first reply is wrong."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from run_events import read_events
from suture.api import HealOptions, heal, verify
from suture.core.ledger import find_run
from suture.core.records import Candidate, Task
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.judge import check_candidate, prepare_suite
from suture.judge.mutation_testing.mutant_runs import open_mutant_detector
from suture.sandbox import BubblewrapSandbox, discover_programs
from suture.testing import ScriptedModel

FENCES = {"node": "javascript", "go": "go"}
COMMANDS = {"node": ["npm", "test"], "go": ["go", "test", "./..."]}


def make_settings(folder: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=folder / "home"),
        budget=BudgetSettings(attempts=4, seconds=500),
        certification=CertificationSettings(mutants=4, seconds=300),
        repair=RepairSettings(enabled=False),
    )


@pytest.mark.heavy
@pytest.mark.timeout(600)  # Go recompiles its library in each run
async def test_a_project_is_healed_after_a_wrong_reply(
    foreign_project: dict[str, Any], sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    project = shutil.copytree(foreign_project["root"], tmp_path / "project")
    path, wrong, right = foreign_project["fix"]
    text, fence = (project / path).read_text(), FENCES[foreign_project["needs"]]
    repaired = text.replace(wrong, right)
    broken = repaired.replace(right, right.replace("at", "undefined").replace("day", "nil"))
    replies = [f"### {path}\n```{fence}\n{code}```\n" for code in (broken, repaired)]
    model = ScriptedModel([replies[0], *[replies[1]] * 3])
    settings = make_settings(tmp_path)

    result = await heal(project, HealOptions(settings=settings, model=model, sandbox=sandbox, apply=True))

    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert (project / path).read_text() == repaired
    assert result.spend.attempts >= 2
    events = read_events(settings.paths.home, result.run_id)
    prepared = next(event.data for event in events if event.kind == "task.prepared")
    assert prepared["test_command"] == COMMANDS[foreign_project["needs"]]
    assert prepared["test_origin"]
    assert prepared["toolchain"].endswith(foreign_project["needs"])
    certification = next(event.data for event in events if event.kind == "certificate.written")
    assert certification["coverage_unmeasured"] == "python_only"
    assert (certification["mutants"], certification["selected"]) == (4, 12), certification[
        "mutation_unmeasured"
    ]
    assert certification["killed"] >= 2
    prompt = "\n".join(message.content for message in model.calls[0].messages)
    assert f"```{fence}" in prompt
    assert "python" not in prompt.lower()
    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    findings = [finding async for finding in verify(certificate, settings=settings, sandbox=sandbox)]
    assert all(finding.ok for finding in findings), findings
    details = {finding.name: finding.detail for finding in findings}
    assert details["mutation"].startswith(
        f"the tests notice {certification['killed']} of 12 deliberate mistakes, selected from "
    )


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_mutant_that_does_not_compile_is_not_detected(
    require: Require, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    code = "package shop\n\nfunc Total(a int, b int) int {\n\treturn a + b\n}\n"
    files = {
        "go.mod": b"module shop\n\ngo 1.19\n",
        "shop.go": code.encode(),
        "shop_test.go": b'package shop\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n'
        b"\tif Total(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
    }
    task = Task(statement="", kind="heal", files=files, test_command=("go", "test", "./..."), language="go")
    settings = SandboxSettings()
    suite = await prepare_suite(task, sandbox, settings, discover_programs(tmp_path, os.environ, "go"))

    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)

    assert verdict.passed

    mutants = [{"shop.go": code.replace("a + b", changed)} for changed in ("a - b", "a < b")]
    async with open_mutant_detector(suite, {}, verdict) as find_noticed:
        assert await find_noticed(mutants) == [True, False]
