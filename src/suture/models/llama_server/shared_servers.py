"""How the embedded server is to run here: threads, slots and memory; and the servers of this process."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from suture.core.settings.schema import Settings
from suture.errors import ModelError, PrerequisiteError
from suture.models.llama_server.server_process import LlamaServer, ServerOptions, start_server
from suture.models.llama_server.thread_calibration import available_bytes, calibrate
from suture.models.weights.model_catalogue import CatalogueEntry, find_entry
from suture.models.weights.weights_cache import model_path

MAX_SLOTS = 4
"""Replies drawn at the same time; more of them wait in the server's queue."""
THREADS_PER_SLOT = 2
"""With fewer threads a further slot brings nothing: they are busy with one reply, and several at once are
written no faster than one after the other."""
WORKING_BYTES = 300 << 20
"""Memory for the interpreter, compute buffers and the server itself; 240 MiB were seen."""
MAX_CACHE_BYTES = 512 << 20
"""For prompts that a slot has left and may come back to; the library's own limit is 8 GiB."""

_servers: dict[tuple[str, int], LlamaServer] = {}
_servers_lock = threading.Lock()


def required_bytes(entry: CatalogueEntry, context_tokens: int, slots: int) -> int:
    """Memory to serve a model: its weights, the attention cache of all slots, and working space."""
    return entry.size_bytes + entry.kv_bytes_per_token * context_tokens * slots + WORKING_BYTES


def useful_slots(threads: int) -> int:
    """How many replies are worth drawing at once with so many threads."""
    return max(1, min(MAX_SLOTS, threads // THREADS_PER_SLOT))


def affordable_slots(entry: CatalogueEntry, context_tokens: int, available_bytes: int, *, most: int) -> int:
    """How many replies can be drawn at once in so much memory, at most `most`.

    Raises:
        PrerequisiteError: There is not memory enough for a single slot.
    """
    for slots in range(most, 0, -1):
        if required_bytes(entry, context_tokens, slots) <= available_bytes:
            return slots
    raise _too_little(entry, context_tokens, 1, available_bytes, "take a smaller model")


def server_options(
    entry: CatalogueEntry, path: Path, settings: Settings, *, free_bytes: int | None = None
) -> ServerOptions:
    """Options for this machine; threads are measured once where no setting says them.

    Args:
        entry: The model's entry in the catalogue.
        path: The file of its weights.
        settings: Threads, slots and context, and the cache folder.
        free_bytes: Memory that can be had; asked of the machine where not given.

    Raises:
        PrerequisiteError: There is too little memory; nothing was loaded.
        ModelError: The server did not come up while it was timed.
    """
    knobs = settings.model
    free = available_bytes() if free_bytes is None else free_bytes
    wanted = knobs.slots or 1
    if required_bytes(entry, knobs.context_tokens, wanted) > free:
        remedy = "lower model.slots" if wanted > 1 else "take a smaller model"
        raise _too_little(entry, knobs.context_tokens, wanted, free, remedy)
    if knobs.threads is not None:
        threads = batch_threads = knobs.threads
    else:
        measured = calibrate(path, settings.paths.cache)
        threads, batch_threads = measured.threads, measured.batch_threads
    slots = knobs.slots or affordable_slots(entry, knobs.context_tokens, free, most=useful_slots(threads))
    spare = free - required_bytes(entry, knobs.context_tokens, slots)
    return ServerOptions(
        model_path=path,
        context_tokens=knobs.context_tokens,
        slots=slots,
        threads=threads,
        batch_threads=batch_threads,
        cache_mb=min(MAX_CACHE_BYTES, spare // 4) >> 20,
    )


def shared_server(entry: CatalogueEntry, path: Path, settings: Settings) -> LlamaServer:
    """The server of a model that all of this process shares; started where it does not run.

    Raises:
        PrerequisiteError: There is too little memory.
        ModelError: The server does not come up.
    """
    key = (str(path), settings.model.context_tokens)
    with _servers_lock:
        server = _servers.get(key)
        if server is not None and server.alive:
            return server
        if server is not None:
            server.stop()  # it is dead; this lets go of its pipes
        _servers[key] = start_server(server_options(entry, path, settings))
        return _servers[key]


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


def _too_little(
    entry: CatalogueEntry, context_tokens: int, slots: int, free_bytes: int, otherwise: str
) -> PrerequisiteError:
    needed_mb = required_bytes(entry, context_tokens, slots) >> 20
    replies = "" if slots == 1 else f" for {slots} replies at once"
    return PrerequisiteError(
        f"{entry.name!r} needs {needed_mb} MiB of memory{replies} and {free_bytes >> 20} MiB are free",
        remedy=f"close other programs, lower model.context_tokens, or {otherwise}",
    )


LEAST_UPTIME_S = 60.0
"""A server that dies sooner after it was started again would only die once more."""


def serve_model(
    name: str,
    settings: Settings,
    *,
    host: str,
    port: int,
    key: str | None = None,
    on_ready: Callable[[LlamaServer, ServerOptions], None],
    died: Callable[[str], None],
) -> None:
    """Serve a model over OpenAI's protocol until this process is stopped; a server that dies starts again.

    Args:
        name: Its name in the catalogue.
        settings: Threads, slots, context and the cache folder.
        host: The address to listen at.
        port: The port; 0 takes a free one.
        key: What callers must show; a random one where not given.
        on_ready: Called when the server answers, with its address and key.
        died: Called with its last words when it died and is started again, at the same address and key.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: The weights, the package or the memory are missing.
        ModelError: The server does not come up, or dies again and again.
    """
    entry = find_entry(name)
    path = model_path(name, settings.paths.cache)
    options = replace(server_options(entry, path, settings), host=host, port=port)
    server = start_server(options, key=key)
    try:
        on_ready(server, options)
        options = replace(options, port=server.port)
        while True:
            started_s = time.monotonic()
            status = server.wait()
            words = f"the server of {name!r} ended with {status}: {server.last_words()}"
            if time.monotonic() - started_s < LEAST_UPTIME_S:
                raise ModelError(words, remedy="lower model.context_tokens or model.slots if memory is short")
            died(words)
            server.stop()
            server = start_server(options, key=server.key)
    finally:
        server.stop()
