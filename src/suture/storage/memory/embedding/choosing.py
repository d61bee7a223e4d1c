"""From the setting `memory.embedder` to an embedder: a table of hashes, a small model, or a server."""

from __future__ import annotations

from suture.core.settings import Settings
from suture.errors import UsageError
from suture.storage.memory.embedding.contract import Embedder
from suture.storage.memory.embedding.hashed import HashedNgrams
from suture.storage.memory.embedding.minilm import MiniLm
from suture.storage.memory.embedding.served import ServedEmbedder

ADDRESSES = {"openai": "https://api.openai.com/v1", "ollama": "http://127.0.0.1:11434"}
NAMES = "hashed, minilm, openai:MODEL, ollama:MODEL or none"


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that `memory.embedder` names; `None` where memories are found by their words alone.

    Raises:
        UsageError: It names none.
        PrerequisiteError: Its weights are not installed.
    """
    name = settings.memory.embedder
    provider, _, model = name.partition(":")
    if name == "none":
        return None
    if name == "minilm":
        return MiniLm()
    if name == "hashed":
        return HashedNgrams()
    if provider in ADDRESSES and model:
        address = settings.memory.base_url or ADDRESSES[provider]
        key = settings.keys.openai if provider == "openai" else None
        return ServedEmbedder(provider, model, address, key=key.get_secret_value() if key else "")
    raise UsageError(f"memory.embedder names no embedder: {name!r}", remedy=f"one of {NAMES}")
