"""Recorded replies: found under any token limit, shared without task text, and paid for once."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suture.bench.problem import Problem
from suture.bench.replies.recordings import (
    hash_prompt,
    make_draw,
    read_draws,
    read_recording,
    write_recording,
)
from suture.bench.replies.reply_pool import PooledModel, ReplyPool
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
ASKED = (Message(role="system", content="You write code."), Message(role="user", content=PROBLEM.statement))
REPLY = Reply(text="0123456789" * 10, prompt_tokens=12, completion_tokens=50, model="m:a")
DRAWN = Sampling(temperature=0.8, index=2)


def pooled(pool: ReplyPool, *replies: Reply, seed: int = 0) -> tuple[PooledModel, ScriptedModel]:
    model = ScriptedModel(replies, name="m:a")
    return PooledModel(model, "m:a", pool, PROBLEM, seed=seed), model


async def test_a_recorded_reply_is_not_paid_for_again(tmp_path: Path) -> None:
    first, live = pooled(ReplyPool(tmp_path), REPLY)
    paid = await first.complete(ASKED, DRAWN)
    again, nobody = pooled(ReplyPool(tmp_path))
    free = await again.complete(ASKED, replace(DRAWN, max_tokens=50))
    assert (len(live.calls), nobody.calls) == (1, [])
    assert (paid.replayed, paid.from_run) == (False, "")
    assert free == replace(paid, replayed=True, from_run="pool")


async def test_concurrent_requests_for_one_reply_pay_once(tmp_path: Path) -> None:
    model, live = pooled(ReplyPool(tmp_path), REPLY)
    replies = await asyncio.gather(*(model.complete(ASKED, DRAWN) for _ in range(5)))
    assert len(live.calls) == 1
    assert {reply.text for reply in replies} == {REPLY.text}


async def test_the_first_reply_of_two_processes_counts(tmp_path: Path) -> None:
    other, _ = pooled(ReplyPool(tmp_path), replace(REPLY, text="of the faster one"))

    class Slower(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
            await other.complete(messages, sampling)
            return await super().complete(messages, sampling)

    slower = PooledModel(Slower([REPLY], name="m:a"), "m:a", ReplyPool(tmp_path), PROBLEM)
    assert (await slower.complete(ASKED, DRAWN)).text == "of the faster one"
    later, _ = pooled(ReplyPool(tmp_path))
    assert (await later.complete(ASKED, DRAWN)).text == "of the faster one"


async def test_a_reply_longer_than_the_limit_is_cut(tmp_path: Path) -> None:
    model, live = pooled(ReplyPool(tmp_path), REPLY)
    await model.complete(ASKED, DRAWN)
    cut = await model.complete(ASKED, replace(DRAWN, max_tokens=20))
    assert (cut.text, cut.finish, cut.completion_tokens) == (REPLY.text[:40], "length", 20)
    assert len(live.calls) == 1


async def test_a_reply_that_was_cut_is_drawn_again_for_a_longer_limit(tmp_path: Path) -> None:
    short = replace(REPLY, finish="length", completion_tokens=50)
    longer = replace(REPLY, text="all of it", completion_tokens=60)
    model, live = pooled(ReplyPool(tmp_path), short, longer)
    assert (await model.complete(ASKED, replace(DRAWN, max_tokens=50))).finish == "length"
    assert (await model.complete(ASKED, replace(DRAWN, max_tokens=50))).replayed
    assert (await model.complete(ASKED, replace(DRAWN, max_tokens=100))).text == "all of it"
    assert (await model.complete(ASKED, replace(DRAWN, max_tokens=1000))).text == "all of it"
    assert len(live.calls) == 2


async def test_repetitions_have_samples_of_their_own_and_the_same_greedy_reply(tmp_path: Path) -> None:
    pool = ReplyPool(tmp_path)
    first, one = pooled(pool, REPLY, REPLY)
    second, two = pooled(pool, REPLY, REPLY, seed=1)
    for sampling in (DRAWN, Sampling()):
        await first.complete(ASKED, sampling)
        await second.complete(ASKED, sampling)
    assert [call.sampling.index for call in one.calls] == [2, 0]
    assert [call.sampling.index for call in two.calls] == [1002]


@pytest.mark.parametrize(
    "other",
    [
        replace(DRAWN, index=3),
        replace(DRAWN, temperature=0.7),
        replace(DRAWN, logprobs=True),
        replace(DRAWN, schema={"title": "Thing", "type": "object"}),
    ],
)
async def test_another_call_is_another_draw(tmp_path: Path, other: Sampling) -> None:
    model, live = pooled(ReplyPool(tmp_path), REPLY, REPLY)
    await model.complete(ASKED, DRAWN)
    await model.complete(ASKED, other)
    assert len(live.calls) == 2


async def test_from_run_folders_to_one_file_without_the_task(tmp_path: Path) -> None:
    """A recording holds what finds a reply again, and nothing of what was asked."""
    recorded = RecordedModel(ScriptedModel([REPLY, REPLY], name="m:a"), tmp_path / "replies")
    await recorded.complete(ASKED, DRAWN)
    await recorded.complete((Message(role="user", content="of another set"),), DRAWN)
    await recorded.count_tokens(ASKED)
    file = tmp_path / "made.jsonl.gz"
    assert write_recording(file, read_draws(tmp_path / "replies", [PROBLEM])) == 1
    text = gzip.decompress(file.read_bytes()).decode()
    assert "secret_of_the_set" not in text
    assert "You write code" not in text
    entry = json.loads(text)
    assert (entry["dataset"], entry["problem"], entry["index"]) == ("made", "Made/1", 2)
    assert (entry["prompt"], entry["call"]) == (hash_prompt(ASKED), call_hash("m:a", ASKED, DRAWN))
    model, nobody = pooled(ReplyPool(tmp_path / "pool", [file]))
    assert (await model.complete(ASKED, DRAWN)).text == REPLY.text
    assert nobody.calls == []
    assert not (tmp_path / "pool").exists()


async def test_a_cut_reply_stays_what_its_call_was_answered_with(tmp_path: Path) -> None:
    """A longer reply that was drawn later, cut by the share of its characters, need not be the same text."""
    short = Reply(text="as it came", finish="length", completion_tokens=20)
    model, live = pooled(ReplyPool(tmp_path / "pool"), short, REPLY)
    for limit in (20, 100):
        await model.complete(ASKED, replace(DRAWN, max_tokens=limit))
    file = tmp_path / "made.jsonl.gz"
    assert write_recording(file, read_draws(tmp_path / "pool", [])) == 2
    for pool in (ReplyPool(tmp_path / "pool"), ReplyPool(tmp_path / "none", [file])):
        again, _ = pooled(pool)
        texts = [(await again.complete(ASKED, replace(DRAWN, max_tokens=n))).text for n in (20, 100, 10, 30)]
        assert texts == ["as it came", REPLY.text, "as it", REPLY.text[:60]]
    assert len(live.calls) == 2


async def test_a_pool_becomes_a_recording_and_that_the_same_again(tmp_path: Path) -> None:
    model, _ = pooled(ReplyPool(tmp_path / "pool"), REPLY)
    await model.complete(ASKED, DRAWN)
    twice = make_draw(PROBLEM, "m:a", ASKED, DRAWN, replace(REPLY, text="another"))
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"
    assert write_recording(one, [*read_draws(tmp_path / "pool", []), twice]) == 1
    (kept,) = read_recording(one)
    assert kept.reply == REPLY.text
    write_recording(two, read_recording(one))
    before = two.read_bytes()
    write_recording(two, read_recording(two))
    assert two.read_bytes() == before


def test_the_draws_of_a_task_are_read_once_and_kept_with_those_that_come(tmp_path: Path) -> None:
    """A cluster asks for them with every job."""
    one = make_draw(PROBLEM, "m:a", ASKED, DRAWN, REPLY)
    other = make_draw(PROBLEM, "m:b", ASKED, DRAWN, REPLY)
    ReplyPool(tmp_path).add(one)
    pool = ReplyPool(tmp_path, draws=[other])
    assert pool.draws_for(PROBLEM, "m:a") == (one,)
    for path in tmp_path.rglob("*.json"):
        path.write_text("read again, this would be an error")
    again, more = replace(one, reply="drawn again"), replace(one, index=7)
    for draw in (again, more):
        pool.add(draw)
    assert pool.draws_for(PROBLEM, "m:a") == (again, more)
    assert pool.draws_for(PROBLEM, "m:b") == (other,)
    assert pool.draws_for(PROBLEM, "m:c") == ()


async def test_an_unreadable_recording_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ReplyPool(tmp_path, [tmp_path / "gone.jsonl"])
    (tmp_path / "bad.jsonl").write_text('{"dataset": "made"}\n')
    with pytest.raises(StorageError, match=r"line 1 of .* is no recorded reply"):
        ReplyPool(tmp_path, [tmp_path / "bad.jsonl"])
    model, _ = pooled(ReplyPool(tmp_path), REPLY)
    await model.complete(ASKED, DRAWN)
    (draw,) = tmp_path.rglob("*.json")
    draw.write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        await model.complete(ASKED, DRAWN)


async def test_prompts_are_counted_as_the_model_does() -> None:
    class Counting(ScriptedModel):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            return 77

    pool = ReplyPool(Path("nowhere"))
    assert await count_tokens(PooledModel(Counting([]), "m:a", pool, PROBLEM), ASKED) == 77
    assert await count_tokens(PooledModel(None, "m:a", pool, PROBLEM), ASKED) > 0
