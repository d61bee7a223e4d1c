"""Whole runs drop the parts of a fix that no test needs, unless they change an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.ledger import find_run, read_ledger
from suture.core.records import Result
from suture.core.settings import Settings
from suture.judge import prepare_suite
from suture.judge.minimisation.equivalence import ChangeBehaviour
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import BubblewrapSandbox, discover_interpreter
from suture.testing import ScriptedModel

COMMAND = BARE_PYTEST
BROKEN = """\
def is_same(one, other):
    return one == other


def initials(name):
    return "".join(word[0] for word in name.split())


def shout(text):
    return text.upper() + "!"
"""
TESTS = """\
from names import initials, is_same, shout


def test_same():
    assert is_same("Ada", "ada")


def test_initials():
    assert initials("ada lovelace") == "al"


def test_shout():
    assert shout("hey") == "HEY!"
"""
# The fix changes both sides; the tests have capitals on one side only.
RIGHT = BROKEN.replace("one == other", "one.lower() == other.lower()")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "names"
    root.mkdir()
    (root / "names.py").write_text(BROKEN)
    (root / "test_names.py").write_text(TESTS)
    (root / "README.md").write_text("Names.\n")
    return root


async def run_heal(root: Path, settings: Settings, sandbox: BubblewrapSandbox, *replies: str) -> Result:
    reply = "\n".join(replies)
    return await heal(
        root,
        HealOptions(
            test=COMMAND, settings=settings, model=ScriptedModel([reply] * 4), sandbox=sandbox, apply=True
        ),
    )


def format_reply(path: str, text: str) -> str:
    return f"### {path}\n```python\n{text}\n```\n"


async def test_both_sides_of_a_changed_comparison_are_kept(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    result = await run_heal(project, settings, sandbox, format_reply("names.py", RIGHT))
    assert result.outcome == "healed", result.reason
    assert (project / "names.py").read_text() == RIGHT


@pytest.mark.heavy
async def test_parts_that_change_no_answer_are_left_out_and_saved(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    needed = RIGHT.replace("word[0] for", "word[0].lower() for")  # the name in the tests has no capital
    full = needed.replace('text.upper() + "!"', 'f"{text.upper()}!"')  # an equivalent expression
    result = await run_heal(project, settings, sandbox, format_reply("names.py", full))
    assert result.outcome == "healed", result.reason
    assert (project / "names.py").read_text() == needed

    folder = find_run(settings.paths.home, result.run_id)
    event_data = next(
        e.data for e in read_ledger(folder.ledger_path).events if e.kind == "certificate.written"
    )
    assert event_data["left_out"] == ["names.py (shout)"]
    assert '+    return f"{text.upper()}!"' in (folder.path / "full.diff").read_text()
    assert "text.upper()}" not in result.diff


async def test_a_part_is_kept_if_it_changes_an_answer(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    task, _ = build_heal_task(project, test=tuple(COMMAND.split()))
    interpreter = discover_interpreter(project, {"PATH": "/usr/bin"})

    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter)
    behaviour = ChangeBehaviour(suite=suite, files={"names.py": RIGHT})

    assert not await behaviour.is_kept_by({"names.py": RIGHT.replace("other.lower()", "other")})
    assert await behaviour.is_kept_by({"names.py": RIGHT.replace(' + "!"', ' + str("!")')})
    assert behaviour.compared > 20
