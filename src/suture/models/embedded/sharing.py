"""Calls of one prompt that come together become one request, so that the server reads the prompt once.

The slots of llama.cpp's server that work at the same time share nothing: each reads the whole prompt. The
replies of one request do share it: their slots begin with a copy of the first one's state. So does a later
request, which goes to the slot that holds the most of its prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from suture.models.seam import Message, Reply, Sampling

Draw = Callable[[Sequence[Message], Sequence[Sampling]], Awaitable[Sequence[Reply]]]
"""One request: the replies to one prompt, for samplings that differ in nothing but consecutive indices."""
GATHERING_S = 0.05
"""How long calls of one prompt are waited for: the branches of a round come within milliseconds."""


@dataclass(eq=False)
class _Call:
    sampling: Sampling
    reply: Reply | None = None


@dataclass(eq=False)
class _Queue:
    waiting: list[_Call] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class PromptSharing:
    """Puts calls together, and lets those of one prompt that do not go together go one after the other.

    Args:
        draw: Makes one request. What it raises is for the call that made it; the others try by themselves.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._queues: dict[object, _Queue] = {}

    async def complete(self, messages: Sequence[Message], sampling: Sampling, *, most: int) -> Reply:
        """Answer one call; raises as `draw` does."""
        key = (asyncio.get_running_loop(), tuple(messages))
        queue = self._queues.setdefault(key, _Queue())
        call = _Call(sampling=sampling)
        queue.waiting.append(call)
        try:
            await asyncio.sleep(GATHERING_S)
            async with queue.turn:
                if call.reply is not None:
                    return call.reply
                together = _together(call, queue.waiting, most)
                replies = await self._draw(messages, [one.sampling for one in together])
                for one, reply in zip(together, replies, strict=True):
                    one.reply = reply
                return replies[together.index(call)]
        finally:
            queue.waiting.remove(call)
            if not queue.waiting:
                self._queues.pop(key, None)


def _together(call: _Call, waiting: Sequence[_Call], most: int) -> list[_Call]:
    """The call and those that can be answered by the same request, in the order of their indices."""
    if call.sampling.schema is not None or call.sampling.logprobs:
        return [call]
    alike = {
        one.sampling.index: one
        for one in waiting
        if one.reply is None and replace(one.sampling, index=0) == replace(call.sampling, index=0)
    }
    alike[call.sampling.index] = call
    first = last = call.sampling.index
    while last + 1 in alike and last + 1 - first < most:
        last += 1
    while first - 1 in alike and last - (first - 1) < most:
        first -= 1
    return [alike[index] for index in range(first, last + 1)]
