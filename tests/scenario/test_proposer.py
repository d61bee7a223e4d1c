"""A user's own program proposes the repairs in place of a model, in a project with two wrong files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from project_files import write_files
from run_events import read_events
from suture.api import HealOptions, heal, replay, resume
from suture.core.ledger import Event, find_run
from suture.core.ledger.kinds import BudgetSettled, ProposerRan
from suture.core.records import Result
from suture.core.settings import CertificationSettings, Settings
from suture.core.settings.schema import ProposerSettings
from suture.errors import UsageError

FILES = {
    "shapes.py": "def area(w, h):\n    return w + h\n",
    "solids.py": "from shapes import area\n\n\ndef volume(w, h, d):\n    return area(w, h) - d\n",
    "tests/__init__.py": "",
    "tests/test_solids.py": """import unittest

from shapes import area
from solids import volume


class SolidsTest(unittest.TestCase):
    def test_area(self):
        self.assertEqual(area(3, 4), 12)

    def test_volume(self):
        self.assertEqual(volume(2, 3, 4), 24)
""",
}
REPAIRS = "sed -i 's/w + h/w * h/' shapes.py; sed -i 's/ - d/ * d/' solids.py\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project", FILES)


async def run_proposer(
    script: str,
    project: Path,
    settings: Settings,
    *,
    seconds: float = 60,
    turns: int = 1,
    outside: bool = False,
) -> tuple[Result, tuple[Event, ...]]:
    program = project.parent / "mend.sh"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    proposer = ProposerSettings(command=f"{program} word", seconds=seconds, turns=turns, outside=outside)
    certification = CertificationSettings(seconds=0, mutants=0)
    proposer_settings = settings.model_copy(update={"proposer": proposer, "certification": certification})
    result = await heal(project, HealOptions(test="python -m unittest", settings=proposer_settings))
    return result, read_events(settings.paths.home, result.run_id)


def list_proposer_turns(events: tuple[Event, ...]) -> list[ProposerRan]:
    return [event.payload for event in events if isinstance(event.payload, ProposerRan)]


def is_unchanged(project: Path) -> bool:
    paths = {path.relative_to(project).as_posix(): path for path in project.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in paths.items()} == FILES


async def test_a_proposers_changes_are_judged_and_delivered(project: Path, settings: Settings) -> None:
    inspection = (
        'cat "$SUTURE_TASK" "$SUTURE_FACTS"; echo "said: $1 $SUTURE_FAILING, $SUTURE_TEST_COMMAND"; ls -a\n'
    )

    result, events = await run_proposer(
        inspection + REPAIRS + "echo mine > .notes; rm tests/__init__.py\n", project, settings
    )

    assert result.outcome == "healed", result.reason
    assert "+    return w * h" in result.diff
    assert "+    return area(w, h) * d" in result.diff
    assert is_unchanged(project)
    (step,) = list_proposer_turns(events)
    assert (step.changed, step.deleted, step.excluded_files) == (
        ("shapes.py", "solids.py"),
        ("tests/__init__.py",),
        (".notes",),
    )
    assert (step.ending, step.exit_code, step.outside) == ("exit", 0, False)
    output = find_run(settings.paths.home, result.run_id).load_json(step.output)
    assert "# Repair this project" in output
    assert '"test_command": [' in output
    assert "said: word python -m unittest, python -m unittest" in output
    assert result.spend.attempts == 1
    assert result.spend.model_calls == 0

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference
    assert replayed.result.diff == result.diff


REFUSED: Mapping[str, tuple[str, str]] = {
    "edits the tests": (
        "sed -i 's/12/7/; s/24/1/' tests/test_solids.py\n",
        "files that are protected: tests/test_solids.py",
    ),
    "tries the network": (
        "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 3)'\n",
        "changed nothing; it ended with exit code 1: OSError: [Errno 101] Network is unreachable",
    ),
    "never stops": (
        "(while :; do sleep 1; done) &\nsetsid sleep 1000 &\nwhile :; do sleep 1; done\n",
        "the proposer changed nothing; it was stopped after 1 s",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_proposer_without_a_candidate_is_reported_and_not_run_again(
    case: str, project: Path, settings: Settings
) -> None:
    script, reason = REFUSED[case]
    seconds = 1 if case == "never stops" else 60

    result, events = await run_proposer(script, project, settings, seconds=seconds, turns=3)

    assert result.outcome == "not_healed"
    assert reason in result.reason.detail
    assert len(list_proposer_turns(events)) == 1
    assert is_unchanged(project)


async def test_fifty_megabytes_of_output_are_truncated(project: Path, settings: Settings) -> None:
    result, events = await run_proposer(f"yes | head -c 50000000\n{REPAIRS}echo end\n", project, settings)

    assert result.outcome == "healed"
    (step,) = list_proposer_turns(events)
    assert step.printed_bytes == 50_000_004
    output = find_run(settings.paths.home, result.run_id).load_json(step.output)
    assert len(output) < 70_000
    assert output.endswith("end\n")
    assert "bytes are cut" in output


async def test_a_broken_proposal_is_not_delivered(project: Path, settings: Settings) -> None:
    script = "rm -rf tests; echo 'import nothing' > solids.py; echo boo > conftest.py\n"

    result, events = await run_proposer(script, project, settings)

    assert result.outcome == "not_healed"
    assert result.diff == ""
    assert is_unchanged(project)
    (step,) = list_proposer_turns(events)
    assert step.deleted == ("tests/__init__.py", "tests/test_solids.py")


async def test_an_outside_proposer_has_the_users_environment(
    project: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_AGENTS_KEY", "k-17")
    notes = tmp_path / "seen"
    notes_command = f'echo "$MY_AGENTS_KEY $SUTURE_PROJECT" > {notes}'
    script = f"{notes_command}; (sleep 1000; touch {notes}) &\npwd > a.txt; pwd > .a\n{REPAIRS}"

    result, events = await run_proposer(script, project, settings, outside=True)

    assert result.outcome == "healed", result.reason
    key, _, folder = notes.read_text().strip().partition(" ")
    assert key == "k-17"
    assert not Path(folder).exists()
    assert is_unchanged(project)
    assert list_proposer_turns(events)[0].outside
    record = find_run(settings.paths.home, result.run_id).path
    assert not any(b"k-17" in path.read_bytes() for path in record.rglob("*") if path.is_file())


async def test_a_recorded_turn_is_not_repeated_by_resume(project: Path, settings: Settings) -> None:
    """The run is killed after the proposer has ended, so resume takes the turn from the record."""
    turn_log = project.parent / "turns"

    result, events = await run_proposer(
        f"echo turn >> {turn_log}\n{REPAIRS}", project, settings, outside=True
    )

    folder = find_run(settings.paths.home, result.run_id)
    position = next(n for n, event in enumerate(events) if isinstance(event.payload, ProposerRan))
    lines = folder.ledger_path.read_text().splitlines(keepends=True)
    assert any(isinstance(event.payload, BudgetSettled) for event in events[position:])
    folder.ledger_path.write_text("".join(lines[: position + 1]))
    for checkpoint in settings.paths.home.glob("*checkpoint*"):
        checkpoint.unlink()
    resumed = await resume(result.run_id, settings=settings)
    assert (resumed.outcome, resumed.diff) == ("healed", result.diff)
    assert turn_log.read_text() == "turn\n"


async def test_an_unreadable_proposer_command_is_refused(project: Path, settings: Settings) -> None:
    unreadable = settings.model_copy(update={"proposer": ProposerSettings(command="'")})
    with pytest.raises(UsageError, match="cannot be read: No closing quotation"):
        await heal(project, HealOptions(test="python -m unittest", settings=unreadable))
