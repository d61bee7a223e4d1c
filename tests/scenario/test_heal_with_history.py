"""The commit that broke a test is found, and its changes are reverted first."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_events
from suture.api import HealOptions, heal
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.testing import ScriptedModel

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.timeout(300),  # the search is slow on a busy machine
]

RIGHT = '''"""Levels."""


def level(points):
    """The level that so many points are worth."""
    steps = (0, 10, 30, 70)
    reached = [number for number, step in enumerate(steps) if points >= step]
    return max(reached)


def name(points):
    """Its name."""
    return "bronze silver gold".split()[min(level(points), 2)]
'''
WRONG = RIGHT.replace(
    """    steps = (0, 10, 30, 70)
    reached = [number for number, step in enumerate(steps) if points >= step]
    return max(reached)
""",
    """    quotient, rest = divmod(points, 17)
    return quotient // 2 + bool(rest > 40)
""",
)
"""No small change repairs this version. Only an earlier commit contains the repair."""
TESTS = """from levels import level, name


def test_levels():
    assert [level(p) for p in (0, 9, 10, 29, 30, 69, 70, 500)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_names():
    assert (name(0), name(12), name(99)) == ("bronze", "silver", "gold")
"""


def commit(project: Path, subject: str, files: Mapping[str, str]) -> None:
    """Write the files and commit them."""
    for path, text in files.items():
        (project / path).write_text(text)
    git(project, "add", "-A")
    git(project, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", subject)


def git(project: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Six commits, the fourth of which breaks the code."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    commit(project, "first", {"levels.py": "", "test_levels.py": TESTS})
    commit(project, "levels", {"levels.py": RIGHT})
    commit(project, "notes", {"notes.py": "LINES = 3\n"})
    commit(project, "levels by division", {"levels.py": WRONG})
    commit(project, "more notes", {"notes.py": "LINES = 4\n"})
    commit(project, "a colour", {"levels.py": WRONG + "\n\nCOLOUR = 'red'\n"})
    return project


async def run_heal(
    project: Path, settings: Settings, since: str | None = None
) -> tuple[Result, dict[str, Any]]:
    """Repair the project without a model, and return the result and the data of the history search."""
    searching = load_settings(project, {"paths.home": str(settings.paths.home)}).settings
    result = await heal(
        project, HealOptions(test=BARE_PYTEST, since=since, settings=searching, model=ScriptedModel([]))
    )
    events = read_events(settings.paths.home, result.run_id)
    (searched,) = (event.data for event in events if event.kind == "history.searched")
    return result, dict(searched)


@pytest.mark.heavy
@pytest.mark.parametrize("since", [None, "HEAD~4"])
async def test_the_commit_that_broke_the_tests_is_reverted(
    project: Path, settings: Settings, since: str | None
) -> None:
    result, searched = await run_heal(project, settings, since)
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["levels.py"] == RIGHT + "\n\nCOLOUR = 'red'\n"
    assert searched["first_bad"].endswith("levels by division")
    assert git(project, "rev-parse", "HEAD~2")[:12] == searched["first_bad"].split()[0]


@pytest.mark.heavy
async def test_uncommitted_changes_are_suspected_first(project: Path, settings: Settings) -> None:
    commit(project, "right again", {"levels.py": RIGHT})
    (project / "levels.py").write_text(WRONG)

    result, searched = await run_heal(project, settings)

    assert result.outcome == "healed", result.reason
    assert searched["first_bad"] == "changes that are not committed"
    assert result.candidate is not None
    assert result.candidate.files["levels.py"] == RIGHT


@pytest.mark.parametrize("since", ["no-such-ref", "--output=/tmp/x", ""])
async def test_an_unknown_commit_is_refused(project: Path, settings: Settings, since: str) -> None:
    with pytest.raises(UsageError, match="is no commit"):
        await heal(
            project, HealOptions(test=BARE_PYTEST, since=since, settings=settings, model=ScriptedModel([]))
        )
