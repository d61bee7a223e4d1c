"""Concurrent calls with one prompt become one request, and each gets its own reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from suture.errors import ModelError
from suture.models import Message, Reply, Sampling, ToolCall, ToolDeclaration
from suture.models.llama_server.local_model import PromptBatcher

PROMPT = (Message(role="user", content="add two numbers"),)
OTHER = (Message(role="user", content="add three numbers"),)


class FakeServer:
    """Records requests; a reply names its prompt and index."""

    def __init__(self, faults: int = 0) -> None:
        self.requests: list[list[int]] = []
        self.faults = faults
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.has_request = asyncio.Event()

    async def draw(self, messages: Sequence[Message], samplings: Sequence[Sampling]) -> tuple[Reply, ...]:
        self.requests.append([sampling.index for sampling in samplings])
        self.has_request.set()
        await self.may_answer.wait()
        if self.faults:
            self.faults -= 1
            raise ModelError("the server stumbled")
        return tuple(Reply(text=f"{messages[0].content} {sampling.index}") for sampling in samplings)


def make_sampling(index: int, max_tokens: int = 50, **knobs: Any) -> Sampling:
    """Return a sampling that can be batched with others of the same limit."""
    return Sampling(temperature=0.8, max_tokens=max_tokens, index=index, **knobs)


async def draw_texts(
    server: FakeServer,
    samplings: Sequence[Sampling],
    *,
    max_batch: int = 4,
    prompt: Sequence[Message] = PROMPT,
) -> list[str]:
    """Draw all samplings of a prompt concurrently and return the texts."""
    batcher = PromptBatcher(server.draw)
    replies = await asyncio.gather(
        *(batcher.complete(prompt, sampling, max_batch=max_batch) for sampling in samplings)
    )
    return [reply.text for reply in replies]


async def test_concurrent_samples_are_one_request(server: FakeServer) -> None:
    texts = await draw_texts(server, [make_sampling(index) for index in (3, 1, 2, 4)])
    assert texts == [f"add two numbers {index}" for index in (3, 1, 2, 4)]
    assert server.requests == [[1, 2, 3, 4]]


@pytest.fixture
async def server() -> FakeServer:
    """A fake server that answers at once."""
    return FakeServer()


async def test_a_batch_is_not_larger_than_the_number_of_slots(server: FakeServer) -> None:
    await draw_texts(server, [make_sampling(index) for index in range(5)], max_batch=2)
    assert server.requests == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    "other",
    [
        make_sampling(2, max_tokens=51),
        Sampling(max_tokens=50, index=2),
        make_sampling(3),
        Sampling(temperature=0.8, max_tokens=50, index=2, schema={"title": "x"}),
        make_sampling(2, logprobs=True),
    ],
)
async def test_incompatible_samplings_are_not_batched(server: FakeServer, other: Sampling) -> None:
    texts = await draw_texts(server, [make_sampling(1), other])
    assert texts == ["add two numbers 1", f"add two numbers {other.index}"]
    assert server.requests == [[1], [other.index]]


async def test_the_same_call_twice_is_two_requests(server: FakeServer) -> None:
    assert await draw_texts(server, [make_sampling(1), make_sampling(1)]) == ["add two numbers 1"] * 2
    assert server.requests == [[1], [1]]


async def test_only_calls_of_the_same_prompt_wait_for_each_other(server: FakeServer) -> None:
    batcher = PromptBatcher(server.draw)
    server.may_answer.clear()
    first_call = asyncio.create_task(batcher.complete(PROMPT, make_sampling(1), max_batch=4))
    await server.has_request.wait()
    server.has_request.clear()
    later_calls = [
        asyncio.create_task(batcher.complete(PROMPT, make_sampling(index), max_batch=4)) for index in (2, 3)
    ]
    other_call = asyncio.create_task(batcher.complete(OTHER, make_sampling(9), max_batch=4))
    await server.has_request.wait()

    assert server.requests == [[1], [9]]

    server.may_answer.set()
    await asyncio.gather(first_call, *later_calls, other_call)
    assert server.requests == [[1], [9], [2, 3]]


async def test_a_fault_ends_one_call_and_the_others_are_repeated() -> None:
    server = FakeServer(faults=1)
    batcher = PromptBatcher(server.draw)
    calls = (batcher.complete(PROMPT, make_sampling(index), max_batch=4) for index in range(3))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(outcome, ModelError) for outcome in outcomes] == [True, False, False]
    assert server.requests == [[0, 1, 2], [1, 2]]


@pytest.mark.parametrize("cancelled", range(3))
async def test_a_cancelled_call_does_not_cancel_others(server: FakeServer, cancelled: int) -> None:
    batcher = PromptBatcher(server.draw)
    server.may_answer.clear()
    calls = [
        asyncio.create_task(batcher.complete(PROMPT, make_sampling(index), max_batch=4)) for index in range(3)
    ]
    await server.has_request.wait()
    calls[cancelled].cancel()
    await asyncio.sleep(0)
    server.may_answer.set()

    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert [getattr(outcome, "text", "gone") for outcome in outcomes] == [
        "gone" if index == cancelled else f"add two numbers {index}" for index in range(3)
    ]


async def test_calls_with_tools_are_requested_one_by_one(server: FakeServer) -> None:
    tool = ToolDeclaration(name="look", description="looks around", inputs={})
    call = ToolCall(id="c1", name="look", arguments={"at": "a"})
    prompt = (*PROMPT, Message(role="assistant", content="", tool_calls=(call,)))
    samplings = [make_sampling(index, tools=(tool,)) for index in (1, 2)]
    await draw_texts(server, samplings, prompt=prompt)
    assert sorted(server.requests) == [[1], [2]]
