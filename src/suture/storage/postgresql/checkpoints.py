"""LangGraph's checkpoints on PostgreSQL, beside the tables of ours. It imports LangGraph and the driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.rows import dict_row

from suture.errors import StorageError
from suture.storage.checkpoints.checkpointer import PlainSerializer
from suture.storage.database.store import (
    CONNECT_WAIT_S,
    MIGRATION_LOCK,
    SCHEMA,
    TEXTS,
    database_url,
    shown_url,
)

PAUSE_S = 0.1


@asynccontextmanager
async def open_on_postgresql(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    """Open the checkpoints of a PostgreSQL that has Suture's tables; raises as `open_checkpointer`."""
    address = database_url(url, Path())
    conninfo = address.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        async with await psycopg.AsyncConnection.connect(
            conninfo,
            autocommit=True,
            prepare_threshold=0,
            row_factory=dict_row,
            connect_timeout=CONNECT_WAIT_S,
            application_name="suture",
            client_encoding=TEXTS,
            options=f"-csearch_path={SCHEMA},public",
        ) as connection:
            serializer = PlainSerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
            saver = AsyncPostgresSaver(connection, serde=serializer)
            await _take_turn(connection)
            await saver.setup()
            await connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))
            yield saver
    except psycopg.Error as fault:
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
        raise StorageError(
            f"the checkpoints in {shown_url(address)} failed: {reason}",
            remedy="see that it runs and that store.url is right; then `suture resume` goes on",
        ) from fault


async def _take_turn(connection: psycopg.AsyncConnection[Any]) -> None:
    """Take the lock of migrations by asking again and again.

    One who waited for it in the database would have a snapshot open, for whose end the indexes wait that
    LangGraph makes concurrently: PostgreSQL calls that a deadlock, and ends one of the two.
    """
    while True:
        taken = await connection.execute("SELECT pg_try_advisory_lock(%s) AS mine", (MIGRATION_LOCK,))
        row = await taken.fetchone()
        if row is not None and row["mine"]:
            return
        await asyncio.sleep(PAUSE_S)
