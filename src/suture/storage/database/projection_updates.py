"""Updates of the projections in the database, and the check that they match the ledgers."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    RowMapping,
    String,
    Table,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal,
    select,
    text,
)

from suture.core.ledger import RunFolder, is_being_written, list_runs, stamp_ledgers
from suture.core.ledger.run_folder import LedgerStamp
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.storage.database.projections import RunRows, project_run
from suture.storage.database.store import Store, database_url, format_url, open_configured_store
from suture.storage.database.tables import (
    METADATA,
    RUN_TABLES,
    SEARCHED_TABLES,
    sanitise_text,
    tasks,
)
from suture.storage.tuning import MAX_FINDINGS

log = logging.getLogger("suture.storage.database")
RUNS_PER_TRANSACTION = 100
"""Each transaction costs a millisecond; a killed process loses the runs of the last one."""
RUN_KEY = ("namespace", "run_id")
UPDATE_LOCK = threading.Lock()
"""Threads of one process update the rows one after the other, so that no two read the same ledgers."""


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
    """Replace the rows of some runs, all of a run's in one transaction.

    In a shared database, a run stays as it is if another machine has read more of its ledger.
    """
    all_rows = iter(rows)
    while batch := list(islice(all_rows, RUNS_PER_TRANSACTION)):
        # A damaged run has fewer columns. The order lets no two processes wait for each other's rows.
        batch.sort(key=lambda rows: (_list_columns(rows), rows.run_id))
        with store.write_transaction() as connection:
            for _, alike in groupby(batch, _list_columns):
                _replace_rows(connection, alike)


def _list_columns(rows: RunRows) -> list[str]:
    return sorted(rows.task)


def _replace_rows(connection: Connection, batch: Iterable[RunRows]) -> None:
    """Replace the rows of runs that have values for the same columns."""
    runs = {(rows.namespace, rows.run_id): rows for rows in batch}
    is_shared = connection.dialect.name == "postgresql"
    insert = _import_insert(is_shared)(tasks)
    columns = {name: column for name, column in insert.excluded.items() if name not in ("id", *RUN_KEY)}
    upsert = insert.values([{**_make_key(key), **rows.task} for key, rows in runs.items()])
    upsert = upsert.on_conflict_do_update(
        index_elements=RUN_KEY,
        set_=columns,
        where=tasks.c.ledger_bytes <= insert.excluded.ledger_bytes if is_shared else None,
    )
    # The rows stay locked until the end of the transaction, so other writers of these runs wait here.
    if is_shared:  # SQLite always updates the rows, and has no RETURNING before version 3.35
        written = connection.execute(upsert.returning(tasks.c.namespace, tasks.c.run_id)).all()
        runs = {(namespace, run_id): runs[namespace, run_id] for namespace, run_id in written}
    else:
        connection.execute(upsert)
    _delete_rows(connection, runs, RUN_TABLES[1:])
    for table in RUN_TABLES[1:]:
        table_rows = [
            {**_make_key(key), **row} for key, rows in runs.items() for row in rows.by_table[table.name]
        ]
        if table_rows:
            connection.execute(table.insert(), table_rows)


def _make_key(key: tuple[str, str]) -> dict[str, str]:
    return dict(zip(RUN_KEY, key, strict=True))


def _import_insert(is_shared: bool) -> Any:
    """Return the engine's own statement, which can update rows instead."""
    if is_shared:
        from sqlalchemy.dialects import postgresql  # slow to import, and most databases are SQLite

        return postgresql.insert
    from sqlalchemy.dialects import sqlite

    return sqlite.insert


def _delete_rows(
    connection: Connection, keys: Iterable[tuple[str, str]], from_tables: Iterable[Table]
) -> None:
    """Delete the rows of some runs, `(namespace, run)`."""
    parameters = [{"of_namespace": namespace, "of_run": run_id} for namespace, run_id in keys]
    for table in from_tables if parameters else ():
        is_of_run = _is_of_run(table, bindparam("of_namespace"), bindparam("of_run"))
        connection.execute(delete(table).where(is_of_run), parameters)


def _is_of_run(table: Table, namespace: Any, run_id: Any) -> ColumnElement[bool]:
    return and_(table.c.namespace == namespace, table.c.run_id == run_id)


@contextlib.contextmanager
def open_current_store(settings: Settings) -> Iterator[Store]:
    """Open the database that the settings name when its rows agree with the runs of this machine.

    Raises as `open_store`.
    """
    with open_configured_store(settings) as store:
        catch_up(store, settings.paths.home)
        yield store


def catch_up(store: Store, home: Path) -> ProjectionUpdate:
    """Project the runs whose ledgers are new or have changed since they were last read.

    Rows of these runs in a namespace other than their ledgers name are deleted. The rows of deleted runs are
    deleted, if the database is the one next to the runs.
    """
    with UPDATE_LOCK:
        stamps = stamp_ledgers(home)
        projected = _read_projected(store, stamps)
        outdated: list[Any] = []
        if store.location == format_url(database_url(None, home)):
            for run, rows in projected.items():
                # Another process may have started the run after the stamps were read.
                if run not in stamps and not RunFolder(home / "runs" / run).ledger_path.exists():
                    outdated += rows
        stale_runs = [
            RunFolder(home / "runs" / run)
            for run, stamp in stamps.items()
            if _is_stale(home, run, stamp, projected.get(run, ()), store)
        ]

        def project(run: RunFolder) -> RunRows:
            rows = project_run(run)
            outdated.extend(row for row in projected.get(run.id, ()) if row.namespace != rows.namespace)
            return rows

        write_rows(store, map(project, stale_runs))
        if outdated:
            with store.write_transaction() as connection:
                _delete_rows(connection, [(row.namespace, row.run_id) for row in outdated], RUN_TABLES)
    return ProjectionUpdate(runs=len(stale_runs), up_to_date=len(stamps) - len(stale_runs))


def _read_projected(store: Store, runs: Collection[str]) -> dict[str, list[Any]]:
    """Return run id -> what its rows say of the ledger; a shared database may have many more runs than these.

    A run has a second row, in the default namespace, if it was first read before its ledger named its own.
    """
    names = ("namespace", "run_id", "ledger_bytes", "ledger_mtime_ns", "outcome")
    query = select(*(tasks.c[name] for name in names))
    if store.is_postgresql:
        query = query.where(tasks.c.run_id == any_(literal(list(runs), ARRAY(String))))
    projected: dict[str, list[Any]] = {}
    with store.read_transaction() as connection:
        for row in connection.execute(query):
            projected.setdefault(row.run_id, []).append(row)
    return projected


def _is_stale(home: Path, run: str, stamp: LedgerStamp, rows: Sequence[Any], store: Store) -> bool:
    """Return whether a run must be read again; `rows` are what the database says of its ledger."""
    if len(rows) != 1:
        return True
    (row,) = rows
    if store.is_postgresql:
        if stamp[0] != row.ledger_bytes:
            return bool(stamp[0] > row.ledger_bytes)  # otherwise another machine has continued the run
    elif stamp != (row.ledger_bytes, row.ledger_mtime_ns):
        return True
    if row.outcome not in ("running", "waiting"):
        return False
    try:  # a killed process writes no ending
        return is_being_written(RunFolder(home / "runs" / run)) != bool(row.outcome == "running")
    except OSError:
        return True  # it was deleted at this moment


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
    query = select(table).where(_is_of_run(table, namespace, run_id))
    return _sort_rows(table, connection.execute(query).mappings())


def _sort_rows(table: Table, rows: Iterable[RowMapping | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in a stable order with all columns that the ledger determines, defaults included."""
    # The time of a ledger differs between machines.
    omitted = ("id", "namespace", "run_id", "ledger_mtime_ns")
    columns = [column for column in table.c if column.name not in omitted]
    complete_rows = []
    for row in rows:
        values: dict[str, Any] = {}
        for column in columns:
            default: Any = column.default
            value = row.get(column.name, default.arg if default is not None else None)
            values[column.name] = sanitise_text(value) if isinstance(value, str) else value
        complete_rows.append(values)
    return sorted(complete_rows, key=repr)
