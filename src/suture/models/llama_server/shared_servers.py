"""Servers that this process starts, sized to this machine.

Model objects share one server per model; `serve_model` runs a server for other programs.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from suture.core.settings.schema import Settings
from suture.errors import ModelError, PrerequisiteError
from suture.models.llama_server.server_process import LlamaServer, LlamaServerOptions, start_llama_server
from suture.models.llama_server.thread_calibration import calibrate_threads, read_threads
from suture.models.tuning import (
    MAX_PROMPT_CACHE_BYTES,
    MAX_SERVER_SLOTS,
    MIN_SERVER_UPTIME_S,
    SERVER_WORKING_BYTES,
    THREADS_PER_SLOT,
)
from suture.models.weights.weights_cache import CatalogueEntry, find_catalogue_entry, model_path

_servers: dict[tuple[str, int], LlamaServer] = {}
_servers_lock = threading.Lock()


def required_memory_bytes(entry: CatalogueEntry, context_tokens: int, slots: int) -> int:
    """Return the memory to serve a model: weights, the attention cache of all slots, and working space."""
    return entry.size_bytes + entry.kv_bytes_per_token * context_tokens * slots + SERVER_WORKING_BYTES


def useful_slots(threads: int) -> int:
    """Return how many replies are worth generating in parallel with a number of threads."""
    return max(1, min(MAX_SERVER_SLOTS, threads // THREADS_PER_SLOT))


def affordable_slots(
    entry: CatalogueEntry, context_tokens: int, available_bytes: int, *, max_slots: int
) -> int:
    """Return how many parallel replies fit into the available memory, at most `max_slots` and at least one."""
    for slots in range(max_slots, 0, -1):
        if required_memory_bytes(entry, context_tokens, slots) <= available_bytes:
            return slots
    raise _memory_error(entry, context_tokens, 1, available_bytes, "take a smaller model")


def size_server(
    entry: CatalogueEntry, path: Path, settings: Settings, *, free_bytes: int | None = None
) -> LlamaServerOptions:
    """Return server options for this machine; the thread count is measured once unless a setting fixes it.

    Args:
        settings: Threads, slots, context, and the cache folder.
        free_bytes: Available memory; the machine's by default.

    Raises:
        PrerequisiteError: There is too little memory; nothing was loaded.
    """
    import psutil  # type: ignore[import-untyped]  # ships no type information

    context_tokens = settings.model.context_tokens
    if free_bytes is None:
        free_bytes = int(psutil.virtual_memory().available)
    min_slots = settings.model.slots or 1
    if required_memory_bytes(entry, context_tokens, min_slots) > free_bytes:
        remedy = "lower model.slots" if min_slots > 1 else "take a smaller model"
        raise _memory_error(entry, context_tokens, min_slots, free_bytes, remedy)
    if settings.model.threads is not None:
        threads = batch_threads = settings.model.threads
    else:
        threads, batch_threads = read_threads(path, settings.paths.cache)
    slots = settings.model.slots or affordable_slots(
        entry, context_tokens, free_bytes, max_slots=useful_slots(threads)
    )
    spare_bytes = free_bytes - required_memory_bytes(entry, context_tokens, slots)
    return LlamaServerOptions(
        model_path=path,
        context_tokens=context_tokens,
        slots=slots,
        threads=threads,
        batch_threads=batch_threads,
        cache_mb=min(MAX_PROMPT_CACHE_BYTES, spare_bytes // 4) >> 20,
    )


def get_shared_server(entry: CatalogueEntry, path: Path, settings: Settings) -> LlamaServer:
    """Return this process's server of a model, starting it if it does not run."""
    key = (str(path), settings.model.context_tokens)
    with _servers_lock:
        server = _servers.get(key)
        if server is not None and server.alive:
            return server
        if server is not None:
            server.stop()  # it is dead; this closes its pipes
        _servers[key] = start_llama_server(size_server(entry, path, settings))
        return _servers[key]


def list_shared_servers() -> tuple[LlamaServer, ...]:
    """Return the servers that this process has started."""
    with _servers_lock:
        return tuple(_servers.values())


@atexit.register
def stop_shared_servers() -> None:
    """End all servers of this process; the next call starts them again."""
    with _servers_lock:
        while _servers:
            _servers.popitem()[1].stop()


def _memory_error(
    entry: CatalogueEntry, context_tokens: int, slots: int, free_bytes: int, last_remedy: str
) -> PrerequisiteError:
    needed_mb = required_memory_bytes(entry, context_tokens, slots) >> 20
    replies = "" if slots == 1 else f" for {slots} replies at once"
    return PrerequisiteError(
        f"{entry.name!r} needs {needed_mb} MiB of memory{replies} and {free_bytes >> 20} MiB are free",
        remedy=f"close other programs, lower model.context_tokens, or {last_remedy}",
    )


def serve_model(
    name: str,
    settings: Settings,
    *,
    host: str,
    port: int,
    key: str | None = None,
    on_ready: Callable[[LlamaServer, LlamaServerOptions], None],
    on_restart: Callable[[str], None],
) -> None:
    """Serve a model over OpenAI's protocol until this process is stopped; a server that dies is restarted.

    Args:
        settings: Threads, slots, context and the cache folder.
        host: The address to listen on.
        port: The port; 0 chooses a free one.
        key: The API key that callers must send; random by default.
        on_ready: Called when the server answers.
        on_restart: Called with the reason when the server died and is restarted at the same address and key.

    Raises:
        ModelError: The server does not start, or dies repeatedly.
    """
    entry = find_catalogue_entry(name)
    path = model_path(name, settings.paths.cache)
    if settings.model.threads is None:
        calibrate_threads(path, settings.paths.cache)
    options = replace(size_server(entry, path, settings), host=host, port=port)
    server = start_llama_server(options, key=key)
    try:
        on_ready(server, options)
        options = replace(options, port=server.port)
        while True:
            started_s = time.monotonic()
            status = server.wait()
            message = f"the server of {name!r} ended with {status}: {server.stderr_tail()}"
            if time.monotonic() - started_s < MIN_SERVER_UPTIME_S:
                raise ModelError(
                    message, remedy="lower model.context_tokens or model.slots if memory is short"
                )
            on_restart(message)
            server.stop()
            server = start_llama_server(options, key=server.key)
    finally:
        server.stop()
