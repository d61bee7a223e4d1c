"""A user's own program in place of a model: shell scripts, on a project with two wrong files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from suture.api import HealOptions, heal, replay, resume
from suture.core.ledger import Event, find_run, read_ledger
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
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def healed_by(
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
    asked = ProposerSettings(command=f"{program} word", seconds=seconds, turns=turns, outside=outside)
    proof = CertificationSettings(seconds=0, mutants=0)
    chosen = settings.model_copy(update={"proposer": asked, "certification": proof})
    result = await heal(project, HealOptions(test="python -m unittest", settings=chosen))
    return result, read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events


def ran(events: tuple[Event, ...]) -> list[ProposerRan]:
    return [event.payload for event in events if isinstance(event.payload, ProposerRan)]


def untouched(project: Path) -> bool:
    here = {path.relative_to(project).as_posix(): path for path in project.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in here.items()} == FILES


async def test_what_it_changes_is_judged_and_delivered(project: Path, settings: Settings) -> None:
    says = (
        'cat "$SUTURE_TASK" "$SUTURE_FACTS"; echo "said: $1 $SUTURE_FAILING, $SUTURE_TEST_COMMAND"; ls -a\n'
    )
    result, events = await healed_by(
        says + REPAIRS + "echo mine > .notes; rm tests/__init__.py\n", project, settings
    )
    assert result.outcome == "healed", result.reason
    assert "+    return w * h" in result.diff
    assert "+    return area(w, h) * d" in result.diff
    assert untouched(project)
    (step,) = ran(events)
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
    again = await replay(result.run_id, settings=settings)
    assert again.same, again.difference
    assert again.result.diff == result.diff


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
async def test_what_brings_no_candidate_is_reported_and_not_asked_again(
    case: str, project: Path, settings: Settings
) -> None:
    script, why = REFUSED[case]
    seconds = 1 if case == "never stops" else 60
    result, events = await healed_by(script, project, settings, seconds=seconds, turns=3)
    assert result.outcome == "not_healed"
    assert why in result.reason.detail
    assert len(ran(events)) == 1
    assert untouched(project)


async def test_fifty_megabytes_of_output_are_no_burden(project: Path, settings: Settings) -> None:
    result, events = await healed_by(f"yes | head -c 50000000\n{REPAIRS}echo end\n", project, settings)
    assert result.outcome == "healed"
    (step,) = ran(events)
    assert step.printed_bytes == 50_000_004
    output = find_run(settings.paths.home, result.run_id).load_json(step.output)
    assert len(output) < 70_000
    assert output.endswith("end\n")
    assert "bytes are cut" in output


async def test_a_broken_project_is_never_delivered(project: Path, settings: Settings) -> None:
    script = "rm -rf tests; echo 'import nothing' > solids.py; echo boo > conftest.py\n"
    result, events = await healed_by(script, project, settings)
    assert result.outcome == "not_healed"
    assert result.diff == ""
    assert untouched(project)
    (step,) = ran(events)
    assert step.deleted == ("tests/__init__.py", "tests/test_solids.py")


async def test_outside_it_has_the_users_environment_and_no_sandbox(
    project: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_AGENTS_KEY", "k-17")
    seen = tmp_path / "seen"
    says = f'echo "$MY_AGENTS_KEY $SUTURE_PROJECT" > {seen}'
    script = f"{says}; (sleep 1000; touch {seen}) &\npwd > a.txt; pwd > .a\n{REPAIRS}"
    result, events = await healed_by(script, project, settings, outside=True)
    assert result.outcome == "healed", result.reason
    key, _, folder = seen.read_text().strip().partition(" ")
    assert key == "k-17"
    assert not Path(folder).exists()
    assert untouched(project)
    assert ran(events)[0].outside
    record = find_run(settings.paths.home, result.run_id).path
    assert not any(b"k-17" in path.read_bytes() for path in record.rglob("*") if path.is_file())


async def test_a_turn_on_record_is_not_had_again(project: Path, settings: Settings) -> None:
    """Killed after the proposer has ended: whoever goes on takes what the record says."""
    counts = project.parent / "turns"
    result, events = await healed_by(f"echo turn >> {counts}\n{REPAIRS}", project, settings, outside=True)
    folder = find_run(settings.paths.home, result.run_id)
    at = next(n for n, event in enumerate(events) if isinstance(event.payload, ProposerRan))
    lines = folder.ledger_path.read_text().splitlines(keepends=True)
    assert any(isinstance(event.payload, BudgetSettled) for event in events[at:])
    folder.ledger_path.write_text("".join(lines[: at + 1]))
    for place in settings.paths.home.glob("*checkpoint*"):
        place.unlink()
    again = await resume(result.run_id, settings=settings)
    assert (again.outcome, again.diff) == ("healed", result.diff)
    assert counts.read_text() == "turn\n"


async def test_a_program_that_is_no_line_is_refused(project: Path, settings: Settings) -> None:
    wrong = settings.model_copy(update={"proposer": ProposerSettings(command="'")})
    with pytest.raises(UsageError, match="cannot be read: No closing quotation"):
        await heal(project, HealOptions(test="python -m unittest", settings=wrong))
