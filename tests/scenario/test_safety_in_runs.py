"""The safety scan in whole runs: blocked code never runs, and doubtful code waits for approval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from project_files import write_files
from run_events import read_events
from scenario.test_proposer import FILES, REPAIRS, run_proposer
from suture.api import HealOptions, Review, ReviewAnswer, WriteOptions, heal, pending_review, resume, solve
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.ledger.kinds import AgentStepped, CandidateRefused
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


def set_safety(settings: Settings, **rules: Any) -> Settings:
    return settings.model_copy(
        update={
            "safety": SafetySettings(**rules),
            "loop": LoopSettings(samples=1),
            "certification": CertificationSettings(seconds=0, mutants=0),
        }
    )


def list_refusal_reasons(events: tuple[Event, ...]) -> list[str]:
    payloads = [event.payload for event in events]
    return [
        reason for payload in payloads if isinstance(payload, CandidateRefused) for reason in payload.reasons
    ]


async def test_blocked_code_never_runs_and_is_reported_to_the_model(settings: Settings) -> None:
    model = ScriptedModel([HIDDEN, RIGHT])
    repair_loop = {"loop": LoopSettings(recipe="always_repair")}
    repairing = set_safety(settings).model_copy(update=repair_loop)

    result = await solve(TASK, WriteOptions(settings=repairing, model=model))

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert "eval" not in result.candidate.files["solution.py"]
    (reason,) = list_refusal_reasons(read_events(settings.paths.home, result.run_id))
    assert "solution.py:5: python.hidden-code" in reason
    prompts = "\n".join(message.content for call in model.calls for message in call.messages)
    assert "rule python.hidden-code" in prompts


async def test_blocked_code_is_not_delivered_as_the_best_candidate(settings: Settings) -> None:
    model = ScriptedModel([HIDDEN], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=set_safety(settings), model=model))
    assert result.outcome != "healed"
    assert result.candidate is None
    assert result.diff == ""


async def test_code_with_a_warning_runs_and_the_result_reports_it(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=set_safety(settings), model=ScriptedModel([EVAL])))
    assert result.outcome == "healed"
    (warning,) = result.warnings
    assert warning.startswith("safety: solution.py:2: python.eval")


async def test_doubtful_code_runs_once_it_is_approved(settings: Settings) -> None:
    reviews: list[Review] = []

    def allow(review: Review) -> ReviewAnswer:
        reviews.append(review)
        return ReviewAnswer(choice="approve")

    asking = set_safety(settings, ask=("python.eval",))

    result = await solve(TASK, WriteOptions(settings=asking, model=ScriptedModel([EVAL]), on_review=allow))

    assert result.outcome == "healed", result.reason
    (review,) = reviews
    assert (review.stage, review.facts[0].call) == ("safety", "return eval('n + n')")
    assert result.warnings[0].startswith("safety: ")
    (row,) = project_run(find_run(asking.paths.home, result.run_id)).approvals
    assert (row["stage"], row["choice"]) == ("safety", "approve")


async def test_rejected_code_does_not_run_and_is_not_asked_about_again(settings: Settings) -> None:
    reviews: list[Review] = []

    def reject(review: Review) -> ReviewAnswer:
        reviews.append(review)
        return ReviewAnswer(choice="redirect", hint="add it")

    asking = set_safety(settings, ask=("python.eval",))
    model = ScriptedModel([EVAL, EVAL + "\n", RIGHT], repeat_last=True)

    result = await solve(TASK, WriteOptions(settings=asking, model=model, on_review=reject))

    assert result.outcome == "healed", result.reason
    assert len(reviews) == 1
    assert list_refusal_reasons(read_events(settings.paths.home, result.run_id))
    assert "add it" in "\n".join(message.content for message in model.calls[-1].messages)


async def test_an_unanswered_safety_review_parks_the_run(settings: Settings) -> None:
    asking = set_safety(settings, ask=("python.*",))

    result = await solve(TASK, WriteOptions(settings=asking, model=ScriptedModel([EVAL])))

    assert result.outcome == "waiting"
    review = pending_review(result.run_id, settings=asking)
    assert review is not None
    edit = ReviewAnswer(choice="edit", files={"a.py": ""})
    with pytest.raises(UsageError, match="does not answer"):
        await resume(result.run_id, settings=asking, model=ScriptedModel([]), answer=edit)
    stop = ReviewAnswer(choice="abort")
    ended = await resume(result.run_id, settings=asking, model=ScriptedModel([]), answer=stop)
    assert ended.outcome == "cancelled"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project", FILES)


async def test_a_proposers_change_is_scanned(project: Path, settings: Settings) -> None:
    unsafe_line = "printf 'import os\\nos.system(\"touch /tmp/was-here\")\\n' >> shapes.py\n"

    result, _ = await run_proposer(
        REPAIRS + unsafe_line, project, set_safety(settings, block=("python.shell",))
    )

    assert result.outcome == "not_healed"
    assert result.diff == ""
    assert result.judgement is not None
    assert [(each.code, each.path, each.line) for each in result.judgement.findings[:1]] == [
        ("unsafe_code", "shapes.py", 4)
    ]

    allowed, _ = await run_proposer(REPAIRS + unsafe_line, project, set_safety(settings))
    assert allowed.outcome == "healed"
    assert allowed.warnings[0].startswith("shapes.py:4: ")


async def test_an_agents_blocked_edits_are_reverted(project: Path, settings: Settings) -> None:
    recipe = project.parent / "alone.toml"
    recipe.write_text('summary = "an agent"\nagent = "alone"\nagent_turns = 1\nagent_steps = 6\n')
    blocking = set_safety(settings, block=("python.eval",)).model_copy(
        update={"loop": LoopSettings(recipe=str(recipe))}
    )
    unsafe = [
        format_call("edit", path="shapes.py", old_str="w + h", new_str="eval('w * h')"),
        format_call("shell", command="sed -i \"s/w + h/eval('w * h')/\" shapes.py"),
        format_call("edit", path="more.py", new_str="x = eval('1')"),
    ]
    model = ScriptedModel(["\n".join(unsafe), format_call("shell", command=REPAIRS)])

    result = await heal(project, HealOptions(test="python -m unittest", settings=blocking, model=model))

    assert result.outcome == "healed", result.reason
    folder = find_run(blocking.paths.home, result.run_id)
    events = read_ledger(folder.ledger_path).events
    first, second = [
        folder.load_json(event.payload.answer)[0]["content"]
        for event in events
        if isinstance(event.payload, AgentStepped)
    ]
    assert first.count("python.eval") == 3
    assert "python.eval" not in second


def format_call(tool: str, **arguments: str) -> str:
    """Return a call of a tool in the text of a reply."""
    return f"TOOL: {tool} {json.dumps(arguments)}"


async def test_a_patch_that_a_person_has_to_allow_waits_and_is_then_judged(
    project: Path, settings: Settings
) -> None:
    recipe = project.parent / "alone.toml"
    recipe.write_text('agent = "alone"\n')
    asking = set_safety(settings, ask=("python.eval",)).model_copy(
        update={"loop": LoopSettings(recipe=str(recipe))}
    )
    evaluates = """sed -i "s/w + h/eval('w * h')/" shapes.py; sed -i 's/ - d/ * d/' solids.py"""
    model = ScriptedModel([format_call("shell", command=evaluates)])

    waiting = await heal(project, HealOptions(test="python -m unittest", settings=asking, model=model))

    assert waiting.outcome == "waiting", waiting.reason
    allowed = await resume(
        waiting.run_id, settings=asking, model=ScriptedModel([]), answer=ReviewAnswer(choice="approve")
    )
    assert allowed.outcome == "healed", allowed.reason
