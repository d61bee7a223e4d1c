"""What the model name `auto` stands for: the first model that this machine can use free of charge.

The order is:

1. The embedded model if its weights are here: the default one first, then the others of the catalogue.
2. A model of an Ollama server that answers at its address: one for code first, then the first in its list.
3. The embedded default in any case; opening it explains how to download its weights.

A key in the environment does not count: it does not mean that the user wants to send code away or to spend
money. Such a provider is used only when it is named.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

from suture.core.settings.schema import ProfileSettings, Settings
from suture.models.chat_model import NO_MODEL
from suture.models.providers.connections import mask_credentials
from suture.models.providers.ollama_server import list_ollama_models
from suture.models.providers.registry import PROVIDERS
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
    names = list_ollama_models(address)
    address = mask_credentials(address)  # from here on it is only displayed
    if names is None:
        return DetectedModel(label=label, detail=f"no server answers at {address}")
    if not names:
        return DetectedModel(label=label, detail=f"it answers at {address} and has no model")
    name = next((name for name in names if "code" in name.lower()), names[0])
    return DetectedModel(label=label, model=f"ollama:{name}", detail=f"it answers at {address}")
