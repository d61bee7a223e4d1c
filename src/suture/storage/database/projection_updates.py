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
    sanitise_text,
    tasks,
)
from suture.storage.tuning import MAX_FINDINGS

log = logging.getLogger("suture.storage.database")
UNFINISHED_OUTCOMES = ("running", "waiting")
"""States that may be stale although the ledger has not grown: a killed process writes no ending."""


@dataclass(frozen=True, kw_only=True)
class ProjectionUpdate:
    """How many runs an update read, and how many needed no reading."""

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
    """Replace the rows of some runs, each run in its own transaction."""
    for run_rows in rows:
        run_key = {"namespace": run_rows.namespace, "run_id": run_rows.run_id}
        with store.write_transaction() as connection:
            if store.is_postgresql:  # serialise writers of one run
                lock_key = func.hashtextextended(run_rows.run_id, 0)
                connection.execute(select(func.pg_advisory_xact_lock(lock_key)))
            for table in RUN_TABLES:
                same_run = (table.c.namespace == run_rows.namespace, table.c.run_id == run_rows.run_id)
                connection.execute(delete(table).where(*same_run))
                if table_rows := run_rows.by_table[table.name]:
                    connection.execute(table.insert(), [{**run_key, **row} for row in table_rows])


def catch_up(store: Store, home: Path) -> ProjectionUpdate:
    """Project the runs whose ledgers are new or have grown since they were last read."""
    with store.read_transaction() as connection:
        rows = connection.execute(select(tasks.c.run_id, tasks.c.ledger_bytes, tasks.c.outcome))
        projected = {row.run_id: (row.ledger_bytes, row.outcome) for row in rows}
    runs = list_runs(home)
    stale_runs = []
    for run in runs:
        ledger_bytes, outcome = projected.get(run.id, (-1, ""))  # No ledger has a size of -1.
        if outcome in UNFINISHED_OUTCOMES or run.ledger_path.stat().st_size != ledger_bytes:
            stale_runs.append(run)
    write_rows(store, map(project_run, stale_runs))
    return ProjectionUpdate(runs=len(stale_runs), up_to_date=len(runs) - len(stale_runs))


def rebuild_projections(store: Store, home: Path) -> ProjectionUpdate:
    """Project all runs of this machine again; rows of runs whose ledgers are on other machines stay."""
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


def check_database(store: Store, home: Path) -> list[str]:
    """Return the inconsistencies of a database, one line each; empty if there are none."""
    with store.read_transaction() as connection:
        findings = [] if store.is_postgresql else _check_sqlite_file(connection)
        for run in list_runs(home):
            rows = project_run(run)
            differing = []
            for table in RUN_TABLES:
                projected = _sort_rows(table, rows.by_table[table.name])
                if stored_rows(connection, table, rows.namespace, rows.run_id) != projected:
                    differing.append(table.name)
            if differing:
                findings.append(f"run {run.id}: {', '.join(differing)} differ from its ledger")
            if len(findings) >= MAX_FINDINGS:
                return [*findings, "there may be more"]
    return findings


def _check_sqlite_file(connection: Connection) -> list[str]:
    """Return what SQLite's own checks of its pages and full-text indexes find."""
    results = connection.execute(text("PRAGMA quick_check")).scalars()
    findings = [f"the file: {line}" for line in results if line != "ok"]
    for table in SEARCHED_TABLES:
        words = f"{table.name}_words"
        try:
            # With 1 in `rank`, FTS5 also compares the index with the table.
            connection.execute(text(f"INSERT INTO {words}({words}, rank) VALUES ('integrity-check', 1)"))
        except Exception as fault:
            findings.append(f"the index {words}: {getattr(fault, 'orig', fault)}")
    return findings


def stored_rows(connection: Connection, table: Table, namespace: str, run_id: str) -> list[dict[str, Any]]:
    """Return a table's rows of a run in a stable order, without generated columns."""
    run_key = (table.c.namespace == namespace, table.c.run_id == run_id)
    return _sort_rows(table, connection.execute(select(table).where(*run_key)).mappings())


def _sort_rows(table: Table, rows: Iterable[RowMapping | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in a stable order with all columns that the ledger determines, defaults included."""
    columns = [column for column in table.c if column.name not in ("id", "namespace", "run_id")]
    complete_rows = []
    for row in rows:
        values: dict[str, Any] = {}
        for column in columns:
            default: Any = column.default
            value = row.get(column.name, default.arg if default is not None else None)
            values[column.name] = sanitise_text(value) if isinstance(value, str) else value
        complete_rows.append(values)
    return sorted(complete_rows, key=repr)
