"""Replay of runs from their own records, in the real graph, sandbox and database."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from bare_pytest import BARE_PYTEST
from run_events import read_events
from scenario.projects import EXAMPLES, FIXES
from suture.api import HealOptions, WriteOptions, heal, replay, resume, solve
from suture.core.ledger import find_run
from suture.core.settings import BudgetSettings, CertificationSettings, PathSettings, RepairSettings, Settings
from suture.core.settings.schema import KeySettings
from suture.errors import ModelTimeout, UsageError
from suture.models import Message, Reply, Sampling
from suture.models.reply_recordings import ReplyNotRecorded
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
PROSE = "I would rather not."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        repair=RepairSettings(enabled=False),  # these tests are about the models
        budget=BudgetSettings(attempts=8, seconds=100),
        keys=KeySettings(openai=SecretStr("sk-hush")),
    )


class UncalledModel(ScriptedModel):
    """A model that must not be called, with the same name as the recorded model."""

    def __init__(self) -> None:
        super().__init__([], name="scripted:replies")

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        raise AssertionError("the model was asked in a replay")


@pytest.mark.heavy
async def test_a_replayed_write_run_calls_no_model_and_ends_alike(settings: Settings) -> None:
    model = ScriptedModel([WRONG, PROSE, WRONG_TOO, RIGHT], repeat_last=True)

    first = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert first.outcome == "healed", first.reason

    replayed = await replay(first.run_id, settings=settings, model=UncalledModel())
    assert replayed.same, str(replayed.difference)
    assert (replayed.recorded, replayed.result.outcome) == (first.run_id, "healed")
    assert replayed.result.diff == first.diff
    assert (replayed.result.spend.model_calls, first.spend.model_calls) == (0, len(model.calls))
    assert replayed.result.spend.attempts == first.spend.attempts
    assert (await replay("last", settings=settings)).same  # a replay is recorded like any other run


async def test_a_replay_repeats_a_model_failure(settings: Settings) -> None:
    model = ScriptedModel([WRONG, PROSE, ModelTimeout("too late"), RIGHT], repeat_last=True)

    first = await solve(TASK, WriteOptions(settings=settings, model=model))

    events = read_events(settings.paths.home, first.run_id)
    assert "ModelTimeout" in [event.data.get("error_type") for event in events]

    replayed = await replay(first.run_id, settings=settings, model=UncalledModel())
    assert replayed.same, str(replayed.difference)
    assert replayed.result.spend.model_calls == 0


@pytest.mark.heavy
async def test_a_replayed_heal_run_needs_no_project(settings: Settings, tmp_path: Path) -> None:
    name, fix = next(iter(sorted(FIXES.items())))
    project = shutil.copytree(EXAMPLES / name, tmp_path / "project")
    text = (project / fix["file"]).read_text()
    right = text.replace(fix["wrong"], fix["right"])
    replies = [
        f"### {fix['file']}\n```python\n{code}\n```" for code in (f"{text}\nx = 1\n", right, right, right)
    ]

    first = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=settings, model=ScriptedModel(replies))
    )

    assert first.outcome == "healed", first.reason
    shutil.rmtree(project)
    replayed = await replay(first.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)
    assert replayed.result.diff == first.diff


async def test_a_run_without_model_calls_is_replayable(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/code.py").write_text("X = 1\n")
    (tmp_path / "p/test_code.py").write_text("from code import X\n\n\ndef test_x():\n    assert X\n")

    first = await heal(
        tmp_path / "p", HealOptions(test="python -c pass", settings=settings, model=UncalledModel())
    )

    assert first.outcome == "nothing_to_heal"
    assert (await replay(first.run_id, settings=settings)).same


@pytest.mark.heavy
@pytest.mark.timeout(300)  # two searches, which are slow on a busy machine
async def test_a_run_healed_by_search_alone_is_replayable(settings: Settings, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "code.py").write_text("def larger(a, b):\n    return a if a < b else b\n")
    (project / "test_code.py").write_text(
        "from code import larger\n\n\ndef test_larger():\n    assert (larger(3, 2), larger(2, 4)) == (3, 4)\n"
    )
    searching = settings.model_copy(
        update={"repair": RepairSettings(candidates=60), "certification": CertificationSettings(seconds=0)}
    )

    first = await heal(project, HealOptions(test=BARE_PYTEST, settings=searching, model=UncalledModel()))

    assert (first.outcome, first.spend.model_calls) == ("healed", 0), first.reason
    assert not find_run(settings.paths.home, first.run_id).replies_path.exists()

    replayed = await replay(first.run_id, settings=searching)
    assert replayed.same, str(replayed.difference)
    assert replayed.result.diff == first.diff

    with pytest.raises(UsageError, match="holds no replies"):
        await solve(TASK, WriteOptions(settings=settings, model=UncalledModel(), replies=first.run_id))


async def test_a_changed_reply_is_reported_as_a_difference(settings: Settings, tmp_path: Path) -> None:
    first = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([WRONG, RIGHT], repeat_last=True))
    )
    run = find_run(settings.paths.home, first.run_id)
    path = next(p for p in run.replies_path.iterdir() if "n * n" in p.read_text())
    entry = json.loads(path.read_bytes())
    entry["reply"]["text"] = RIGHT
    path.write_text(json.dumps(entry))

    replayed = await replay(first.run_id, settings=settings)

    assert not replayed.same
    assert replayed.difference is not None
    assert replayed.difference.kind in ("candidate.proposed", "candidate.checked")


async def test_a_missing_reply_is_an_error_unless_a_live_model_may_answer(settings: Settings) -> None:
    first = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([WRONG, RIGHT], repeat_last=True))
    )
    run = find_run(settings.paths.home, first.run_id)
    for path in run.replies_path.iterdir():
        if json.loads(path.read_bytes())["sampling"]["index"] == 0:
            path.unlink()

    with pytest.raises(ReplyNotRecorded):
        await replay(first.run_id, settings=settings)
    live = ScriptedModel([WRONG])
    replayed = await replay(first.run_id, settings=settings, model=live, or_live=True)
    assert replayed.same, str(replayed.difference)
    assert (len(live.calls), replayed.result.spend.model_calls) == (1, 1)


@pytest.mark.heavy
async def test_another_run_can_use_recorded_replies(settings: Settings, tmp_path: Path) -> None:
    first = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([WRONG, RIGHT], repeat_last=True))
    )

    result = await solve(TASK, WriteOptions(settings=settings, model=UncalledModel(), replies="last"))

    assert (result.outcome, result.spend.model_calls) == ("healed", 0)
    replies = find_run(settings.paths.home, first.run_id).replies_path
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(json.dumps(json.loads(p.read_bytes())) for p in replies.iterdir()))
    result = await solve(TASK, WriteOptions(settings=settings, model=UncalledModel(), replies=file))
    assert (result.outcome, result.spend.model_calls) == ("healed", 0)

    with pytest.raises(ReplyNotRecorded):
        await solve(TASK + "Be quick.", WriteOptions(settings=settings, model=UncalledModel(), replies=file))


async def test_a_replay_near_the_token_limit_ends_alike(settings: Settings) -> None:
    first_reply = Reply(text=WRONG, prompt_tokens=300, completion_tokens=200)
    model = ScriptedModel(
        [first_reply, Reply(text=WRONG_TOO, prompt_tokens=300, completion_tokens=200)], repeat_last=True
    )
    limited = settings.model_copy(update={"budget": BudgetSettings(attempts=8, tokens=6000, seconds=100)})
    first = await solve(TASK, WriteOptions(settings=limited, model=model))

    replayed = await replay(first.run_id, settings=settings)

    assert replayed.same, str(replayed.difference)
    assert replayed.result.spend.tokens == first.spend.tokens


async def test_the_run_folder_contains_no_key(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))
    run = find_run(settings.paths.home, result.run_id)
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert not [path for path in files if b"sk-hush" in path.read_bytes()]


async def test_an_ended_run_is_not_resumed(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))
    with pytest.raises(UsageError, match="has ended"):
        await resume(result.run_id, settings=settings)
