"""A project in JavaScript and one in Go, healed by a model that is wrong first and right second."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from suture.api import heal, verify
from suture.ledger import find_run, read_ledger
from suture.sandbox import BubblewrapSandbox
from suture.settings import BudgetSettings, PathSettings, RepairSettings, Settings
from suture.testing import ScriptedModel

FENCES = {"node": "javascript", "go": "go"}
COMMANDS = {"node": ["npm", "test"], "go": ["go", "test", "./..."]}


def settings_in(folder: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=folder / "home"),
        budget=BudgetSettings(attempts=4, seconds=500),
        repair=RepairSettings(enabled=False),
    )


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
    result = await heal(project, settings=settings, model=model, sandbox=sandbox, apply=True)
    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert (project / path).read_text() == mended
    assert result.spend.attempts >= 2
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    prepared = next(event.data for event in events if event.kind == "task.prepared")
    assert prepared["test_command"] == COMMANDS[foreign["needs"]]
    assert prepared["test_origin"]
    assert prepared["toolchain"].endswith(foreign["needs"])
    unmeasured = next(e.data["coverage_unmeasured"] for e in events if e.kind == "certificate.written")
    assert unmeasured.startswith("that is done for Python alone"), unmeasured
    prompt = "\n".join(message.content for message in model.calls[0].messages)
    assert f"```{fence}" in prompt
    assert "python" not in prompt.lower()
    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    findings = [found async for found in verify(certificate, settings=settings, sandbox=sandbox)]
    assert all(found.ok for found in findings), findings
    assert "after" in [found.name for found in findings]
