"""A user's own program works in place of a model, in a project with two wrong files, and its change is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from project_files import write_files
from run_events import read_events
from suture.api import HealOptions, heal, replay, resume
from suture.core.ledger import Event, find_run
from suture.core.ledger.kinds import BudgetSettled, ChangeJudged, ProposerRan
from suture.core.records import Result, render_reason
from suture.core.settings import LoopSettings, Settings
from suture.core.settings.schema import JudgeSettings, ProposerSettings
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
CHEAT = "sed -i 's/12/7/; s/24/1/' tests/test_solids.py\n"
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
    options: HealOptions | None = None,
) -> tuple[Result, tuple[Event, ...]]:
    program = project.parent / "mend.sh"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    proposer = ProposerSettings(command=f"{program} word", seconds=seconds, turns=turns, outside=outside)
    proposer_settings = settings.model_copy(
        update={"proposer": proposer, "judge": JudgeSettings(mistakes=0, mistakes_seconds=0)}
    )
    options = options or HealOptions()
    test = options.test or "python -m unittest"
    result = await heal(project, replace(options, test=test, settings=proposer_settings))
    return result, read_events(settings.paths.home, result.run_id)


def list_proposer_turns(events: tuple[Event, ...]) -> list[ProposerRan]:
    return [event.payload for event in events if isinstance(event.payload, ProposerRan)]


def list_judged_turns(events: tuple[Event, ...]) -> list[ChangeJudged]:
    return [event.payload for event in events if isinstance(event.payload, ChangeJudged)]


def load_output(settings: Settings, result: Result, ran: ProposerRan) -> str:
    return str(find_run(settings.paths.home, result.run_id).load_json(ran.output))


def is_unchanged(project: Path) -> bool:
    paths = {path.relative_to(project).as_posix(): path for path in project.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in paths.items()} == FILES


async def test_a_proposer_is_told_why_its_change_is_rejected_and_the_next_one_is_delivered(
    project: Path, settings: Settings
) -> None:
    inspection = (
        'cat "$SUTURE_FACTS"; cat; echo "said: $1 $SUTURE_FAILING, $SUTURE_TEST_COMMAND"; ls -a\n'
        'echo mine > .notes; if [ "$SUTURE_TURN" = 1 ]; then '
    )
    undo = "sed -i 's/7/12/; s/, 1)/, 24)/' tests/test_solids.py\n"

    result, events = await run_proposer(
        f"{inspection}{CHEAT}else\n{undo}{REPAIRS}fi\n", project, settings, turns=2
    )

    assert result.outcome == "healed", result.reason
    assert "+    return w * h" in result.diff
    assert "+    return area(w, h) * d" in result.diff
    assert "tests/test_solids.py" not in result.diff
    assert is_unchanged(project)
    cheat, repair = list_proposer_turns(events)
    assert (cheat.changed, cheat.excluded_files) == (("tests/test_solids.py",), (".notes",))
    assert [judged.outcome for judged in list_judged_turns(events)] == ["rejected", "accepted"]
    first, second = (load_output(settings, result, turn) for turn in (cheat, repair))
    assert "# Repair this project" in first
    assert "said: word python -m unittest, python -m unittest" in first
    assert "not accepted" not in first
    assert "Your change so far is not accepted:" in second
    assert "passes with the old code, too, because this file changed" in second
    assert '"reasons": [' in second
    assert result.judgement is not None
    assert result.judgement.tests.fixed == ("python -m unittest",)
    assert (result.spend.attempts, result.spend.model_calls) == (2, 0)

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference
    assert replayed.result.diff == result.diff


async def test_a_proposer_that_cheats_until_the_end_is_rejected_with_the_judgement(
    project: Path, settings: Settings
) -> None:
    result, events = await run_proposer(f"{CHEAT}date >> notes.txt\n", project, settings, turns=2)

    assert (result.outcome, result.diff, result.candidate) == ("not_healed", "", None)
    assert "rejected after 2 turns" in render_reason(result.reason)
    assert "passes with the old code, too, because this file changed" in result.reason.detail
    assert result.judgement is not None
    assert result.judgement.outcome == "rejected"
    assert [judged.codes for judged in list_judged_turns(events)] == [("expectation_follows_code",)] * 2
    assert is_unchanged(project)


async def test_a_change_that_mends_a_part_is_handed_back_with_the_tests_that_still_fail(
    project: Path, settings: Settings
) -> None:
    half = "sed -i 's/w + h/w * h/' shapes.py; cat\n"

    result, events = await run_proposer(f"{half}date >> notes.txt\n", project, settings, turns=2)

    assert result.outcome == "not_healed"
    assert "the test command still fails" in load_output(settings, result, list_proposer_turns(events)[1])


@pytest.mark.heavy
async def test_how_the_tests_end_without_the_change_is_kept_for_the_next_turn(
    project: Path, settings: Settings, tmp_path: Path
) -> None:
    paths = settings.paths.model_copy(update={"cache": tmp_path / "cache"})
    options = HealOptions(test="python -m pytest -q")
    half = "sed -i 's/w + h/w * h/' shapes.py\ndate +%N >> notes.txt\n"

    _, events = await run_proposer(
        half, project, settings.model_copy(update={"paths": paths}), turns=2, options=options
    )

    assert [judged.turn for judged in list_judged_turns(events)] == [1, 2]
    bases = {path.name.partition("-")[0] for path in (tmp_path / "cache/judge").iterdir()}
    assert len(bases) == 1


async def test_files_that_the_user_protects_are_as_they_were_and_the_rest_is_judged(
    project: Path, settings: Settings
) -> None:
    write_files(project, {"unused.py": "WIDTH = 3\n"})
    options = HealOptions(protect=("tests/test_solids.py",), apply=True)

    result, events = await run_proposer(
        f"{CHEAT}{REPAIRS}rm unused.py; echo 'SIDES = 4' > polygons.py\n",
        project,
        settings,
        options=options,
    )

    assert result.outcome == "healed", result.reason
    (turn,) = list_proposer_turns(events)
    assert turn.restored == ("tests/test_solids.py",)
    assert turn.deleted == ("unused.py",)
    assert (project / "tests/test_solids.py").read_text() == FILES["tests/test_solids.py"]
    assert (project / "shapes.py").read_text() == FILES["shapes.py"].replace("+", "*")
    assert (project / "polygons.py").read_text() == "SIDES = 4\n"
    assert not (project / "unused.py").exists()


async def test_a_proposer_may_write_what_an_issue_asks_for_where_every_test_passes(
    project: Path, settings: Settings
) -> None:
    write_files(project, {"shapes.py": "def area(w, h):\n    return w * h\n"})
    write_files(project, {"solids.py": FILES["solids.py"].replace("- d", "* d")})
    cube = "printf '\\n\\ndef cube(a):\\n    return volume(a, a, a)\\n' >> solids.py\n"

    idle, _ = await run_proposer(cube, project, settings)
    result, events = await run_proposer(
        f"cat\n{cube}", project, settings, options=HealOptions(bug_report="Add cube(a) to solids.py.")
    )

    assert idle.outcome == "nothing_to_heal"
    assert result.outcome == "healed", result.reason
    assert "+def cube(a):" in result.diff
    assert "Add cube(a) to solids.py." in load_output(settings, result, list_proposer_turns(events)[0])


REFUSED: Mapping[str, str] = {
    "tries the network": "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 3)'\n",
    "never stops": "(while :; do sleep 1; done) &\nsetsid sleep 1000 &\nwhile :; do sleep 1; done\n",
}
REFUSAL_TEXTS: Mapping[str, str] = {
    "tries the network": "changed nothing; it ended with exit code 1: OSError: [Errno 101] Network is unreachable",
    "never stops": "the proposer changed nothing; it was stopped after 1 s",
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_proposer_without_a_change_is_reported_and_not_run_again(
    case: str, project: Path, settings: Settings
) -> None:
    seconds = 1 if case == "never stops" else 60

    result, events = await run_proposer(REFUSED[case], project, settings, seconds=seconds, turns=3)

    assert result.outcome == "not_healed"
    assert REFUSAL_TEXTS[case] in result.reason.detail
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


async def test_a_change_that_removes_the_tests_is_not_delivered(project: Path, settings: Settings) -> None:
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


async def test_a_proposer_and_reviews_of_each_step_exclude_each_other(
    project: Path, settings: Settings
) -> None:
    reviewing = settings.model_copy(update={"loop": LoopSettings(autonomy="review_all")})
    with pytest.raises(UsageError, match=r"not reviewed as loop\.autonomy=review_all"):
        await run_proposer(REPAIRS, project, reviewing)


async def test_an_unreadable_proposer_command_is_refused(project: Path, settings: Settings) -> None:
    unreadable = settings.model_copy(update={"proposer": ProposerSettings(command="'")})
    with pytest.raises(UsageError, match="cannot be read: No closing quotation"):
        await heal(project, HealOptions(test="python -m unittest", settings=unreadable))
