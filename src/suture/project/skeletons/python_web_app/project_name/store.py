"""Keep the entries of a resource in a table of an SQLite database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

COLUMN_TYPES = {int: "INTEGER", bool: "INTEGER", float: "REAL", str: "TEXT"}
Entry = dict[str, Any]


class Table:
    """The table of one resource. Values of other types than `COLUMN_TYPES` are kept as JSON.

    Args:
        database: Path of the SQLite file.
        name: Name of the table.
        types: Name of each column -> type of its values.
    """

    def __init__(self, database: str, name: str, types: Mapping[str, type]) -> None:
        self._database, self._types = database, types
        self._name = f'"{name}"'
        columns = "".join(f', "{column}" {COLUMN_TYPES.get(kind, "TEXT")}' for column, kind in types.items())
        with self._connect() as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._name} (id INTEGER PRIMARY KEY{columns})")

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._database)
        connection.row_factory = sqlite3.Row
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def list_entries(self) -> list[Entry]:
        """Return all entries, the oldest first."""
        with self._connect() as connection:
            return [self._decode(row) for row in connection.execute(f"SELECT * FROM {self._name} ORDER BY id")]

    def find_entry(self, number: int) -> Entry | None:
        """Return the entry with this id; `None` if there is none."""
        with self._connect() as connection:
            row = connection.execute(f"SELECT * FROM {self._name} WHERE id = ?", (number,)).fetchone()
        return self._decode(row) if row is not None else None

    def save_entry(self, values: Mapping[str, Any], number: int | None = None) -> Entry:
        """Add an entry, or replace the one with this id; return it."""
        names = ["id", *self._types]
        row = [number, *(self._encode(values[name], kind) for name, kind in self._types.items())]
        columns = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join("?" for _ in names)
        with self._connect() as connection:
            statement = f"INSERT OR REPLACE INTO {self._name} ({columns}) VALUES ({marks})"
            number = connection.execute(statement, row).lastrowid
        return {"id": number, **{name: values[name] for name in self._types}}

    def delete_entry(self, number: int) -> bool:
        """Delete an entry; return whether there was one."""
        with self._connect() as connection:
            return connection.execute(f"DELETE FROM {self._name} WHERE id = ?", (number,)).rowcount > 0

    @staticmethod
    def _encode(value: Any, kind: type) -> Any:
        return value if kind in COLUMN_TYPES or value is None else json.dumps(value)

    def _decode(self, row: sqlite3.Row) -> Entry:
        entry: Entry = {"id": row["id"]}
        for name, kind in self._types.items():
            value = row[name]
            if value is not None and kind is bool:
                value = bool(value)
            elif value is not None and kind not in COLUMN_TYPES:
                value = json.loads(value)
            entry[name] = value
        return entry
