"""Replies are recorded and reused, identified by the hash of their call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from suture.errors import ModelTimeout, StorageError
from suture.models import (
    Message,
    RecordedModel,
    Reply,
    Sampling,
    ToolCall,
    ToolDeclaration,
    call_hash,
    load_recording,
    replay_only_model,
)
from suture.testing import ScriptedModel

PROMPT = (Message(role="system", content="be brief"), Message(role="user", content="hi"))


async def test_a_recorded_reply_is_never_requested_again(tmp_path: Path) -> None:
    script = ScriptedModel(["one"])
    first = await RecordedModel(script, tmp_path).complete(PROMPT, Sampling())
    repeated = await RecordedModel(script, tmp_path).complete(PROMPT, Sampling())
    assert (first.text, first.replayed, repeated.text, repeated.replayed) == ("one", False, "one", True)
    assert first.call_hash == repeated.call_hash == call_hash(script.name, PROMPT, Sampling())
    assert len(script.calls) == 1


async def test_the_call_hash_identifies_a_call(tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel(["1", "2", "3", "4"]), tmp_path)
    calls = [
        (PROMPT, Sampling()),
        (PROMPT, Sampling(index=1)),
        (PROMPT, Sampling(temperature=0.5)),
        (PROMPT[1:], Sampling()),
    ]
    replies = [await model.complete(messages, sampling) for messages, sampling in calls]

    assert [reply.text for reply in replies] == ["1", "2", "3", "4"]

    other = RecordedModel(ScriptedModel(["5"], name="scripted:other"), tmp_path)
    assert (await other.complete(PROMPT, Sampling())).text == "5"


async def test_equal_calls_at_once_are_one_call(tmp_path: Path) -> None:
    script = ScriptedModel(["one"])
    model = RecordedModel(script, tmp_path)
    replies = await asyncio.gather(*(model.complete(PROMPT, Sampling()) for _ in range(5)))
    assert [reply.text for reply in replies] == ["one"] * 5
    assert sorted(reply.replayed for reply in replies) == [False, True, True, True, True]


async def test_the_prompt_is_stored_with_the_reply(tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel(["\udcff and é"]), tmp_path / "replies")
    reply = await model.complete(PROMPT, Sampling())
    stored = json.loads((tmp_path / "replies" / f"{reply.call_hash}.json").read_text("ascii"))
    assert stored["messages"][1] == {"role": "user", "content": "hi"}
    assert stored["reply"]["text"] == "\udcff and é"


async def test_a_fault_is_not_stored(tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel([ModelTimeout("late"), "one"]), tmp_path)
    with pytest.raises(ModelTimeout):
        await model.complete(PROMPT, Sampling())
    assert (await model.complete(PROMPT, Sampling())).text == "one"


async def test_a_damaged_recorded_reply_is_reported(tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel(["one"]), tmp_path)
    reply = await model.complete(PROMPT, Sampling())
    (tmp_path / f"{reply.call_hash}.json").write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        await model.complete(PROMPT, Sampling())


@pytest.mark.parametrize("field", ["seconds", "prompt_tokens", "text", "finish", "logprobs", "model"])
async def test_a_reply_with_a_value_of_another_type_is_damaged(field: str, tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel(["one"]), tmp_path)
    reply = await model.complete(PROMPT, Sampling())
    stored = tmp_path / f"{reply.call_hash}.json"
    entry = json.loads(stored.read_text())
    entry["reply"][field] = {"a": 1}
    stored.write_text(json.dumps(entry))

    with pytest.raises(StorageError, match="damaged"):
        await model.complete(PROMPT, Sampling())


async def test_a_recorded_reply_keeps_its_tool_calls_and_thinking(tmp_path: Path) -> None:
    calls = (
        ToolCall(id="c1", name="look", arguments={"at": ["a", {"b": 1}]}),
        ToolCall(id="c2", name="look", undecoded='{"at": '),
    )
    reply = Reply(text="", tool_calls=calls, thinking="hm", thinking_tokens=3, completion_tokens=9)
    prompt = (
        *PROMPT,
        Message(role="assistant", content="", tool_calls=calls),
        Message(role="tool", content="a tree", tool_call_id="c1"),
    )
    tool = ToolDeclaration(name="look", description="looks around", inputs={"at": "where"}, optional=("at",))
    await RecordedModel(ScriptedModel([reply]), tmp_path).complete(prompt, Sampling(tools=(tool,)))

    replayed = await RecordedModel(
        replay_only_model("scripted:replies"), tmp_path / "new", source=load_recording(tmp_path)
    ).complete(prompt, Sampling(tools=(tool,)))
    assert replayed.replayed
    assert (replayed.tool_calls, replayed.thinking, replayed.thinking_tokens) == (calls, "hm", 3)


def test_calls_without_tools_keep_the_hash_of_older_recordings() -> None:
    # Computed with the version before messages had tool calls; the recordings of the benchmarks depend on it.
    assert (
        call_hash("scripted:x", PROMPT, Sampling())
        == "761f7cb82a8ea53c113dac6382a300423673e948320b98a938b5e2221cc04e8c"
    )
