"""The embedded server for anything else: at an address of the user's choice, for as long as they want it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from suture.core.settings.schema import Settings
from suture.errors import ModelError
from suture.models.embedded.server import LlamaServer, ServerOptions, start_server
from suture.models.embedded.serving import server_options
from suture.models.weights.cache import model_path
from suture.models.weights.catalogue import find_entry

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
