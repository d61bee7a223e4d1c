"""What is left of a fix that says more than the tests ask for, in whole runs."""

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
# Both sides; the tests only have capitals on one of them.
RIGHT = BROKEN.replace("one == other", "one.lower() == other.lower()")


@pytest.fixture
def names(tmp_path: Path) -> Path:
    root = tmp_path / "names"
    root.mkdir()
    (root / "names.py").write_text(BROKEN)
    (root / "test_names.py").write_text(TESTS)
    (root / "README.md").write_text("Names.\n")
    return root


async def mend(root: Path, settings: Settings, sandbox: BubblewrapSandbox, *replies: str) -> Result:
    reply = "\n".join(replies)
    return await heal(
        root,
        HealOptions(
            test=COMMAND, settings=settings, model=ScriptedModel([reply] * 4), sandbox=sandbox, apply=True
        ),
    )


def as_reply(path: str, text: str) -> str:
    return f"### {path}\n```python\n{text}\n```\n"


async def test_both_sides_of_a_comparison_stay_though_the_tests_need_one(
    names: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    result = await mend(names, settings, sandbox, as_reply("names.py", RIGHT))
    assert result.outcome == "healed", result.reason
    assert (names / "names.py").read_text() == RIGHT


@pytest.mark.heavy
async def test_what_changes_an_answer_stays_and_what_changes_none_is_left_out_and_kept_beside(
    names: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    other = RIGHT.replace("word[0] for", "word[0].lower() for")  # the tests' name has no capital
    longer = other.replace('text.upper() + "!"', 'f"{text.upper()}!"')  # says the same
    result = await mend(names, settings, sandbox, as_reply("names.py", longer))
    assert result.outcome == "healed", result.reason
    assert (names / "names.py").read_text() == other
    folder = find_run(settings.paths.home, result.run_id)
    told = next(e.data for e in read_ledger(folder.ledger_path).events if e.kind == "certificate.written")
    assert told["left_out"] == ["names.py (shout)"]
    assert '+    return f"{text.upper()}!"' in (folder.path / "full.diff").read_text()
    assert "text.upper()}" not in result.diff


async def test_answers_are_compared_where_a_test_calls_the_function(
    names: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    task, _ = build_heal_task(names, test=tuple(COMMAND.split()))
    interpreter = discover_interpreter(names, {"PATH": "/usr/bin"})
    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter)
    behaviour = ChangeBehaviour(suite=suite, files={"names.py": RIGHT})
    assert not await behaviour.is_kept_by({"names.py": RIGHT.replace("other.lower()", "other")})
    assert await behaviour.is_kept_by({"names.py": RIGHT.replace(' + "!"', ' + str("!")')})
    assert behaviour.compared > 20
