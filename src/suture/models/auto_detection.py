"""What `auto` means here: the first of what this machine has, free of charge and without leaving it.

1. The embedded model, where its weights are here: the default one first, then the catalogue's others.
2. An Ollama that answers at its address: a model for code first, then the first that it lists.
3. The embedded default all the same; opening it says how to fetch its weights.

A key in the environment is no wish to send code away, nor to spend: such a provider is used by naming it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suture.core.settings.schema import Settings
from suture.models.providers.connections import is_loopback
from suture.models.providers.registry import PROVIDERS
from suture.models.providers.urls import without_credentials
from suture.models.weights.model_catalogue import CATALOGUE
from suture.models.weights.weights_cache import list_models

if TYPE_CHECKING:
    import httpx


AUTO = "auto"
OLLAMA_PATIENCE_S = 1.0
"""Seconds that detection waits for Ollama's list of models."""
LISTING_BYTES = 4 * 1024 * 1024
"""Of a listing of models; thousands of them have less."""


@dataclass(frozen=True, kw_only=True)
class Detected:
    """One thing that `auto` looks for.

    Attributes:
        what: What was looked for.
        model: `provider:model` where it was found; empty where not.
        detail: What was found on this machine, for people.
    """

    what: str
    model: str = ""
    detail: str


def choose_model(settings: Settings) -> tuple[str, str]:
    """The model that the settings mean, as `provider:model`, and in a few words why that one."""
    name = settings.model.name
    if name != AUTO:
        return name, "as set"
    found = next((seen for seen in detect_models(settings) if seen.model), None)
    if found is not None:
        return found.model, f"found: {found.detail}"
    return f"local:{next(iter(CATALOGUE))}", "the default; nothing else was found"


def with_chosen_model(settings: Settings, given: str | None = None) -> Settings:
    """The settings with a model's name in place of `auto`: the given one, else what `auto` means here.

    `model.base_url` was said, and checked against sending a key astray, for the provider in `model.name`
    (`auto` may become Ollama), so a given model of another provider does not inherit it.
    """
    name = given or choose_model(settings)[0]
    before, now = (text.partition(":")[0] for text in (settings.model.name, name))
    update: dict[str, object] = {"name": name}
    if now != before and (before, now) != (AUTO, "ollama"):
        update["base_url"] = None
    return settings.model_copy(update={"model": settings.model.model_copy(update=update)})


def detect_models(settings: Settings) -> Iterator[Detected]:
    """What `auto` looks for, in its order; each is looked for when its turn comes."""
    yield _embedded(settings)
    yield _ollama(settings)


def _embedded(settings: Settings) -> Detected:
    what = "embedded model"
    if importlib.util.find_spec("xllamacpp") is None:
        return Detected(what=what, detail="the extra `local` is not installed")
    here = [cached.entry.name for cached in list_models(settings.paths.cache) if cached.path is not None]
    if not here:
        return Detected(what=what, detail=f"no weights in {settings.paths.cache}")
    return Detected(what=what, model=f"local:{here[0]}", detail="its weights are here")


def _ollama(settings: Settings) -> Detected:
    what = "ollama"
    if importlib.util.find_spec("langchain_ollama") is None:
        return Detected(what=what, detail="the extra `ollama` is not installed")
    address = settings.model.base_url or PROVIDERS["ollama"].address
    names = _ollama_models(address)
    address = without_credentials(address)  # from here on it is only told
    if names is None:
        return Detected(what=what, detail=f"nobody answers at {address}")
    if not names:
        return Detected(what=what, detail=f"it answers at {address} and has no model")
    best = next((name for name in names if "code" in name.lower()), names[0])
    return Detected(what=what, model=f"ollama:{best}", detail=f"it answers at {address}")


def _ollama_models(address: str) -> list[str] | None:
    """The models of an Ollama server, newest first as it lists them; `None` where there is no such server.

    Asked in a thread, because whoever listens there may let its head drip as long as it likes.
    """
    import httpx

    listed: list[list[str] | None] = []
    proxied = not is_loopback(address)
    with (
        contextlib.suppress(ValueError),
        httpx.Client(timeout=OLLAMA_PATIENCE_S, trust_env=proxied) as client,
    ):
        asking = threading.Thread(target=lambda: listed.append(_listing(client, address)), daemon=True)
        asking.start()
        asking.join(OLLAMA_PATIENCE_S)  # what is not here by then ends with the client
    return listed[0] if listed else None


def _listing(client: httpx.Client, address: str) -> list[str] | None:
    import httpx

    url, plain = f"{address.rstrip('/')}/api/tags", {"accept-encoding": "identity"}
    listing = b""
    try:
        with client.stream("GET", url, headers=plain) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():  # as it comes: what is packed is no listing
                listing += piece
                if len(listing) > LISTING_BYTES:
                    return None
        listed: Any = json.loads(listing)
        return [str(model["name"]) for model in listed["models"]]
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    except RuntimeError:  # the client was closed meanwhile
        return None
