"""`local:NAME`: the embedded model as a `Model`. The server starts with the first call.

Concurrent calls with one prompt become one request, so that the server evaluates the prompt once. Slots of llama.cpp's
server that work at the same time share nothing: each evaluates the whole prompt. The replies of one request share the
evaluation: their slots start from a copy of the first one's state. A later request goes to the slot that holds most of
its prompt.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from suture.core.installation import format_install_command
from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, PrerequisiteError
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.llama_server.server_process import LlamaServer
from suture.models.llama_server.shared_servers import get_shared_server
from suture.models.providers.connections import connect_openai
from suture.models.providers.error_mapping import ModelTarget
from suture.models.providers.langchain_model import LangChainModel
from suture.models.providers.request_conversion import openai_messages
from suture.models.tuning import BATCH_WINDOW_S, SERVER_EXIT_WAIT_S
from suture.models.weights.weights_cache import find_catalogue_entry, model_path

RequestReplies = Callable[[Sequence[Message], Sequence[Sampling]], Awaitable[Sequence[Reply]]]
"""Makes one request: several replies to one prompt, for samplings that differ only in consecutive indices."""


@dataclass(eq=False)
class _Call:
    sampling: Sampling
    reply: Reply | None = None


@dataclass(eq=False)
class _CallQueue:
    """The unfinished calls with one prompt; `request_lock` lets one request run at a time."""

    calls: list[_Call] = field(default_factory=list)
    request_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PromptBatcher:
    """Combines concurrent calls with the same prompt into requests, which run one after the other.

    The exception of a request goes to the call that made it; the other calls retry on their own.
    """

    def __init__(self, request_replies: RequestReplies) -> None:
        self._request_replies = request_replies
        self._queues: dict[object, _CallQueue] = {}

    async def complete(self, messages: Sequence[Message], sampling: Sampling, *, max_batch: int) -> Reply:
        """Answer one call; raises as `request_replies` does."""
        key = (asyncio.get_running_loop(), repr(tuple(messages)))  # messages with tool calls have no hash
        queue = self._queues.setdefault(key, _CallQueue())
        call = _Call(sampling=sampling)
        queue.calls.append(call)
        try:
            await asyncio.sleep(BATCH_WINDOW_S)
            async with queue.request_lock:
                if call.reply is not None:
                    return call.reply
                batch = _compatible_calls(call, queue.calls, max_batch)
                replies = await self._request_replies(messages, [member.sampling for member in batch])
                for member, reply in zip(batch, replies, strict=True):
                    member.reply = reply
                return replies[batch.index(call)]
        finally:
            queue.calls.remove(call)
            if not queue.calls:
                self._queues.pop(key, None)


def _compatible_calls(call: _Call, unfinished_calls: Sequence[_Call], max_batch: int) -> list[_Call]:
    """Return the call and those that the same request can answer, in the order of their indices."""
    if call.sampling.schema is not None or call.sampling.logprobs or call.sampling.tools:
        return [call]
    calls_by_index = {
        candidate.sampling.index: candidate
        for candidate in unfinished_calls
        if candidate.reply is None and replace(candidate.sampling, index=0) == replace(call.sampling, index=0)
    }
    calls_by_index[call.sampling.index] = call
    lowest = highest = call.sampling.index
    while highest + 1 in calls_by_index and highest + 1 - lowest < max_batch:
        highest += 1
    while lowest - 1 in calls_by_index and highest - (lowest - 1) < max_batch:
        lowest -= 1
    return [calls_by_index[index] for index in range(lowest, highest + 1)]


class _ServerExited(ModelError):
    """The server process ended in the middle of a reply."""


class LocalModel:
    """A model of the catalogue, served by a child process that this process shares.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: Its weights or `xllamacpp` are missing.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        self.name = f"local:{model}"
        self._entry = find_catalogue_entry(model)
        self._settings = settings
        self._connection: tuple[LlamaServer, LangChainModel] | None = None
        self._batcher = PromptBatcher(self._complete_batch)
        if importlib.util.find_spec("xllamacpp") is None:
            raise PrerequisiteError(
                f"{self.name!r} needs the package 'xllamacpp'", remedy=format_install_command("local")
            )
        self._path = model_path(model, settings.paths.cache)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Generate one reply, starting the server if necessary; see `Model.complete`.

        If the server dies, it is started and called again.
        """
        try:
            return await self._complete_once(messages, sampling)
        except _ServerExited:
            pass
        try:
            return await self._complete_once(messages, sampling)
        except _ServerExited as fault:
            raise ModelError(
                f"the server of {self.name!r} died during a reply, and again at the second attempt",
                remedy="lower model.context_tokens or model.slots if memory is short",
            ) from fault

    async def _complete_once(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        server = await asyncio.to_thread(self._server)
        if server.slots > 1:
            return await self._batcher.complete(messages, sampling, max_batch=server.slots)
        return (await self._complete_batch(messages, [sampling]))[0]

    async def _complete_batch(
        self, messages: Sequence[Message], samplings: Sequence[Sampling]
    ) -> tuple[Reply, ...]:
        """Make one request to the present server, with a new connection if it was restarted."""
        server = await asyncio.to_thread(self._server)
        if self._connection is None or self._connection[0] is not server:
            stale_connection, self._connection = self._connection, (server, self._connect(server))
            if stale_connection is not None:
                await stale_connection[1].close()
        client = self._connection[1]
        try:
            return await client.complete_batch(messages, samplings)
        except ModelError as fault:
            if isinstance(fault, ContextTooLong) or not await asyncio.to_thread(
                server.exits_within, SERVER_EXIT_WAIT_S
            ):
                raise
            raise _ServerExited(f"the server of {self.name!r} died while it answered") from fault

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt, counted by the server, which is started if necessary."""
        server = await asyncio.to_thread(self._server)
        return await asyncio.to_thread(server.count_tokens, openai_messages(messages))

    async def close(self) -> None:
        """Close the connection; the server stays for the next model object (see `stop_shared_servers`)."""
        if self._connection is not None:
            await self._connection[1].close()

    def _connect(self, server: LlamaServer) -> LangChainModel:
        timeout_s = self._settings.model.timeout_s
        connect = partial(
            connect_openai,
            self._entry.name,
            key=server.key,
            base_url=f"{server.url}/v1",
            timeout_s=timeout_s,
            prefill_body={},  # llama.cpp's server continues a last assistant message without being asked
        )
        target = ModelTarget(name=self.name, secret=server.key)
        seed = self._settings.model.seed
        return LangChainModel(target, connect, seed=seed, timeout_s=timeout_s, retries=0)

    def _server(self) -> LlamaServer:
        return get_shared_server(self._entry, self._path, self._settings)
