"""LangGraph's checkpoints, read with care: a row is bytes on a disk, and the file may be anybody's.

It imports LangGraph, which takes a second: only `open_checkpointer` imports it, and late.
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

COLUMNS: Mapping[str, frozenset[str]] = {
    "checkpoints": frozenset(
        (
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "parent_checkpoint_id",
            "type",
            "checkpoint",
            "metadata",
        )
    ),
    "writes": frozenset(
        ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value")
    ),
}
"""What LangGraph reads of its tables; later versions of it add columns."""
PARTS: Mapping[str, type] = {
    **{"id": str, "ts": str, "channel_values": dict, "channel_versions": dict, "versions_seen": dict}
}
"""Of a checkpoint, as LangGraph writes them."""
GARBLED = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, RecursionError)
"""What the readers of MessagePack, JSON and text raise on what they did not write."""


class WaryCheckpointer(AsyncSqliteSaver):
    """A checkpointer that says which file is damaged, where a row of it is.

    Args:
        conn: The open SQLite database.
        serde: Writes and reads the values.
        file: Its file, for people.
    """

    def __init__(self, conn: aiosqlite.Connection, *, serde: SerializerProtocol, file: str) -> None:
        super().__init__(conn, serde=serde)
        self._file = file

    async def require_own_tables(self) -> None:
        """Refuse a database whose tables are not LangGraph's.

        Raises:
            StorageError: Another program made it.
        """
        for table, columns in COLUMNS.items():
            async with self.conn.execute(f"PRAGMA table_info({table})") as rows:
                there = {row[1] async for row in rows}
            if missing := sorted(columns - there):
                raise StorageError(
                    f"{self._file!r} is not Suture's: its table {table!r} has no {missing[0]!r}",
                    remedy=f"move {self._file!r} away, or set SUTURE_HOME to another folder",
                )

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """One checkpoint; raises `StorageError` where its row is damaged."""
        try:
            return _whole(await super().aget_tuple(config))
        except GARBLED as fault:
            raise self._damaged(config, fault) from fault

    async def alist(
        self,
        config: Any,
        *,
        filter: dict[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The checkpoints of a run; raises `StorageError` where a row is damaged."""
        rows: Any = super().alist(config, filter=filter, before=before, limit=limit)
        try:
            # It holds the lock of the connection until it is closed.
            async with aclosing(rows):
                async for found in rows:
                    if (whole := _whole(found)) is not None:
                        yield whole
        except GARBLED as fault:
            raise self._damaged(config, fault) from fault

    def _damaged(self, config: Any, fault: Exception) -> StorageError:
        run = (config or {}).get("configurable", {}).get("thread_id", "?")
        return StorageError(
            f"a checkpoint of run {run} in {self._file!r} is damaged: {type(fault).__name__}: {fault!s:.200}",
            remedy=f"`suture replay {run}` needs none; or move {self._file!r} away: runs keep their ledgers",
        )


def _whole(found: CheckpointTuple | None) -> CheckpointTuple | None:
    """The same, where it is what LangGraph writes.

    Raises:
        ValueError: It is something else.
    """
    if found is None:
        return None
    checkpoint: Any = found.checkpoint
    for part, wanted in PARTS.items():
        if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get(part), wanted):
            raise ValueError(f"it has no {part!r} that is one")
    if not isinstance(found.metadata, dict):
        raise ValueError("its metadata is no mapping")
    return found
