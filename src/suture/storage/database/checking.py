"""Whether a database is sound, and says what the ledgers say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, select, text

from suture.core.ledger import list_runs
from suture.storage.database.database import Store
from suture.storage.database.projecting import RunRows, rows_of
from suture.storage.database.tables import OF_RUNS, SEARCHED, approvals, iterations, metrics, tasks

NOT_FROM_THE_LEDGER = ("id",)
MOST = 50


def findings(store: Store, home: Path) -> list[str]:
    """What is wrong, a line each; empty where nothing is.

    Raises:
        StorageError: The database cannot be read.
    """
    with store.reading() as connection:
        found = [] if store.is_postgresql else _of_the_file(connection)
        for run in list_runs(home):
            wanted = rows_of(run)
            wrong = [table.name for table in OF_RUNS if not _is_there(connection, table, wanted)]
            if wrong:
                found.append(f"run {run.id}: {', '.join(wrong)} differ from its ledger")
            if len(found) >= MOST:
                return [*found, "and maybe more"]
    return found


def _of_the_file(connection: Connection) -> list[str]:
    """SQLite's own checks: of the pages, and of the indexes of words."""
    said = connection.execute(text("PRAGMA quick_check")).scalars()
    found = [f"the file: {line}" for line in said if line != "ok"]
    for table in SEARCHED:
        words = f"{table.name}_words"
        try:
            connection.execute(text(f"INSERT INTO {words}({words}, rank) VALUES ('integrity-check', 1)"))
        except Exception as fault:
            found.append(f"the index {words}: {getattr(fault, 'orig', fault)}")
    return found


def _is_there(connection: Connection, table: Table, wanted: RunRows) -> bool:
    rows = rows_in(connection, table, wanted.namespace, wanted.run_id)
    return rows == sorted((_full(table, row) for row in _of(table, wanted)), key=repr)


def rows_in(connection: Connection, table: Table, namespace: str, run_id: str) -> list[dict[str, Any]]:
    """What a table holds of a run, in an order of its own, without the columns that no ledger decides."""
    whose = (table.c.namespace == namespace, table.c.run_id == run_id)
    found = connection.execute(select(table).where(*whose)).mappings()
    return sorted((_full(table, row) for row in found), key=repr)


def _of(table: Table, rows: RunRows) -> tuple[dict[str, Any], ...]:
    by_table = {tasks: (rows.task,), iterations: rows.iterations, metrics: rows.metrics}
    return {**by_table, approvals: rows.approvals}[table]


def _full(table: Table, row: RowMapping | Mapping[str, Any]) -> dict[str, Any]:
    """A row with every column that a ledger decides; those that it does not name have their default."""
    skipped = (*NOT_FROM_THE_LEDGER, "namespace", "run_id")
    columns = [column for column in table.c if column.name not in skipped]
    return {column.name: _plain(row.get(column.name, _default(column))) for column in columns}


def _default(column: Any) -> Any:
    return column.default.arg if column.default is not None else None


def _plain(value: Any) -> Any:
    from suture.storage.database.column_types import storable

    return storable(value) if isinstance(value, str) else value
