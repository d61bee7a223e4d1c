"""What the model name `auto` stands for: the first model that this machine can use free of charge.

The order is:

1. The embedded model if its weights are here: the default one first, then the others of the catalogue.
2. A model of an Ollama server that answers at its address: one for code first, then the first in its list.
3. The embedded default in any case; opening it explains how to download its weights.

A key in the environment does not count: it does not mean that the user wants to send code away or to spend
money. Such a provider is used only when it is named.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from suture.core.settings.schema import ProfileSettings, Settings
from suture.models.chat_model import NO_MODEL
from suture.models.providers.connections import is_loopback, mask_credentials
from suture.models.providers.registry import PROVIDERS
from suture.models.tuning import MAX_OLLAMA_LISTING_BYTES, OLLAMA_DETECTION_TIMEOUT_S
from suture.models.weights.model_catalogue import CATALOGUE
from suture.models.weights.weights_cache import list_cached_models

AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class DetectedModel:
    """The result of looking in one place for a model.

    Attributes:
        label: The place, for people.
        model: `provider:model` if a model was found there, else empty.
        detail: What was found, for people.
    """

    label: str
    model: str = ""
    detail: str


def choose_model(settings: Settings) -> tuple[str, str]:
    """Return the model that the settings mean, as `provider:model`, and a short reason for people."""
    name = settings.model.name
    if name != AUTO:
        return name, "as set"
    detected = next((place for place in detect_models(settings) if place.model), None)
    if detected is not None:
        return detected.model, f"found: {detected.detail}"
    return f"local:{next(iter(CATALOGUE))}", "the default; nothing else was found"


def resolve_auto_model(settings: Settings, model_name: str | None = None) -> Settings:
    """Return the settings with a concrete model name: `model_name`, or what `auto` stands for.

    `model.base_url` was written (and checked against sending a key to the wrong server) for the provider in
    `model.name`, where `auto` may become Ollama. A model of another provider does not inherit it.
    """
    name = model_name or choose_model(settings)[0]
    old_provider = settings.model.name.partition(":")[0]
    new_provider = name.partition(":")[0]
    update: dict[str, object] = {"name": name}
    if settings.model.name not in (name, AUTO, NO_MODEL):
        update["profile"] = ProfileSettings()  # it describes another model
    if new_provider != old_provider and (old_provider, new_provider) != (AUTO, "ollama"):
        update["base_url"] = None
    return settings.model_copy(update={"model": settings.model.model_copy(update=update)})


def detect_models(settings: Settings) -> Iterator[DetectedModel]:
    """Yield what each place has, in the order of `auto`; a place is inspected when its turn comes."""
    yield _detect_embedded_model(settings)
    yield _detect_ollama_model(settings)


def _detect_embedded_model(settings: Settings) -> DetectedModel:
    label = "embedded model"
    if importlib.util.find_spec("xllamacpp") is None:
        return DetectedModel(label=label, detail="the extra `local` is not installed")
    for cached in list_cached_models(settings.paths.cache):
        if cached.path is not None:
            return DetectedModel(
                label=label, model=f"local:{cached.entry.name}", detail="its weights are here"
            )
    return DetectedModel(label=label, detail=f"no weights in {settings.paths.cache}")


def _detect_ollama_model(settings: Settings) -> DetectedModel:
    label = "ollama"
    if importlib.util.find_spec("langchain_ollama") is None:
        return DetectedModel(label=label, detail="the extra `ollama` is not installed")
    address = settings.model.base_url or PROVIDERS["ollama"].address
    names = _list_ollama_models(address)
    address = mask_credentials(address)  # from here on it is only displayed
    if names is None:
        return DetectedModel(label=label, detail=f"no server answers at {address}")
    if not names:
        return DetectedModel(label=label, detail=f"it answers at {address} and has no model")
    name = next((name for name in names if "code" in name.lower()), names[0])
    return DetectedModel(label=label, model=f"ollama:{name}", detail=f"it answers at {address}")


def _list_ollama_models(address: str) -> list[str] | None:
    """Return the models of an Ollama server, newest first, or `None` if there is no such server.

    The request runs in a thread because a server may send its headers arbitrarily slowly, which httpx's
    timeouts do not bound.
    """
    import httpx

    listings: list[list[str]] = []

    def request_listing() -> None:
        url = f"{address.rstrip('/')}/api/tags"
        body = b""
        # A `RuntimeError` (of which `RecursionError` is one) means that the client was closed meanwhile.
        with contextlib.suppress(
            httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, KeyError, TypeError, RuntimeError
        ):
            with client.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
                response.raise_for_status()
                for chunk in response.iter_raw():  # not decompressed: a compressed body is rejected as JSON
                    body += chunk
                    if len(body) > MAX_OLLAMA_LISTING_BYTES:
                        return
            listings.append([str(model["name"]) for model in json.loads(body)["models"]])

    use_proxy = not is_loopback(address)
    with (
        contextlib.suppress(ValueError),  # of httpx, for a proxy variable that it does not understand
        httpx.Client(timeout=OLLAMA_DETECTION_TIMEOUT_S, trust_env=use_proxy) as client,
    ):
        request = threading.Thread(target=request_listing, daemon=True)
        request.start()
        request.join(OLLAMA_DETECTION_TIMEOUT_S)  # closing the client ends an unfinished request
    return listings[0] if listings else None
