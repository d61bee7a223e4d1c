"""LangGraph's checkpoints in one SQLite file. Only plain JSON values may enter."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import StorageError
from suture.storage.checkpoints.plain_serializer import PlainSerializer

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

LOCK_WAIT_S = 30
"""How long a writer waits for another process that writes the same file."""


@asynccontextmanager
async def open_checkpointer(place: Path | str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoint database, and make it where it is missing.

    Args:
        place: The SQLite file, or the address of a PostgreSQL.

    Yields:
        A checkpointer for `StateGraph.compile`, of this event loop only.

    Raises:
        StorageError: The file cannot be opened, is no database, is another program's, is damaged, the disk is
            full, the server cannot be reached, or a state holds something else than plain JSON values; also
            when that happens while the database is in use.
    """
    if isinstance(place, str):
        from suture.storage.checkpoints.postgresql import open_on_postgresql

        async with open_on_postgresql(place) as shared:
            yield shared
        return
    async with _on_sqlite(place) as saver:
        yield saver


@asynccontextmanager
async def _on_sqlite(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    # LangGraph costs a second to import: nobody pays for it who only asks for `--help`.
    import aiosqlite
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from suture.storage.checkpoints.reading import WaryCheckpointer

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(
            f"the folder of {str(path)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    try:
        with closing(sqlite3.connect(path, timeout=LOCK_WAIT_S)):
            pass  # a file that cannot be opened would leave aiosqlite's thread behind
        async with aiosqlite.connect(path, timeout=LOCK_WAIT_S) as connection:
            serializer = PlainSerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
            saver = WaryCheckpointer(connection, serde=serializer, file=str(path))
            await saver.setup()  # sets WAL too; done here, so that a bad file shows at once
            await saver.require_own_tables()
            yield saver
    except sqlite3.Error as fault:
        raise StorageError(
            f"the checkpoint database {str(path)!r} failed: {fault}", remedy=_remedy(path, fault)
        ) from fault


def _remedy(path: Path, fault: sqlite3.Error) -> str:
    text = str(fault)
    if "full" in text or "disk I/O" in text:
        return "free some disk space, or set SUTURE_HOME to another disk"
    if "locked" in text:
        return "another process holds it; wait for it to end"
    if "not a database" in text or "malformed" in text:
        return f"move {str(path)!r} away; runs keep their ledgers without it"
    return "set SUTURE_HOME to a folder that you can write"
