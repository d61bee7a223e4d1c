"""LangGraph's checkpoints in PostgreSQL, beside Suture's tables.

This module imports LangGraph and the driver.
"""

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
from suture.storage.checkpoints.json_only_serializer import JsonOnlySerializer
from suture.storage.database.store import CLIENT_ENCODING, MIGRATION_LOCK, SCHEMA, database_url, format_url
from suture.storage.tuning import CONNECT_TIMEOUT_S, MIGRATION_POLL_S


@asynccontextmanager
async def open_postgresql_checkpointer(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    """Open the checkpoints of a PostgreSQL that has Suture's tables; raises as `open_checkpointer`."""
    address = database_url(url, Path())
    conninfo = address.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        async with await psycopg.AsyncConnection.connect(
            conninfo,
            autocommit=True,  # this and the next two as in LangGraph's own `from_conn_string`
            prepare_threshold=0,
            row_factory=dict_row,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="suture",
            client_encoding=CLIENT_ENCODING,
            options=f"-csearch_path={SCHEMA},public",
        ) as connection:
            serializer = JsonOnlySerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
            saver = AsyncPostgresSaver(connection, serde=serializer)
            await _lock_migrations(connection)
            await saver.setup()
            await connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))
            yield saver
    except psycopg.Error as fault:
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
        raise StorageError(
            f"the checkpoints in {format_url(address)} failed: {reason}",
            remedy="check that it runs and that store.url is right; then `suture resume` continues",
        ) from fault


async def _lock_migrations(connection: psycopg.AsyncConnection[Any]) -> None:
    """Take the migration lock by polling.

    A connection that waited for the lock inside the database would hold a snapshot open. The indexes that
    LangGraph creates concurrently wait for all snapshots to end; PostgreSQL detects a deadlock and ends one
    of the two.
    """
    while True:
        result = await connection.execute("SELECT pg_try_advisory_lock(%s) AS taken", (MIGRATION_LOCK,))
        row = await result.fetchone()
        if row is not None and row["taken"]:
            return
        await asyncio.sleep(MIGRATION_POLL_S)
