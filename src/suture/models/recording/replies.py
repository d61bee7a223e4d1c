"""Every reply on disk, by call hash, before anyone uses it; a stored reply is never paid for twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_stored, write_atomically
from suture.errors import ModelError, StorageError
from suture.models.recording.call_hash import call_as_plain, call_hash
from suture.models.recording.source import ReplyMissing, ReplySource, reply_of_record
from suture.models.seam import Message, Model, Reply, Sampling
from suture.models.tokens import count_tokens

MOST_BYTES = 256 * 2**20
"""Of a stored reply with its prompt."""
COUNTING = Sampling(max_tokens=0)
"""A count is kept like a reply without text, so that a replay shrinks its prompts as the run did."""


class RecordedModel:
    """A model whose replies are stored in a run folder and answered from there when asked again.

    Args:
        model: Who answers what is not stored yet.
        replies_dir: Holds one JSON file per call, with the prompt beside the reply; made when first needed.
        source: The replies of another run, asked before the model is.
        or_live: Whether the model is asked for what the source does not hold.
        on_stored: Called when something new is on disk, before anyone uses it.
    """

    def __init__(
        self,
        model: Model,
        replies_dir: Path,
        *,
        source: ReplySource | None = None,
        or_live: bool = False,
        on_stored: Callable[[], None] | None = None,
    ) -> None:
        self.name = model.name
        self.model = model
        self._replies_dir = replies_dir
        self._source = source
        self._or_live = or_live
        self._on_stored = on_stored
        self._locks: dict[str, asyncio.Lock] = {}

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Answer from the store, else ask and store; see `Model.complete`.

        Raises:
            StorageError: A stored reply is damaged, or the disk is full.
            ReplyMissing: The source does not hold the reply, and the model is not to be asked.
            ModelError: The model failed, now or when the source was recorded.
        """
        key = call_hash(self.name, messages, sampling)
        # Two equal calls at once are one call: the second waits and finds the first one's reply.
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = self._load(key)
            if stored is not None:
                return stored
            # The branches of a round reserve their budget before any of them is answered, as they do with
            # a model that takes its time: a replay must decide as the run did.
            await asyncio.sleep(0)
            call = call_as_plain(self.name, messages, sampling)
            try:
                reply = replace(await self._ask(key, messages, sampling), call_hash=key)
            except ModelError as fault:
                said = {"kind": type(fault).__name__, "message": fault.message, "remedy": fault.remedy}
                self._store(f"{key}.fault.json", {**call, "fault": said})
                raise
            self._store(f"{key}.json", {**call, "reply": asdict(reply)})
            return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, from the store or the source; else counted, and stored."""
        key = call_hash(self.name, messages, COUNTING)
        known = self._load(key) or (self._source.find(key) if self._source is not None else None)
        tokens = known.prompt_tokens if known else await count_tokens(self.model, messages)
        if known is None or known.from_run:
            counted = Reply(text="", prompt_tokens=tokens, model=self.name, call_hash=key)
            call = call_as_plain(self.name, messages, COUNTING)
            self._store(f"{key}.json", {**call, "reply": asdict(counted)})
        return tokens

    async def close(self) -> None:
        """Close the model behind it."""
        await self.model.close()

    async def _ask(self, key: str, messages: Sequence[Message], sampling: Sampling) -> Reply:
        if self._source is not None:
            recorded = self._source.find(key)
            if recorded is not None:
                return recorded
            if not self._or_live:
                raise ReplyMissing(self._source, self.name, sampling)
        return await self.model.complete(messages, sampling)

    def _load(self, key: str) -> Reply | None:
        path = self._replies_dir / f"{key}.json"
        try:
            stored = reply_of_record(json.loads(read_stored(path, MOST_BYTES, "the reply"))["reply"])
            return replace(stored, replayed=True, from_run="")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, RecursionError, StorageError) as fault:
            raise StorageError(
                f"the stored reply {str(path)!r} is damaged",
                remedy="delete that file; the model is then asked again",
            ) from fault

    def _store(self, name: str, entry: Mapping[str, Any]) -> None:
        # ASCII only: a lone surrogate in model text must not make the record unwritable.
        write_atomically(self._replies_dir / name, json.dumps(entry, indent=1).encode("ascii"))
        if self._on_stored is not None:
            self._on_stored()
