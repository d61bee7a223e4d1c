"""Recorded replies are found under any token limit, shared without task text, and paid for once."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suture.bench.problem import Problem
from suture.bench.replies.reply_pool import (
    PooledModel,
    ReplyPool,
    hash_prompt,
    make_draw,
    read_draws,
    read_recording,
    write_recording,
)
from suture.errors import StorageError, UsageError
from suture.models import Message, RecordedModel, Reply, Sampling, ScriptedModel, call_hash, count_tokens

PROBLEM = Problem(
    id="Made/1",
    dataset="made",
    kind="write",
    statement="Write a function secret_of_the_set(x).\n",
    entry_point="secret_of_the_set",
    hidden="assert secret_of_the_set(1) == 2",
    reference="def secret_of_the_set(x):\n    return x + 1\n",
    licence="none",
    source="made up",
)
MESSAGES = (
    Message(role="system", content="You write code."),
    Message(role="user", content=PROBLEM.statement),
)
REPLY = Reply(text="0123456789" * 10, prompt_tokens=12, completion_tokens=50, model="m:a")
SAMPLING = Sampling(temperature=0.8, index=2)


def make_pooled_model(pool: ReplyPool, *replies: Reply, seed: int = 0) -> tuple[PooledModel, ScriptedModel]:
    """Return a model that uses a pool, and the scripted model behind it."""
    model = ScriptedModel(replies, name="m:a")
    return PooledModel(model, "m:a", pool, PROBLEM, seed=seed), model


async def test_a_recorded_reply_is_not_paid_for_again(tmp_path: Path) -> None:
    first_model, live_model = make_pooled_model(ReplyPool(tmp_path), REPLY)
    paid_reply = await first_model.complete(MESSAGES, SAMPLING)
    second_model, unused_model = make_pooled_model(ReplyPool(tmp_path))

    replayed_reply = await second_model.complete(MESSAGES, replace(SAMPLING, max_tokens=50))

    assert (len(live_model.calls), unused_model.calls) == (1, [])
    assert (paid_reply.replayed, paid_reply.from_run) == (False, "")
    assert replayed_reply == replace(paid_reply, replayed=True, from_run="pool")


async def test_concurrent_requests_for_one_reply_pay_once(tmp_path: Path) -> None:
    model, live_model = make_pooled_model(ReplyPool(tmp_path), REPLY)
    replies = await asyncio.gather(*(model.complete(MESSAGES, SAMPLING) for _ in range(5)))
    assert len(live_model.calls) == 1
    assert {reply.text for reply in replies} == {REPLY.text}


async def test_the_first_reply_of_two_processes_counts(tmp_path: Path) -> None:
    faster_model, _ = make_pooled_model(ReplyPool(tmp_path), replace(REPLY, text="of the faster one"))

    class SlowerModel(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
            await faster_model.complete(messages, sampling)
            return await super().complete(messages, sampling)

    slower_model = PooledModel(SlowerModel([REPLY], name="m:a"), "m:a", ReplyPool(tmp_path), PROBLEM)
    assert (await slower_model.complete(MESSAGES, SAMPLING)).text == "of the faster one"

    later_model, _ = make_pooled_model(ReplyPool(tmp_path))
    assert (await later_model.complete(MESSAGES, SAMPLING)).text == "of the faster one"


async def test_a_reply_longer_than_the_limit_is_cut(tmp_path: Path) -> None:
    model, live_model = make_pooled_model(ReplyPool(tmp_path), REPLY)
    await model.complete(MESSAGES, SAMPLING)
    cut_reply = await model.complete(MESSAGES, replace(SAMPLING, max_tokens=20))
    assert (cut_reply.text, cut_reply.finish, cut_reply.completion_tokens) == (REPLY.text[:40], "length", 20)
    assert len(live_model.calls) == 1


async def test_a_truncated_reply_is_drawn_again_for_a_longer_limit(tmp_path: Path) -> None:
    short_reply = replace(REPLY, finish="length", completion_tokens=50)
    longer_reply = replace(REPLY, text="all of it", completion_tokens=60)

    model, live_model = make_pooled_model(ReplyPool(tmp_path), short_reply, longer_reply)

    assert (await model.complete(MESSAGES, replace(SAMPLING, max_tokens=50))).finish == "length"
    assert (await model.complete(MESSAGES, replace(SAMPLING, max_tokens=50))).replayed
    assert (await model.complete(MESSAGES, replace(SAMPLING, max_tokens=100))).text == "all of it"
    assert (await model.complete(MESSAGES, replace(SAMPLING, max_tokens=1000))).text == "all of it"
    assert len(live_model.calls) == 2


async def test_repetitions_draw_other_samples_but_share_the_greedy_reply(tmp_path: Path) -> None:
    pool = ReplyPool(tmp_path)
    first_model, first_live = make_pooled_model(pool, REPLY, REPLY)
    second_model, second_live = make_pooled_model(pool, REPLY, REPLY, seed=1)

    for sampling in (SAMPLING, Sampling()):
        await first_model.complete(MESSAGES, sampling)
        await second_model.complete(MESSAGES, sampling)

    assert [call.sampling.index for call in first_live.calls] == [2, 0]
    assert [call.sampling.index for call in second_live.calls] == [1002]


@pytest.mark.parametrize(
    "other_sampling",
    [
        replace(SAMPLING, index=3),
        replace(SAMPLING, temperature=0.7),
        replace(SAMPLING, logprobs=True),
        replace(SAMPLING, schema={"title": "Thing", "type": "object"}),
    ],
)
async def test_another_call_is_another_draw(tmp_path: Path, other_sampling: Sampling) -> None:
    model, live_model = make_pooled_model(ReplyPool(tmp_path), REPLY, REPLY)
    await model.complete(MESSAGES, SAMPLING)
    await model.complete(MESSAGES, other_sampling)
    assert len(live_model.calls) == 2


async def test_a_recording_of_run_folders_contains_no_task_text(tmp_path: Path) -> None:
    """A recording contains the hashes that find a reply, and no text of the prompt."""
    recorded = RecordedModel(ScriptedModel([REPLY, REPLY], name="m:a"), tmp_path / "replies")
    await recorded.complete(MESSAGES, SAMPLING)
    await recorded.complete((Message(role="user", content="of another set"),), SAMPLING)
    await recorded.count_tokens(MESSAGES)
    recording = tmp_path / "made.jsonl.gz"
    assert write_recording(recording, read_draws(tmp_path / "replies", [PROBLEM])) == 1

    text = gzip.decompress(recording.read_bytes()).decode()
    assert "secret_of_the_set" not in text
    assert "You write code" not in text

    entry = json.loads(text)
    assert (entry["dataset"], entry["problem"], entry["index"]) == ("made", "Made/1", 2)
    assert (entry["prompt"], entry["call"]) == (hash_prompt(MESSAGES), call_hash("m:a", MESSAGES, SAMPLING))

    model, unused_model = make_pooled_model(ReplyPool(tmp_path / "pool", [recording]))
    assert (await model.complete(MESSAGES, SAMPLING)).text == REPLY.text
    assert unused_model.calls == []
    assert not (tmp_path / "pool").exists()


async def test_a_truncated_reply_is_replayed_as_it_was_received(tmp_path: Path) -> None:
    """A longer reply that was drawn later and then truncated may be a different text."""
    short_reply = Reply(text="as it came", finish="length", completion_tokens=20)
    model, live_model = make_pooled_model(ReplyPool(tmp_path / "pool"), short_reply, REPLY)
    for limit in (20, 100):
        await model.complete(MESSAGES, replace(SAMPLING, max_tokens=limit))
    recording = tmp_path / "made.jsonl.gz"
    assert write_recording(recording, read_draws(tmp_path / "pool", [])) == 2

    for pool in (ReplyPool(tmp_path / "pool"), ReplyPool(tmp_path / "none", [recording])):
        second_model, _ = make_pooled_model(pool)
        texts = [
            (await second_model.complete(MESSAGES, replace(SAMPLING, max_tokens=n))).text
            for n in (20, 100, 10, 30)
        ]
        assert texts == ["as it came", REPLY.text, "as it", REPLY.text[:60]]
    assert len(live_model.calls) == 2


async def test_a_pool_can_be_recorded_and_a_recording_rewritten(tmp_path: Path) -> None:
    model, _ = make_pooled_model(ReplyPool(tmp_path / "pool"), REPLY)
    await model.complete(MESSAGES, SAMPLING)
    duplicate = make_draw(PROBLEM, "m:a", MESSAGES, SAMPLING, replace(REPLY, text="another"))
    plain, compressed = tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"
    assert write_recording(plain, [*read_draws(tmp_path / "pool", []), duplicate]) == 1

    (recorded_draw,) = read_recording(plain)
    assert recorded_draw.reply == REPLY.text

    write_recording(compressed, read_recording(plain))
    before = compressed.read_bytes()
    write_recording(compressed, read_recording(compressed))
    assert compressed.read_bytes() == before


def test_the_draws_of_a_task_are_read_only_once(tmp_path: Path) -> None:
    """A cluster requests the draws with every job, so reading them again would be slow."""
    first_item = make_draw(PROBLEM, "m:a", MESSAGES, SAMPLING, REPLY)
    other_item = make_draw(PROBLEM, "m:b", MESSAGES, SAMPLING, REPLY)
    ReplyPool(tmp_path).add(first_item)
    pool = ReplyPool(tmp_path, draws=[other_item])
    assert pool.draws_for(PROBLEM, "m:a") == (first_item,)

    for path in tmp_path.rglob("*.json"):
        path.write_text("read again, this would be an error")
    redrawn, new_draw = replace(first_item, reply="drawn again"), replace(first_item, index=7)
    for draw in (redrawn, new_draw):
        pool.add(draw)
    assert pool.draws_for(PROBLEM, "m:a") == (redrawn, new_draw)
    assert pool.draws_for(PROBLEM, "m:b") == (other_item,)
    assert pool.draws_for(PROBLEM, "m:c") == ()


async def test_an_unreadable_recording_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ReplyPool(tmp_path, [tmp_path / "gone.jsonl"])

    (tmp_path / "bad.jsonl").write_text('{"dataset": "made"}\n')
    with pytest.raises(StorageError, match=r"line 1 of .* is no recorded reply"):
        ReplyPool(tmp_path, [tmp_path / "bad.jsonl"])

    model, _ = make_pooled_model(ReplyPool(tmp_path), REPLY)
    await model.complete(MESSAGES, SAMPLING)
    (draw,) = tmp_path.rglob("*.json")
    draw.write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        await model.complete(MESSAGES, SAMPLING)


async def test_prompts_are_counted_as_the_model_does() -> None:
    class CountingModel(ScriptedModel):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            return 77

    pool = ReplyPool(Path("nowhere"))

    assert await count_tokens(PooledModel(CountingModel([]), "m:a", pool, PROBLEM), MESSAGES) == 77
    assert await count_tokens(PooledModel(None, "m:a", pool, PROBLEM), MESSAGES) > 0
