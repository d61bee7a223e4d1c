"""What an Ollama server says about its models: which it has, and how long their contexts are.

Ollama cuts a longer prompt at its beginning without an error, so Suture must know the context that is in force.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from suture.core.settings.schema import Settings
from suture.models.profiles import find_profile
from suture.models.profiles.model_profile import override_context_tokens
from suture.models.providers.connections import is_loopback
from suture.models.tuning import MAX_OLLAMA_ANSWER_BYTES, MIN_OLLAMA_CONTEXT_TOKENS, OLLAMA_TIMEOUT_S

CONFIGURED_CONTEXT = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
"""The context size in the parameters of a model's file."""


def list_ollama_models(address: str) -> list[str] | None:
    """Return the models of an Ollama server, newest first, or `None` if there is no such server."""
    answer = _request_json(address, "/api/tags")
    try:
        return [str(model["name"]) for model in answer["models"]]
    except (KeyError, TypeError):
        return None


def apply_served_context(settings: Settings, name: str, address: str) -> Settings:
    """Return the settings with the context size that an Ollama model gets.

    That is the size of the settings. If they name none, it is the `num_ctx` of the model's file. It is never more
    than the model was trained with, because the server would silently use that instead.

    Args:
        settings: The settings of the run.
        name: The model, as `ollama:NAME`.
        address: The server; if it does not answer, the size of the settings remains.
    """
    wanted_tokens = find_profile(name, settings).context_tokens
    assert wanted_tokens is not None  # `find_profile` gives Ollama's models the size of the settings
    configured_tokens, trained_tokens = _read_context_sizes(address, name.partition(":")[2])
    own_profile = settings.model.profiles.get(name)
    is_set = (
        "context_tokens" in settings.model.model_fields_set
        or settings.model.profile.context_tokens is not None
        or (own_profile is not None and own_profile.context_tokens is not None)
    )
    if configured_tokens is not None and not is_set:
        wanted_tokens = configured_tokens
    return override_context_tokens(settings, name, min(wanted_tokens, trained_tokens or wanted_tokens))


def _read_context_sizes(address: str, model: str) -> tuple[int | None, int | None]:
    """Return `(num_ctx of the model's file, context of its training)` in tokens; `None` for what is not known."""
    answer = _request_json(address, "/api/show", {"model": model})
    if not isinstance(answer, Mapping):
        return None, None
    configured = CONFIGURED_CONTEXT.search(str(answer.get("parameters", "")))
    info = answer.get("model_info")
    architecture = info.get("general.architecture") if isinstance(info, Mapping) else None
    trained = info.get(f"{architecture}.context_length") if isinstance(info, Mapping) else None
    return _plausible_size(int(configured[1]) if configured else None), _plausible_size(trained)


def _plausible_size(tokens: object) -> int | None:
    """Return a context size that a server states, or `None` if no prompt would fit into it."""
    return tokens if isinstance(tokens, int) and tokens >= MIN_OLLAMA_CONTEXT_TOKENS else None


def _request_json(address: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON value at a path of a server, or `None` if it gives none in time.

    The request runs in a thread because a server may send its headers arbitrarily slowly, which httpx's timeouts
    do not bound.

    Args:
        address: The server's base URL.
        path: The path below it.
        body: The JSON body of a POST; `None` for a GET.
    """
    import httpx

    answers: list[Any] = []

    def request() -> None:
        method, url = "GET" if body is None else "POST", f"{address.rstrip('/')}{path}"
        content = b""
        # A `RuntimeError` (of which `RecursionError` is one) means that the client was closed meanwhile.
        with contextlib.suppress(httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError):
            with client.stream(method, url, json=body, headers={"accept-encoding": "identity"}) as response:
                response.raise_for_status()
                for chunk in response.iter_raw():  # not decompressed: a compressed body is rejected as JSON
                    content += chunk
                    if len(content) > MAX_OLLAMA_ANSWER_BYTES:
                        return
            answers.append(json.loads(content))

    with (
        contextlib.suppress(ValueError),  # of httpx, for a proxy variable that it does not understand
        httpx.Client(timeout=OLLAMA_TIMEOUT_S, trust_env=not is_loopback(address)) as client,
    ):
        thread = threading.Thread(target=request, daemon=True)
        thread.start()
        thread.join(OLLAMA_TIMEOUT_S)  # closing the client ends an unfinished request
    return answers[0] if answers else None
