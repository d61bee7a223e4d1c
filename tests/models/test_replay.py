"""Replays of another run's replies in place of a model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from suture.errors import ModelTimeout, StorageError, UsageError
from suture.models import (
    Message,
    RecordedModel,
    Reply,
    Sampling,
    call_hash,
    load_recording,
    replay_only_model,
)
from suture.models.reply_recordings import ReplyNotRecorded
from suture.testing import ScriptedModel

PROMPT = (Message(role="user", content="hi"),)


async def record(run: Path, *replies: str | Exception | Reply, prompt: tuple[Message, ...] = PROMPT) -> None:
    """Record replies and errors as those of a run."""
    model = RecordedModel(ScriptedModel(replies), run / "replies")
    for index, reply in enumerate(replies):
        if isinstance(reply, Exception):
            with pytest.raises(type(reply)):
                await model.complete(prompt, Sampling(index=index))
        else:
            await model.complete(prompt, Sampling(index=index))


async def test_a_replay_calls_no_model(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one", Reply(text="two", finish="length", prompt_tokens=7))
    no_model = replay_only_model("scripted:replies")
    model = RecordedModel(no_model, tmp_path / "new", source=load_recording(tmp_path / "old"))
    first, second = [await model.complete(PROMPT, Sampling(index=index)) for index in (0, 1)]

    assert (first.text, first.replayed, first.from_run) == ("one", True, "old")
    assert (second.text, second.finish, second.prompt_tokens) == ("two", "length", 7)
    assert first.call_hash == call_hash("scripted:replies", PROMPT, Sampling())

    await model.close()


async def test_replayed_replies_are_recorded_again(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one")
    model = RecordedModel(
        replay_only_model("scripted:replies"),
        tmp_path / "new/replies",
        source=load_recording(tmp_path / "old"),
    )
    await model.complete(PROMPT, Sampling())
    repeated = await model.complete(PROMPT, Sampling())

    assert (repeated.replayed, repeated.from_run) == (True, "")

    second_model = RecordedModel(
        replay_only_model("scripted:replies"), tmp_path / "third", source=load_recording(tmp_path / "new")
    )
    assert (await second_model.complete(PROMPT, Sampling())).from_run == "new"


async def test_a_call_that_was_never_recorded_is_an_error(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one")
    script = ScriptedModel(["live"])
    model = RecordedModel(script, tmp_path / "new", source=load_recording(tmp_path / "old"))

    with pytest.raises(ReplyNotRecorded, match="sample 5") as caught:
        await model.complete(PROMPT, Sampling(index=5))
    assert "--or-live" in caught.value.remedy
    assert script.calls == []

    other = RecordedModel(
        ScriptedModel(["live"], name="scripted:other"), tmp_path, source=load_recording(tmp_path / "old")
    )
    with pytest.raises(ReplyNotRecorded, match="its replies are of scripted:replies"):
        await other.complete(PROMPT, Sampling())


async def test_or_live_calls_the_model_and_records_the_reply(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one")
    script = ScriptedModel(["live"])
    model = RecordedModel(script, tmp_path / "new", source=load_recording(tmp_path / "old"), or_live=True)
    assert (await model.complete(PROMPT, Sampling())).text == "one"

    live_reply = await model.complete(PROMPT, Sampling(index=5))
    assert (live_reply.text, live_reply.replayed, len(script.calls)) == ("live", False, 1)
    assert load_recording(tmp_path / "new").find(live_reply.call_hash) is not None


async def test_a_model_that_failed_fails_again(tmp_path: Path) -> None:
    await record(tmp_path / "old", ModelTimeout("too late", remedy="raise model.timeout_s"))
    model = RecordedModel(
        replay_only_model("scripted:replies"), tmp_path / "new", source=load_recording(tmp_path / "old")
    )

    with pytest.raises(ModelTimeout, match="too late") as caught:
        await model.complete(PROMPT, Sampling())
    assert caught.value.remedy == "raise model.timeout_s"


async def test_a_later_reply_replaces_a_recorded_failure(tmp_path: Path) -> None:
    script = ScriptedModel([ModelTimeout("late"), "one"])
    model = RecordedModel(script, tmp_path / "old")
    with pytest.raises(ModelTimeout):
        await model.complete(PROMPT, Sampling())

    await model.complete(PROMPT, Sampling())
    recorded = load_recording(tmp_path / "old").find(call_hash(script.name, PROMPT, Sampling()))
    assert recorded is not None
    assert recorded.text == "one"


async def test_a_prompt_with_another_duration_is_the_same_call(tmp_path: Path) -> None:
    def prompt(output: str) -> tuple[Message, ...]:
        return (Message(role="user", content=f"it failed:\n{output}"),)

    await record(tmp_path / "old", "one", prompt=prompt("1 failed in 0.12s"))
    model = RecordedModel(
        replay_only_model("scripted:replies"), tmp_path / "new", source=load_recording(tmp_path / "old")
    )

    assert (await model.complete(prompt("1 failed in 3.40s"), Sampling())).text == "one"
    with pytest.raises(ReplyNotRecorded):
        await model.complete(prompt("2 failed in 0.12s"), Sampling())


async def test_replies_are_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one", "two")
    entries = [json.loads(path.read_bytes()) for path in (tmp_path / "old/replies").glob("*.json")]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(map(json.dumps, entries)) + "\n\n")
    source = load_recording(file)

    assert (source.name, len(source.entries)) == ("replies.jsonl", 2)
    assert source.entries.keys() == load_recording(tmp_path / "old/replies").entries.keys()


async def test_replies_of_other_versions_are_read(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one")
    (path,) = (tmp_path / "old/replies").glob("*.json")
    entry = json.loads(path.read_bytes())
    del entry["reply"]["from_run"]
    entry["reply"]["mood"] = "cheerful"
    path.write_text(json.dumps(entry))
    source = load_recording(tmp_path / "old")
    (key,) = source.entries
    recorded = source.find(key)

    assert recorded is not None
    assert recorded.text == "one"


def test_other_files_of_a_run_are_not_read_as_replies(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("")
    (tmp_path / "certificate.json").write_text("{}")
    assert load_recording(tmp_path, may_be_empty=True).entries == {}
    with pytest.raises(UsageError, match="holds no replies"):
        load_recording(tmp_path)


def test_a_source_without_valid_replies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        load_recording(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="holds no replies"):
        load_recording(tmp_path)

    (tmp_path / "a.jsonl").write_text('{"model": "m"}\n')
    with pytest.raises(StorageError, match="line 1"):
        load_recording(tmp_path / "a.jsonl")


async def test_all_branches_reserve_before_a_replay_answers(tmp_path: Path) -> None:
    await record(tmp_path / "old", "one", "two")
    model = RecordedModel(
        replay_only_model("scripted:replies"), tmp_path / "new", source=load_recording(tmp_path / "old")
    )
    order: list[str] = []

    async def branch(index: int) -> None:
        order.append("asked")
        await model.complete(PROMPT, Sampling(index=index))
        order.append("answered")

    await asyncio.gather(branch(0), branch(1))

    assert order == ["asked", "asked", "answered", "answered"]
