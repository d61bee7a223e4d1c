"""Opening LangGraph's checkpoints. They may hold only plain JSON values."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import StorageError
from suture.storage.tuning import CHECKPOINT_LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


class JsonOnlySerializer:
    """Refuses values that would be read back as something else.

    LangGraph's own serializer writes any dataclass, and in strict mode reads it back as a bare dict.
    """

    def __init__(self, inner: SerializerProtocol) -> None:
        self._inner = inner

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise as LangGraph does; raise `StorageError` for anything but plain JSON values."""
        # A top-level exception is how LangGraph records a failed node; it is stored as its repr.
        if not isinstance(obj, BaseException):
            _require_plain(obj, "state")
        try:
            return self._inner.dumps_typed(obj)
        except (TypeError, ValueError) as fault:  # such as an int beyond 64 bits
            raise StorageError(f"a state cannot be checkpointed: {fault}") from fault

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialise as LangGraph does."""
        return self._inner.loads_typed(data)


def _require_plain(value: Any, where: str) -> None:
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return
    if kind is str:
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise StorageError(f"{where} contains a lone surrogate, which would be stored as `?`")
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise StorageError(f"{where} has a key {key!r} that is not a string")
            _require_plain(item, f"{where}[{key!r}]")
    elif kind is list:
        for index, item in enumerate(value):
            _require_plain(item, f"{where}[{index}]")
    elif kind is tuple and value and all(_is_graph_type(item) for item in value):
        for item in value:  # LangGraph stores interrupts as a tuple; any other would come back as a list
            _require_plain(item, where)
    elif _is_graph_type(value):
        _require_plain(value.arg if kind.__name__ == "Send" else value.value, f"{where}.{kind.__name__}")
    else:
        raise StorageError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, not a plain JSON value",
            remedy="turn it into plain values with `encode_record`, or keep its hash",
        )


def _is_graph_type(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "langgraph.types" and kind.__name__ in ("Send", "Interrupt", "Overwrite")


@asynccontextmanager
async def open_checkpointer(place: Path | str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoint database, and create it if it is missing.

    Args:
        place: The SQLite file, or the URL of a PostgreSQL database.

    Yields:
        A checkpointer for `StateGraph.compile`, for this event loop only.

    Raises:
        StorageError: The file cannot be opened, is not a database, belongs to another program, or is damaged;
            the disk is full; the server cannot be reached; or a state holds something other than plain JSON
            values. It is also raised when that happens while the database is in use.
    """
    if isinstance(place, str):
        from suture.storage.postgresql.checkpoints import open_postgresql_checkpointer

        async with open_postgresql_checkpointer(place) as shared:
            yield shared
        return
    async with _open_sqlite(place) as saver:
        yield saver


@asynccontextmanager
async def _open_sqlite(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    # Importing LangGraph takes a second, which commands such as `--help` must not pay.
    import aiosqlite
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from suture.storage.checkpoints.sqlite_checkpointer import ValidatingCheckpointer

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(
            f"the folder of {str(path)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    try:
        with closing(sqlite3.connect(path, timeout=CHECKPOINT_LOCK_TIMEOUT_S)):
            pass  # if the file cannot be opened, aiosqlite would leave its thread behind
        async with aiosqlite.connect(path, timeout=CHECKPOINT_LOCK_TIMEOUT_S) as connection:
            serializer = JsonOnlySerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
            saver = ValidatingCheckpointer(connection, serde=serializer, file=str(path))
            await saver.setup()  # done here so that a bad file is reported at once
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
