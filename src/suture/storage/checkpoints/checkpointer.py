"""Opening LangGraph's checkpoints. They may hold only plain JSON values."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import StorageError
from suture.storage.checkpoints.json_only_serializer import JsonOnlySerializer
from suture.storage.tuning import CHECKPOINT_LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


@asynccontextmanager
async def open_checkpointer(location: Path | str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoint database, and create it if it is missing; yield a checkpointer for this event loop only.

    Args:
        location: The SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StorageError: The file cannot be opened, is not a database, belongs to another program, or is damaged;
            the disk is full; the server cannot be reached; or a state holds something other than plain JSON
            values. It is also raised when that happens while the database is in use.
    """
    if isinstance(location, str):
        from suture.storage.postgresql.checkpoints import open_postgresql_checkpointer

        async with open_postgresql_checkpointer(location) as checkpointer:
            yield checkpointer
        return
    # Importing LangGraph takes a second, which commands such as `--help` must not pay.
    import aiosqlite
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from suture.storage.checkpoints.sqlite_checkpointer import ValidatingCheckpointer

    try:
        location.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(
            f"the folder of {str(location)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    try:
        with closing(sqlite3.connect(location, timeout=CHECKPOINT_LOCK_TIMEOUT_S)):
            pass  # if the file cannot be opened, aiosqlite would leave its thread behind
        async with aiosqlite.connect(location, timeout=CHECKPOINT_LOCK_TIMEOUT_S) as connection:
            serializer = JsonOnlySerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
            saver = ValidatingCheckpointer(connection, serde=serializer, file=str(location))
            await saver.setup()  # done here so that a bad file is reported at once
            await saver.require_own_tables()
            yield saver
    except sqlite3.Error as fault:
        raise StorageError(
            f"the checkpoint database {str(location)!r} failed: {fault}", remedy=_remedy(location, fault)
        ) from fault


def _remedy(location: Path, fault: sqlite3.Error) -> str:
    text = str(fault)
    if "full" in text or "disk I/O" in text:
        return "free some disk space, or set SUTURE_HOME to another disk"
    if "locked" in text:
        return "another process holds it; wait for it to end"
    if "not a database" in text or "malformed" in text:
        return f"move {str(location)!r} away; runs keep their ledgers without it"
    return "set SUTURE_HOME to a folder that you can write"
