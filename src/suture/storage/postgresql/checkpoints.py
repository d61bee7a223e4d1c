"""LangGraph's checkpoints in PostgreSQL, next to Suture's tables.

This module imports LangGraph and the driver.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.rows import dict_row

from suture.errors import StorageError
from suture.storage.database.connection_options import CLIENT_ENCODING, SCHEMA
from suture.storage.database.store import MIGRATION_LOCK, database_url, format_url
from suture.storage.tuning import CONNECT_TIMEOUT_S, LOCK_POLL_S, MIGRATION_POLL_S, RECONNECT_TIMEOUT_S

Connect = Callable[[], Awaitable[psycopg.AsyncConnection[Any]]]
ResultT = TypeVar("ResultT")


class ReconnectingSaver(AsyncPostgresSaver):
    """A checkpointer that opens a lost connection again and repeats the operation.

    Repeating is safe: an operation either reads, or writes rows with the same keys and values again.
    """

    conn: psycopg.AsyncConnection[Any]

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], connect: Connect, serializer: SerializerProtocol
    ) -> None:
        super().__init__(connection, serde=serializer)
        self._connect = connect

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return one checkpoint, as LangGraph does."""
        return await self._with_reconnection(lambda: AsyncPostgresSaver.aget_tuple(self, config))

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint, as LangGraph does."""
        return await self._with_reconnection(
            lambda: AsyncPostgresSaver.aput(self, config, checkpoint, metadata, new_versions)
        )

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written, as LangGraph does."""
        await self._with_reconnection(
            lambda: AsyncPostgresSaver.aput_writes(self, config, writes, task_id, task_path)
        )

    async def _with_reconnection(self, operate: Callable[[], Awaitable[ResultT]]) -> ResultT:
        connection = self.conn
        try:
            return await operate()
        except psycopg.OperationalError:
            if not connection.closed:
                raise
        async with self.lock:
            if (
                self.conn is connection
            ):  # of several operations that failed together, the first one reconnects
                self.conn = await self._reconnect()
        return await operate()

    async def _reconnect(self) -> psycopg.AsyncConnection[Any]:
        deadline_s = time.monotonic() + RECONNECT_TIMEOUT_S
        while True:
            try:
                return await self._connect()
            except psycopg.OperationalError:  # the server is restarting
                if time.monotonic() >= deadline_s:
                    raise
            await asyncio.sleep(LOCK_POLL_S)


@asynccontextmanager
async def open_postgresql_checkpointer(
    url: str, serializer: SerializerProtocol
) -> AsyncIterator[AsyncPostgresSaver]:
    """Open the checkpoints of a PostgreSQL that has Suture's tables; raises as `open_checkpointer`."""
    address = database_url(url, Path())
    conninfo = address.set(drivername="postgresql").render_as_string(hide_password=False)

    def connect() -> Awaitable[psycopg.AsyncConnection[Any]]:
        return psycopg.AsyncConnection.connect(
            conninfo,
            autocommit=True,  # this and the next two as in LangGraph's own `from_conn_string`
            prepare_threshold=0,
            row_factory=dict_row,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="suture",
            client_encoding=CLIENT_ENCODING,
            options=f"-csearch_path={SCHEMA},public",
        )

    try:
        saver = ReconnectingSaver(await connect(), connect, serializer)
        try:
            await _lock_migrations(saver.conn)
            await saver.setup()
            await saver.conn.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))
            yield saver
        finally:
            await saver.conn.close()
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
