"""A project in JavaScript and one in Go, healed by a model that is wrong first and right second."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.api import HealOptions, heal, verify
from suture.core.ledger import find_run, read_ledger
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
from suture.judge.mutation_testing.mutant_runs import build_mutant_detector
from suture.sandbox import BubblewrapSandbox, discover_programs
from suture.testing import ScriptedModel

FENCES = {"node": "javascript", "go": "go"}
COMMANDS = {"node": ["npm", "test"], "go": ["go", "test", "./..."]}


def settings_in(folder: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=folder / "home"),
        budget=BudgetSettings(attempts=4, seconds=500),
        certification=CertificationSettings(mutants=4, seconds=300),
        repair=RepairSettings(enabled=False),
    )


@pytest.mark.heavy
@pytest.mark.timeout(600)  # Go compiles its library anew in each run
async def test_wrong_first_and_right_second_heals(
    foreign: dict[str, Any], sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    project = shutil.copytree(foreign["root"], tmp_path / "project")
    path, wrong, right = foreign["fix"]
    text, fence = (project / path).read_text(), FENCES[foreign["needs"]]
    mended = text.replace(wrong, right)
    broken = mended.replace(right, right.replace("at", "undefined").replace("day", "nil"))
    replies = [f"### {path}\n```{fence}\n{code}```\n" for code in (broken, mended)]
    model = ScriptedModel([replies[0], *[replies[1]] * 3])
    settings = settings_in(tmp_path)
    result = await heal(project, HealOptions(settings=settings, model=model, sandbox=sandbox, apply=True))
    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert (project / path).read_text() == mended
    assert result.spend.attempts >= 2
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    prepared = next(event.data for event in events if event.kind == "task.prepared")
    assert prepared["test_command"] == COMMANDS[foreign["needs"]]
    assert prepared["test_origin"]
    assert prepared["toolchain"].endswith(foreign["needs"])
    written = next(event.data for event in events if event.kind == "certificate.written")
    assert written["coverage_unmeasured"] == "python_only"
    assert (written["mutants"], written["selected"]) == (4, 12), written["mutation_unmeasured"]
    assert written["killed"] >= 2
    prompt = "\n".join(message.content for message in model.calls[0].messages)
    assert f"```{fence}" in prompt
    assert "python" not in prompt.lower()
    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    findings = [found async for found in verify(certificate, settings=settings, sandbox=sandbox)]
    assert all(found.ok for found in findings), findings
    told = {found.name: found.detail for found in findings}
    assert told["mutation"].startswith(f"the tests notice {written['killed']} of 12 mutants, selected from ")


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_what_the_compiler_refuses_is_noticed_by_no_test(
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
    noticed = await build_mutant_detector(suite, {}, verdict)
    assert await noticed({"shop.go": code.replace("a + b", "a - b")})
    assert not await noticed({"shop.go": code.replace("a + b", "a < b")})
