"""The safety scan in whole runs: blocked code never runs and is reported; doubtful code waits for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenario.test_proposer import FILES, REPAIRS
from scenario.test_proposer import healed_by as proposed
from suture.api import HealOptions, Review, ReviewAnswer, WriteOptions, heal, pending_review, resume, solve
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.ledger.kinds import AgentStepped, CandidateRefused
from suture.core.records import Result
from suture.core.settings import CertificationSettings, LoopSettings, SafetySettings, Settings
from suture.errors import UsageError
from suture.storage.database.projections import project_run
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
HIDDEN = (
    "```python\nimport base64\n\n\ndef double(n):\n    return eval(base64.b64decode('bisyKm4tbg=='))\n```"
)
EVAL = "```python\ndef double(n):\n    return eval('n + n')\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"


def with_safety(settings: Settings, **rules: Any) -> Settings:
    return settings.model_copy(
        update={
            "safety": SafetySettings(**rules),
            "loop": LoopSettings(samples=1),
            "certification": CertificationSettings(seconds=0, mutants=0),
        }
    )


def events_of(settings: Settings, result: Result) -> tuple[Event, ...]:
    return read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events


def refused_in(events: tuple[Event, ...]) -> list[str]:
    payloads = [event.payload for event in events]
    return [reason for one in payloads if isinstance(one, CandidateRefused) for reason in one.reasons]


async def test_what_is_blocked_never_runs_and_goes_back_as_a_fact(settings: Settings) -> None:
    script = ScriptedModel([HIDDEN, RIGHT])
    repairing = {"loop": LoopSettings(recipe="always_repair")}
    chosen = with_safety(settings).model_copy(update=repairing)
    result = await solve(TASK, WriteOptions(settings=chosen, model=script))
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert "eval" not in result.candidate.files["solution.py"]
    (reason,) = refused_in(events_of(settings, result))
    assert "solution.py:5: python.hidden-code" in reason
    shown = "\n".join(message.content for call in script.calls for message in call.messages)
    assert "rule python.hidden-code" in shown


async def test_code_that_stays_blocked_is_not_delivered_as_the_best_either(settings: Settings) -> None:
    script = ScriptedModel([HIDDEN], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=with_safety(settings), model=script))
    assert result.outcome != "healed"
    assert result.candidate is None
    assert result.diff == ""


async def test_what_is_only_warned_of_runs_and_is_reported_with_the_result(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=with_safety(settings), model=ScriptedModel([EVAL])))
    assert result.outcome == "healed"
    (warning,) = result.warnings
    assert warning.startswith("safety: solution.py:2: python.eval")


async def test_what_is_asked_about_runs_once_a_person_allows_it(settings: Settings) -> None:
    seen: list[Review] = []

    def allow(review: Review) -> ReviewAnswer:
        seen.append(review)
        return ReviewAnswer(choice="approve")

    chosen = with_safety(settings, ask=("python.eval",))
    result = await solve(TASK, WriteOptions(settings=chosen, model=ScriptedModel([EVAL]), on_review=allow))
    assert result.outcome == "healed", result.reason
    (review,) = seen
    assert (review.stage, review.facts[0].call) == ("safety", "return eval('n + n')")
    assert result.warnings[0].startswith("safety: ")
    (row,) = project_run(find_run(chosen.paths.home, result.run_id)).approvals
    assert (row["stage"], row["choice"]) == ("safety", "approve")


async def test_what_a_person_rejects_does_not_run_and_is_not_asked_again(settings: Settings) -> None:
    seen: list[Review] = []

    def reject(review: Review) -> ReviewAnswer:
        seen.append(review)
        return ReviewAnswer(choice="redirect", hint="add it")

    chosen = with_safety(settings, ask=("python.eval",))
    script = ScriptedModel([EVAL, EVAL + "\n", RIGHT], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=chosen, model=script, on_review=reject))
    assert result.outcome == "healed", result.reason
    assert len(seen) == 1
    assert refused_in(events_of(settings, result))
    assert "add it" in "\n".join(message.content for message in script.calls[-1].messages)


async def test_a_run_waits_where_nobody_answers_and_can_be_stopped(settings: Settings) -> None:
    chosen = with_safety(settings, ask=("python.*",))
    result = await solve(TASK, WriteOptions(settings=chosen, model=ScriptedModel([EVAL])))
    assert result.outcome == "waiting"
    asked = pending_review(result.run_id, settings=chosen)
    assert asked is not None
    edited = ReviewAnswer(choice="edit", files={"a.py": ""})
    with pytest.raises(UsageError, match="does not answer"):
        await resume(result.run_id, settings=chosen, model=ScriptedModel([]), answer=edited)
    stop = ReviewAnswer(choice="abort")
    ended = await resume(result.run_id, settings=chosen, model=ScriptedModel([]), answer=stop)
    assert ended.outcome == "cancelled"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def test_a_proposers_change_is_scanned_too(project: Path, settings: Settings) -> None:
    adds = "printf 'import os\\nos.system(\"touch /tmp/was-here\")\\n' >> shapes.py\n"
    result, events = await proposed(REPAIRS + adds, project, with_safety(settings, block=("python.shell",)))
    assert result.outcome == "not_healed"
    assert result.diff == ""
    assert "shapes.py:4: python.shell" in refused_in(events)[0]
    allowed, _ = await proposed(REPAIRS + adds, project, with_safety(settings))
    assert allowed.outcome == "healed"
    assert "python.shell" in allowed.warnings[0]


async def test_what_an_agent_writes_of_it_is_put_back(project: Path, settings: Settings) -> None:
    recipe = project.parent / "alone.toml"
    recipe.write_text('summary = "an agent"\nagent = "alone"\nagent_turns = 1\nagent_steps = 6\n')
    chosen = with_safety(settings, block=("python.eval",)).model_copy(
        update={"loop": LoopSettings(recipe=str(recipe))}
    )
    change = "<<<<<<< SEARCH\n    return w + h\n=======\n    return eval('w * h')\n>>>>>>> REPLACE"
    edit = f"TOOL: edit\nshapes.py\n{change}"
    line = "TOOL: shell\n```sh\nsed -i \"s/w + h/eval('w * h')/\" shapes.py\n```"
    repair = f"TOOL: shell\n```sh\n{REPAIRS}```"
    create = "TOOL: create_file\nINPUT: more.py\n```python\nx = eval('1')\n```"
    script = ScriptedModel([edit, line, create, repair, "TOOL: run_tests", "TOOL: submit"])
    result = await heal(project, HealOptions(test="python -m unittest", settings=chosen, model=script))
    assert result.outcome == "healed", result.reason
    folder = find_run(chosen.paths.home, result.run_id)
    events = read_ledger(folder.ledger_path).events
    shown = [
        str(folder.load_json(event.payload.observation))
        for event in events
        if isinstance(event.payload, AgentStepped)
    ]
    assert all("python.eval" in text for text in shown[:3])
    assert "python.eval" not in shown[3]
