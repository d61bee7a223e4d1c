"""`local:NAME`: the embedded model as a `Model`. The server starts with the first question."""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from suture.errors import ModelError, PrerequisiteError
from suture.models.cache import model_path
from suture.models.calibrate import calibrate
from suture.models.catalogue import CatalogueEntry, find_entry
from suture.models.chat import LangChainModel
from suture.models.connections import connect_openai
from suture.models.embedded import LlamaServer, ServerOptions, start_server
from suture.models.machine import available_bytes
from suture.models.seam import Message, Reply, Sampling
from suture.settings.schema import Settings

__all__ = [
    "EmbeddedModel",
    "affordable_slots",
    "required_bytes",
    "shared_servers",
    "stop_servers",
    "useful_slots",
]

MAX_SLOTS = 4
"""Replies drawn at the same time; more of them wait in the server's queue."""
THREADS_PER_SLOT = 2
"""With fewer threads a further slot costs more than it brings: slots that read the same prompt at once each
evaluate all of it, replies drawn one after another in one slot share it, and writing is no faster."""
WORKING_BYTES = 300 << 20
"""Memory for the interpreter, compute buffers and the server itself; 240 MiB were seen."""

_servers: dict[tuple[str, int], LlamaServer] = {}
_servers_lock = threading.Lock()


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
        if importlib.util.find_spec("xllamacpp") is None:
            raise PrerequisiteError(
                f"{self.name!r} needs the package 'xllamacpp'", remedy='pip install "suture[local]"'
            )
        self._path = model_path(model, settings.paths.cache)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask for one reply, starting the server where it does not run; see `Model.complete`.

        Raises:
            PrerequisiteError: There is too little memory.
            ModelError: The server does not come up, or failed.
        """
        server = await asyncio.to_thread(self._shared_server)
        if self._chat is None or self._chat[0] is not server:
            stale, self._chat = self._chat, (server, self._connect(server))
            if stale is not None:
                await stale[1].close()
        chat = self._chat[1]
        try:
            return await chat.complete(messages, sampling)
        except ModelError as fault:
            if server.alive:
                raise
            raise ModelError(
                f"the server of {self.name!r} died while it answered",
                remedy="ask again: it starts anew; lower model.context_tokens if memory is short",
            ) from fault

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, counted by the server, which starts where it does not run.

        Raises:
            PrerequisiteError: There is too little memory.
            ModelError: The server does not come up, or failed.
        """
        server = await asyncio.to_thread(self._shared_server)
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
        )
        return LangChainModel(
            self.name, connect, seed=knobs.seed, timeout_s=knobs.timeout_s, secret=server.key
        )

    def _shared_server(self) -> LlamaServer:
        key = (str(self._path), self._settings.model.context_tokens)
        with _servers_lock:
            server = _servers.get(key)
            if server is not None and server.alive:
                return server
            if server is not None:
                server.stop()  # it is dead; this lets go of its pipes
            _servers[key] = start_server(self._options())
            return _servers[key]

    def _options(self) -> ServerOptions:
        knobs = self._settings.model
        if knobs.threads is not None:
            threads = batch_threads = knobs.threads
        else:
            measured = calibrate(self._path, self._settings.paths.cache)
            threads, batch_threads = measured.threads, measured.batch_threads
        slots = affordable_slots(
            self._entry, knobs.context_tokens, available_bytes(), most=useful_slots(threads)
        )
        return ServerOptions(
            model_path=self._path,
            context_tokens=knobs.context_tokens,
            slots=slots,
            threads=threads,
            batch_threads=batch_threads,
        )


def required_bytes(entry: CatalogueEntry, context_tokens: int, slots: int) -> int:
    """Memory to serve a model: its weights, the attention cache of all slots, and working space."""
    return entry.size_bytes + entry.kv_bytes_per_token * context_tokens * slots + WORKING_BYTES


def useful_slots(threads: int) -> int:
    """How many replies are worth drawing at once with so many threads."""
    return max(1, min(MAX_SLOTS, threads // THREADS_PER_SLOT))


def affordable_slots(entry: CatalogueEntry, context_tokens: int, available_bytes: int, *, most: int) -> int:
    """How many replies can be drawn at once in so much memory, at most `most`.

    Raises:
        PrerequisiteError: Not even one.
    """
    for slots in range(most, 0, -1):
        if required_bytes(entry, context_tokens, slots) <= available_bytes:
            return slots
    needed_mb = required_bytes(entry, context_tokens, 1) >> 20
    raise PrerequisiteError(
        f"{entry.name!r} needs {needed_mb} MiB of memory and {available_bytes >> 20} MiB are free",
        remedy="close other programs, lower model.context_tokens, or take a smaller model",
    )


def shared_servers() -> tuple[LlamaServer, ...]:
    """The servers that this process has started."""
    with _servers_lock:
        return tuple(_servers.values())


@atexit.register
def stop_servers() -> None:
    """End every server of this process; the next question starts one again."""
    with _servers_lock:
        while _servers:
            _servers.popitem()[1].stop()
