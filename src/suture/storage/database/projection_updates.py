"""Rows written to the database: of a run that has ended, of all that were not read yet, of all anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, delete, func, select, text

from suture.core.ledger import RunFolder, list_runs
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.storage.database.projections import RunRows, rows_of
from suture.storage.database.store import Store, store_of
from suture.storage.database.tables import METADATA, OF_RUNS, SEARCHED, approvals, iterations, metrics, tasks

log = logging.getLogger("suture.storage.database")
GOING_ON = ("running", "waiting")
"""Outcomes that may be old although the ledger has not grown: a process that was killed says nothing."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What was brought into the database.

    Attributes:
        runs: How many runs were read.
        up_to_date: How many needed no reading.
    """

    runs: int
    up_to_date: int


def record_run(settings: Settings, run: RunFolder) -> None:
    """Bring a run that has ended into the database; a database that fails costs a warning, never the run."""
    try:
        with store_of(settings) as store:
            write_rows(store, [rows_of(run)])
    except (SutureError, OSError) as fault:
        log.warning("run %s is not in the database yet: %s", run.id, fault)


def write_rows(store: Store, rows: Iterable[RunRows]) -> None:
    """Replace what the tables hold of some runs, each in a transaction of its own.

    Raises:
        StorageError: The database failed; the run's rows are then as they were.
    """
    for of_run in rows:
        with store.writing() as connection:
            _replace(connection, of_run)


def _replace(connection: Connection, rows: RunRows) -> None:
    if connection.dialect.name == "postgresql":  # two that write the same run do so one after the other
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(rows.run_id, 0))))
    whose = {"namespace": rows.namespace, "run_id": rows.run_id}
    for table in OF_RUNS:
        of_this_run = (table.c.namespace == rows.namespace, table.c.run_id == rows.run_id)
        connection.execute(delete(table).where(*of_this_run))
    connection.execute(tasks.insert(), {**whose, **rows.task})
    several: tuple[tuple[Table, tuple[dict[str, object], ...]], ...] = (
        (iterations, rows.iterations),
        (metrics, rows.metrics),
        (approvals, rows.approvals),
    )
    for table, found in several:
        if found:
            connection.execute(table.insert(), [{**whose, **row} for row in found])


def catch_up(store: Store, home: Path) -> Recorded:
    """Read the ledgers that have grown since they were last read, and those that were never read.

    Raises:
        StorageError: The database failed.
    """
    with store.reading() as connection:
        found = connection.execute(select(tasks.c.run_id, tasks.c.ledger_bytes, tasks.c.outcome))
        known = {row.run_id: (row.ledger_bytes, row.outcome) for row in found}
    runs = list_runs(home)
    old = [run for run in runs if _is_old(run, *known.get(run.id, (-1, "")))]
    write_rows(store, map(rows_of, old))
    return Recorded(runs=len(old), up_to_date=len(runs) - len(old))


def _is_old(run: RunFolder, ledger_bytes: int, outcome: str) -> bool:
    return outcome in GOING_ON or run.ledger_path.stat().st_size != ledger_bytes


def rebuild(store: Store, home: Path) -> Recorded:
    """Make the rows of all runs of this machine anew; rows of runs whose ledgers lie elsewhere stay.

    Raises:
        StorageError: The database failed.
    """
    runs = list_runs(home)
    write_rows(store, map(rows_of, runs))
    return Recorded(runs=len(runs), up_to_date=0)


def row_counts(store: Store) -> dict[str, int]:
    """How many rows each table holds of the store's namespace."""
    with store.reading() as connection:
        return {
            name: connection.execute(
                select(func.count()).select_from(table).where(table.c.namespace == store.namespace)
            ).scalar_one()
            for name, table in METADATA.tables.items()
            if "namespace" in table.c
        }


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
    from suture.storage.database.tables import storable

    return storable(value) if isinstance(value, str) else value
