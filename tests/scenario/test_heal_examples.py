"""Each example is repaired end to end; the model is wrong first and right second."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from project_files import read_tree
from run_events import read_events
from suture.api import HealOptions, heal
from suture.core.settings import Settings
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)  # the certification alone may take a minute


def format_file(path: str, text: str) -> str:
    return f"### {path}\n```python\n{text}\n```"


@pytest.mark.heavy
async def test_an_example_is_healed_after_a_wrong_reply(
    broken_project: tuple[Path, dict[str, Any]], settings: Settings
) -> None:
    project, fix = broken_project
    before = read_tree(project)
    text = (project / fix["file"]).read_text()
    right = text.replace(fix["wrong"], fix["right"])
    wrong = right.replace(
        fix["right"], "raise RuntimeError('wrong')  # " + fix["right"].splitlines()[0].strip()
    )
    model = ScriptedModel([format_file(fix["file"], wrong), *[format_file(fix["file"], right)] * 4])

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, model=model))

    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert read_tree(project) == before
    assert fix["file"] in result.diff
    assert 2 <= result.spend.attempts <= 5


@pytest.mark.heavy
async def test_the_diff_applies_and_can_be_undone(
    broken_project: tuple[Path, dict[str, Any]], settings: Settings, tmp_path: Path
) -> None:
    project, fix = broken_project
    right = (project / fix["file"]).read_text().replace(fix["wrong"], fix["right"])
    copy = shutil.copytree(project, tmp_path / "copy")
    model = ScriptedModel([format_file(fix["file"], right)])

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, model=model, apply=True))

    assert result.outcome == "healed", result.reason
    assert (project / fix["file"]).read_text() == right
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=result.diff.encode(), cwd=copy, check=True)
    assert read_tree(copy) == read_tree(project)
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=copy, check=False
    )
    assert completed.returncode == 0
    events = read_events(settings.paths.home, result.run_id)
    event = next(event for event in events if event.kind == "tree.applied")
    undo = Path(event.data["undo"]).read_bytes()
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=undo, cwd=project, check=True)
    assert (project / fix["file"]).read_text() != right


async def test_wrong_replies_do_not_heal_and_leave_the_project_unchanged(
    broken_project: tuple[Path, dict[str, Any]], settings: Settings
) -> None:
    project, fix = broken_project
    before = read_tree(project)
    text = (project / fix["file"]).read_text()
    replies = [format_file(fix["file"], text + f"\n# attempt {number}\n") for number in range(20)]

    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=settings, model=ScriptedModel(replies))
    )

    assert result.outcome in ("budget_exhausted", "stuck")
    assert result.spend.attempts <= settings.budget.attempts
    assert read_tree(project) == before


async def test_a_passing_project_is_left_unchanged(
    broken_project: tuple[Path, dict[str, Any]], settings: Settings
) -> None:
    project, fix = broken_project
    file = project / fix["file"]
    file.write_text(file.read_text().replace(fix["wrong"], fix["right"]))
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, model=ScriptedModel([])))
    assert (result.outcome, result.diff, result.spend.model_calls) == ("nothing_to_heal", "", 0)
