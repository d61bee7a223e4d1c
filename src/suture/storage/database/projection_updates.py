"""Updates of the projections in the database, and the check that they match the ledgers."""

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
from suture.storage.database.projections import RunRows, project_run
from suture.storage.database.store import Store, open_configured_store
from suture.storage.database.tables import (
    METADATA,
    RUN_TABLES,
    SEARCHED_TABLES,
    approvals,
    iterations,
    metrics,
    tasks,
)
from suture.storage.tuning import MAX_FINDINGS

log = logging.getLogger("suture.storage.database")
UNFINISHED_OUTCOMES = ("running", "waiting")
"""States that may be stale although the ledger has not grown: a killed process writes no ending."""


@dataclass(frozen=True, kw_only=True)
class ProjectionUpdate:
    """The result of an update.

    Attributes:
        runs: How many runs were read.
        up_to_date: How many runs needed no reading.
    """

    runs: int
    up_to_date: int


def record_finished_run(settings: Settings, run: RunFolder) -> None:
    """Project a finished run into the database; a database error is only logged and never fails the run."""
    try:
        with open_configured_store(settings) as store:
            write_rows(store, [project_run(run)])
    except (SutureError, OSError) as fault:
        log.warning("run %s is not in the database yet: %s", run.id, fault)


def write_rows(store: Store, rows: Iterable[RunRows]) -> None:
    """Replace the rows of some runs, each run in its own transaction.

    Raises:
        StorageError: The database failed; the run's rows are unchanged.
    """
    for run_rows in rows:
        with store.write_transaction() as connection:
            _replace(connection, run_rows)


def _replace(connection: Connection, rows: RunRows) -> None:
    if connection.dialect.name == "postgresql":  # serialise writers of one run
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(rows.run_id, 0))))
    run_key = {"namespace": rows.namespace, "run_id": rows.run_id}
    for table in RUN_TABLES:
        of_this_run = (table.c.namespace == rows.namespace, table.c.run_id == rows.run_id)
        connection.execute(delete(table).where(*of_this_run))
    connection.execute(tasks.insert(), {**run_key, **rows.task})
    several: tuple[tuple[Table, tuple[dict[str, object], ...]], ...] = (
        (iterations, rows.iterations),
        (metrics, rows.metrics),
        (approvals, rows.approvals),
    )
    for table, found in several:
        if found:
            connection.execute(table.insert(), [{**run_key, **row} for row in found])


def catch_up(store: Store, home: Path) -> ProjectionUpdate:
    """Project the runs whose ledgers are new or have grown since they were last read.

    Raises:
        StorageError: The database failed.
    """
    with store.read_transaction() as connection:
        found = connection.execute(select(tasks.c.run_id, tasks.c.ledger_bytes, tasks.c.outcome))
        known = {row.run_id: (row.ledger_bytes, row.outcome) for row in found}
    runs = list_runs(home)
    old = [run for run in runs if _is_stale(run, *known.get(run.id, (-1, "")))]
    write_rows(store, map(project_run, old))
    return ProjectionUpdate(runs=len(old), up_to_date=len(runs) - len(old))


def _is_stale(run: RunFolder, ledger_bytes: int, outcome: str) -> bool:
    return outcome in UNFINISHED_OUTCOMES or run.ledger_path.stat().st_size != ledger_bytes


def rebuild_projections(store: Store, home: Path) -> ProjectionUpdate:
    """Project all runs of this machine again; rows of runs whose ledgers are on other machines stay.

    Raises:
        StorageError: The database failed.
    """
    runs = list_runs(home)
    write_rows(store, map(project_run, runs))
    return ProjectionUpdate(runs=len(runs), up_to_date=0)


def count_rows(store: Store) -> dict[str, int]:
    """Return the number of rows per table in the store's namespace."""
    with store.read_transaction() as connection:
        return {
            name: connection.execute(
                select(func.count()).select_from(table).where(table.c.namespace == store.namespace)
            ).scalar_one()
            for name, table in METADATA.tables.items()
            if "namespace" in table.c
        }


GENERATED_COLUMNS = ("id",)


def check_database(store: Store, home: Path) -> list[str]:
    """Return the inconsistencies of a database, one line each; empty if there are none.

    Raises:
        StorageError: The database cannot be read.
    """
    with store.read_transaction() as connection:
        found = [] if store.is_postgresql else _check_sqlite_file(connection)
        for run in list_runs(home):
            wanted = project_run(run)
            wrong = [table.name for table in RUN_TABLES if not _matches(connection, table, wanted)]
            if wrong:
                found.append(f"run {run.id}: {', '.join(wrong)} differ from its ledger")
            if len(found) >= MAX_FINDINGS:
                return [*found, "there may be more"]
    return found


def _check_sqlite_file(connection: Connection) -> list[str]:
    """Return what SQLite's own checks of its pages and full-text indexes find."""
    results = connection.execute(text("PRAGMA quick_check")).scalars()
    found = [f"the file: {line}" for line in results if line != "ok"]
    for table in SEARCHED_TABLES:
        words = f"{table.name}_words"
        try:
            connection.execute(text(f"INSERT INTO {words}({words}, rank) VALUES ('integrity-check', 1)"))
        except Exception as fault:
            found.append(f"the index {words}: {getattr(fault, 'orig', fault)}")
    return found


def _matches(connection: Connection, table: Table, wanted: RunRows) -> bool:
    rows = stored_rows(connection, table, wanted.namespace, wanted.run_id)
    return rows == sorted((_complete_row(table, row) for row in _expected_rows(table, wanted)), key=repr)


def stored_rows(connection: Connection, table: Table, namespace: str, run_id: str) -> list[dict[str, Any]]:
    """Return a table's rows of a run in a stable order, without generated columns."""
    run_key = (table.c.namespace == namespace, table.c.run_id == run_id)
    found = connection.execute(select(table).where(*run_key)).mappings()
    return sorted((_complete_row(table, row) for row in found), key=repr)


def _expected_rows(table: Table, rows: RunRows) -> tuple[dict[str, Any], ...]:
    by_table = {
        tasks: (rows.task,),
        iterations: rows.iterations,
        metrics: rows.metrics,
        approvals: rows.approvals,
    }
    return by_table[table]


def _complete_row(table: Table, row: RowMapping | Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with all columns that the ledger determines; missing ones get their default."""
    skipped = (*GENERATED_COLUMNS, "namespace", "run_id")
    columns = [column for column in table.c if column.name not in skipped]
    return {column.name: _plain(row.get(column.name, _default(column))) for column in columns}


def _default(column: Any) -> Any:
    return column.default.arg if column.default is not None else None


def _plain(value: Any) -> Any:
    from suture.storage.database.tables import sanitise_text

    return sanitise_text(value) if isinstance(value, str) else value
