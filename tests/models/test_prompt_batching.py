"""Concurrent calls with one prompt become one request, and each gets its own reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from suture.errors import ModelError
from suture.models import Message, Reply, Sampling
from suture.models.llama_server.local_model import PromptBatcher

PROMPT = (Message(role="user", content="add two numbers"),)
OTHER = (Message(role="user", content="add three numbers"),)


class Server:
    """Records requests; a reply names its prompt and index."""

    def __init__(self, faults: int = 0) -> None:
        self.requests: list[list[int]] = []
        self.faults = faults
        self.answering = asyncio.Event()
        self.answering.set()
        self.asked = asyncio.Event()

    async def draw(self, messages: Sequence[Message], samplings: Sequence[Sampling]) -> tuple[Reply, ...]:
        self.requests.append([sampling.index for sampling in samplings])
        self.asked.set()
        await self.answering.wait()
        if self.faults:
            self.faults -= 1
            raise ModelError("the server stumbled")
        return tuple(Reply(text=f"{messages[0].content} {sampling.index}") for sampling in samplings)


def warm(index: int, max_tokens: int = 50, **knobs: Any) -> Sampling:
    return Sampling(temperature=0.8, max_tokens=max_tokens, index=index, **knobs)


async def draw_texts(
    server: Server, samplings: Sequence[Sampling], *, max_batch: int = 4, prompt: Sequence[Message] = PROMPT
) -> list[str]:
    sharing = PromptBatcher(server.draw)
    replies = await asyncio.gather(*(sharing.complete(prompt, one, max_batch=max_batch) for one in samplings))
    return [reply.text for reply in replies]


async def test_a_round_of_samples_is_one_request(server: Server) -> None:
    texts = await draw_texts(server, [warm(index) for index in (3, 1, 2, 4)])
    assert texts == [f"add two numbers {index}" for index in (3, 1, 2, 4)]
    assert server.requests == [[1, 2, 3, 4]]


@pytest.fixture
async def server() -> Server:
    return Server()


async def test_a_server_with_fewer_slots_gets_fewer_at_once(server: Server) -> None:
    await draw_texts(server, [warm(index) for index in range(5)], max_batch=2)
    assert server.requests == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    "others",
    [
        warm(2, max_tokens=51),
        Sampling(max_tokens=50, index=2),
        warm(3),
        Sampling(temperature=0.8, max_tokens=50, index=2, schema={"title": "x"}),
        warm(2, logprobs=True),
    ],
)
async def test_incompatible_samplings_are_not_batched(server: Server, others: Sampling) -> None:
    texts = await draw_texts(server, [warm(1), others])
    assert texts == ["add two numbers 1", f"add two numbers {others.index}"]
    assert server.requests == [[1], [others.index]]


async def test_the_same_call_twice_is_two_requests(server: Server) -> None:
    assert await draw_texts(server, [warm(1), warm(1)]) == ["add two numbers 1"] * 2
    assert server.requests == [[1], [1]]


async def test_calls_of_one_prompt_wait_for_each_other_and_of_another_do_not(server: Server) -> None:
    sharing = PromptBatcher(server.draw)
    server.answering.clear()
    first = asyncio.create_task(sharing.complete(PROMPT, warm(1), max_batch=4))
    await server.asked.wait()
    server.asked.clear()
    later = [asyncio.create_task(sharing.complete(PROMPT, warm(index), max_batch=4)) for index in (2, 3)]
    other = asyncio.create_task(sharing.complete(OTHER, warm(9), max_batch=4))
    await server.asked.wait()
    assert server.requests == [[1], [9]]
    server.answering.set()
    await asyncio.gather(first, *later, other)
    assert server.requests == [[1], [9], [2, 3]]


async def test_a_fault_is_for_one_call_and_the_others_ask_again() -> None:
    server = Server(faults=1)
    sharing = PromptBatcher(server.draw)
    calls = (sharing.complete(PROMPT, warm(index), max_batch=4) for index in range(3))
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(one, ModelError) for one in ended] == [True, False, False]
    assert server.requests == [[0, 1, 2], [1, 2]]


@pytest.mark.parametrize("gone", range(3))
async def test_a_cancelled_call_does_not_cancel_others(server: Server, gone: int) -> None:
    sharing = PromptBatcher(server.draw)
    server.answering.clear()
    calls = [asyncio.create_task(sharing.complete(PROMPT, warm(index), max_batch=4)) for index in range(3)]
    await server.asked.wait()
    calls[gone].cancel()
    await asyncio.sleep(0)
    server.answering.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(one, "text", "gone") for one in ended] == [
        "gone" if index == gone else f"add two numbers {index}" for index in range(3)
    ]
