"""`local:NAME`: the embedded model as a `Model`. The server starts with the first question."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, PrerequisiteError
from suture.models.embedded.server import LlamaServer
from suture.models.embedded.serving import shared_server
from suture.models.embedded.sharing import PromptSharing
from suture.models.seam import Message, Reply, Sampling
from suture.models.vendors.chat import LangChainModel
from suture.models.vendors.connections import connect_openai
from suture.models.weights.cache import model_path
from suture.models.weights.catalogue import find_entry

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
