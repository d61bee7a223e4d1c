"""LangGraph's SQLite checkpointer with validation, because the file may be damaged.

This module imports LangGraph, which takes a second, so only `open_checkpointer` imports it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from suture.errors import StorageError

CHECKPOINT_FIELDS: Mapping[str, type] = {
    "id": str,
    "ts": str,
    "channel_values": dict,
    "channel_versions": dict,
    "versions_seen": dict,
}
"""The fields of a checkpoint, as LangGraph writes them."""
DECODE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, RecursionError)
"""Exceptions of the MessagePack, JSON and text decoders on data that they did not write."""


class ValidatingCheckpointer(AsyncSqliteSaver):
    """A checkpointer that reports a damaged row with the run and with `file`, the database file."""

    def __init__(self, conn: aiosqlite.Connection, *, serde: SerializerProtocol, file: str) -> None:
        super().__init__(conn, serde=serde)
        self._file = file

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return one checkpoint; raise `StorageError` if its row is damaged."""
        try:
            return _validate(await super().aget_tuple(config))
        except DECODE_ERRORS as fault:
            raise self._damage_error(config, fault) from fault

    async def alist(
        self,
        config: Any,
        *,
        filter: dict[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the checkpoints of a run; raise `StorageError` if a row is damaged."""
        rows: Any = super().alist(config, filter=filter, before=before, limit=limit)
        try:
            # The iterator holds the connection's lock until it is closed.
            async with aclosing(rows):
                async for row in rows:
                    if (checkpoint := _validate(row)) is not None:
                        yield checkpoint
        except DECODE_ERRORS as fault:
            raise self._damage_error(config, fault) from fault

    def _damage_error(self, config: Any, fault: Exception) -> StorageError:
        run = (config or {}).get("configurable", {}).get("thread_id", "?")
        return StorageError(
            f"a checkpoint of run {run} in {self._file!r} is damaged: {type(fault).__name__}: {fault!s:.200}",
            remedy=f"`suture replay {run}` needs none; or move {self._file!r} away: runs keep their ledgers",
        )


def _validate(row: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return the row if its checkpoint has the form that LangGraph writes; otherwise raise `ValueError`."""
    if row is None:
        return None
    checkpoint: Any = row.checkpoint
    for name, cls in CHECKPOINT_FIELDS.items():
        if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get(name), cls):
            raise ValueError(f"it has no valid {name!r}")
    if not isinstance(row.metadata, dict):
        raise ValueError("its metadata is not a mapping")
    return row
