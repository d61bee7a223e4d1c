"""Calls of one prompt that come together become one request, so that the server reads the prompt once.

The slots of llama.cpp's server that work at the same time share nothing: each reads the whole prompt. The
replies of one request do share it: their slots begin with a copy of the first one's state. So does a later
request, which goes to the slot that holds the most of its prompt.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, PrerequisiteError
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.llama_server.server_process import LlamaServer
from suture.models.llama_server.shared_servers import shared_server
from suture.models.providers.connections import connect_openai
from suture.models.providers.langchain_model import LangChainModel
from suture.models.weights.model_catalogue import find_entry
from suture.models.weights.weights_cache import model_path

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


DYING_S = 1.0
"""The connection breaks a moment before the process is gone."""


class _ServerDied(ModelError):
    """The child went away in the middle of a reply."""


class EmbeddedModel:
    """A model of the catalogue, served by a child process that all of this process shares.

    Args:
        model: Its name in the catalogue.
        settings: Context, threads, seed, time-outs and the cache folder.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: Its weights or `xllamacpp` are missing.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        self.name = f"local:{model}"
        self._entry = find_entry(model)
        self._settings = settings
        self._chat: tuple[LlamaServer, LangChainModel] | None = None
        self._sharing = PromptSharing(self._drawn)
        if importlib.util.find_spec("xllamacpp") is None:
            raise PrerequisiteError(
                f"{self.name!r} needs the package 'xllamacpp'", remedy='pip install "suture[local]"'
            )
        self._path = model_path(model, settings.paths.cache)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask for one reply, starting the server where it does not run; see `Model.complete`.

        A server that dies meanwhile is started again and asked once more.

        Raises:
            PrerequisiteError: There is too little memory.
            ModelError: The server does not come up, died twice, or failed.
        """
        try:
            return await self._answer(messages, sampling)
        except _ServerDied:
            pass
        try:
            return await self._answer(messages, sampling)
        except _ServerDied as fault:
            raise ModelError(
                f"the server of {self.name!r} died while it answered, and again when it was asked anew",
                remedy="lower model.context_tokens or model.slots if memory is short",
            ) from fault

    async def _answer(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        server = await asyncio.to_thread(self._server)
        if server.slots > 1:
            return await self._sharing.complete(messages, sampling, most=server.slots)
        return (await self._drawn(messages, [sampling]))[0]

    async def _drawn(self, messages: Sequence[Message], samplings: Sequence[Sampling]) -> tuple[Reply, ...]:
        server = await asyncio.to_thread(self._server)
        if self._chat is None or self._chat[0] is not server:
            stale, self._chat = self._chat, (server, self._connect(server))
            if stale is not None:
                await stale[1].close()
        chat = self._chat[1]
        try:
            return await chat.complete_together(messages, samplings)
        except ModelError as fault:
            if isinstance(fault, ContextTooLong) or not await asyncio.to_thread(server.dies_within, DYING_S):
                raise
            raise _ServerDied(f"the server of {self.name!r} died while it answered") from fault

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, counted by the server, which starts where it does not run.

        Raises:
            PrerequisiteError: There is too little memory.
            ModelError: The server does not come up, or failed.
        """
        server = await asyncio.to_thread(self._server)
        return await asyncio.to_thread(server.count_tokens, [asdict(message) for message in messages])

    async def close(self) -> None:
        """Close the connection; the server stays for the next model object (see `stop_servers`)."""
        if self._chat is not None:
            await self._chat[1].close()

    def _connect(self, server: LlamaServer) -> LangChainModel:
        knobs = self._settings.model
        connect = partial(
            connect_openai,
            self._entry.name,
            key=server.key,
            base_url=f"{server.url}/v1",
            timeout_s=knobs.timeout_s,
            goes_on_by={},  # llama.cpp's server goes on from a last turn of the assistant's by itself
            streams=True,
        )
        return LangChainModel(
            self.name, connect, seed=knobs.seed, timeout_s=knobs.timeout_s, retries=0, secret=server.key
        )

    def _server(self) -> LlamaServer:
        return shared_server(self._entry, self._path, self._settings)
