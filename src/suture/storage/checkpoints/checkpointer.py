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


@asynccontextmanager
async def open_checkpointer(location: Path | str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoint database, and create it if it is missing; yield a checkpointer for this event loop only.

    Args:
        location: The SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StorageError: The file cannot be opened, is not a database, or is damaged; the disk is full; the server
            cannot be reached; or a state holds something other than plain JSON values. It is also raised when
            that happens while the database is in use.
    """
    # Importing LangGraph takes a second, which commands such as `--help` must not pay.
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serializer = JsonOnlySerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
    if isinstance(location, str):
        from suture.storage.postgresql.checkpoints import open_postgresql_checkpointer

        async with open_postgresql_checkpointer(location, serializer) as checkpointer:
            yield checkpointer
        return
    import aiosqlite

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
            saver = ValidatingCheckpointer(connection, serde=serializer, file=str(location))
            await saver.setup()  # done here so that a bad file is reported at once
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
            _require_json_value(obj, "state")
        try:
            return self._inner.dumps_typed(obj)
        except (TypeError, ValueError) as fault:  # such as an int beyond 64 bits
            raise StorageError(f"a state cannot be checkpointed: {fault}") from fault

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialise as LangGraph does."""
        return self._inner.loads_typed(data)


def _require_json_value(value: Any, path: str) -> None:
    cls = type(value)
    if value is None or cls in (bool, int, float):
        return
    if cls is str:
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise StorageError(f"{path} contains a lone surrogate, which would be stored as `?`")
    elif cls is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise StorageError(f"{path} has a key {key!r} that is not a string")
            _require_json_value(item, f"{path}[{key!r}]")
    elif cls is list:
        for index, item in enumerate(value):
            _require_json_value(item, f"{path}[{index}]")
    elif cls is tuple and value and all(_is_graph_type(item) for item in value):
        for item in value:  # LangGraph stores interrupts as a tuple; any other would come back as a list
            _require_json_value(item, path)
    elif _is_graph_type(value):
        _require_json_value(value.arg if cls.__name__ == "Send" else value.value, f"{path}.{cls.__name__}")
    else:
        raise StorageError(
            f"{path} is a {cls.__module__}.{cls.__qualname__}, not a plain JSON value",
            remedy="turn it into plain values with `encode_record`, or keep its hash",
        )


def _is_graph_type(value: Any) -> bool:
    cls = type(value)
    return cls.__module__ == "langgraph.types" and cls.__name__ in ("Send", "Interrupt", "Overwrite")
