"""Rows written to the database: of a run that has ended, of all that were not read yet, of all anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, delete, func, select

from suture.core.ledger import RunFolder, list_runs
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.storage.database.database import Store, store_of
from suture.storage.database.projecting import RunRows, rows_of
from suture.storage.database.tables import METADATA, OF_RUNS, approvals, iterations, metrics, tasks

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
