"""Every reply on disk, by call hash, before anyone uses it; a stored reply is never paid for twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from suture.errors import StorageError
from suture.ledger.run_folder import write_atomically
from suture.models.seam import Message, Model, Reply, Sampling
from suture.records import content_hash

__all__ = ["RecordedModel", "call_hash"]


def call_hash(model: str, messages: Sequence[Message], sampling: Sampling) -> str:
    """Name a call by what was asked of whom: model, messages and sampling, the index included."""
    return content_hash(_call(model, messages, sampling))


def _call(model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [asdict(message) for message in messages],
        "sampling": asdict(sampling),
    }


class RecordedModel:
    """A model whose replies are stored in a run folder and answered from there when asked again.

    Args:
        model: Who answers what is not stored yet.
        replies_dir: Holds one JSON file per call, with the prompt beside the reply; made when first needed.
    """

    def __init__(self, model: Model, replies_dir: Path) -> None:
        self.name = model.name
        self.model = model
        self._replies_dir = replies_dir
        self._locks: dict[str, asyncio.Lock] = {}

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Answer from the store, else ask and store; see `Model.complete`.

        Raises:
            StorageError: A stored reply is damaged, or the disk is full.
            ModelError: The model failed; nothing was stored.
        """
        key = call_hash(self.name, messages, sampling)
        # Two equal calls at once are one call: the second waits and finds the first one's reply.
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = self._load(key)
            if stored is not None:
                return stored
            reply = replace(await self.model.complete(messages, sampling), call_hash=key)
            self._store(key, messages, sampling, reply)
            return reply

    async def close(self) -> None:
        """Close the model behind it."""
        await self.model.close()

    def _load(self, key: str) -> Reply | None:
        path = self._replies_dir / f"{key}.json"
        try:
            return replace(Reply(**json.loads(path.read_bytes())["reply"]), replayed=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as fault:
            raise StorageError(
                f"the stored reply {str(path)!r} is damaged",
                remedy="delete that file; the model is then asked again",
            ) from fault

    def _store(self, key: str, messages: Sequence[Message], sampling: Sampling, reply: Reply) -> None:
        entry = {**_call(self.name, messages, sampling), "reply": asdict(reply)}
        # ASCII only: a lone surrogate in model text must not make the record unwritable.
        write_atomically(self._replies_dir / f"{key}.json", json.dumps(entry, indent=1).encode("ascii"))
