"""Updates of the projections in the database, and the check that they match the ledgers."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
    text,
)

from suture.core.change_log import CHANGE_LOG, RUNS_FOLDER
from suture.core.file_locks import lock_file
from suture.core.ledger import RunFolder, list_runs
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.storage.database.projections import RunRows, project_run
from suture.storage.database.run_changes import (
    UNFINISHED_OUTCOMES,
    RunChanges,
    batched,
    find_run_changes,
    save_scan,
)
from suture.storage.database.run_index import open_index_of_store
from suture.storage.database.store import Store, open_configured_store
from suture.storage.database.tables import (
    METADATA,
    RUN_TABLES,
    sanitise_text,
    tasks,
)
from suture.storage.tuning import MAX_FINDINGS

log = logging.getLogger("suture.storage.database")
RUNS_PER_TRANSACTION = 100
"""Each transaction costs a millisecond; a killed process loses the runs of the last one."""
UPDATE_PAUSE_S = 0.01
"""Pause after each transaction, in which another process can get the lock."""
RUN_KEY = ("namespace", "run_id")


@dataclass(frozen=True, kw_only=True)
class ProjectionUpdate:
    """How many runs an update read, how many needed no reading, and how many it left for later."""

    runs: int
    up_to_date: int
    unread: int = 0


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


def catch_up(
    store: Store,
    home: Path,
    *,
    compare_all: bool = False,
    changes: RunChanges | None = None,
    max_runs: int | None = None,
) -> ProjectionUpdate:
    """Project the runs whose ledgers are new or have changed since they were last read, the newest first.

    Rows of these runs in a namespace other than their ledgers name are deleted. The rows of deleted runs are
    deleted, if the database is the one next to the runs.

    Args:
        compare_all: Compare all ledgers, even if the log of changed runs does not mention them.
        changes: What has changed, if it is known.
        max_runs: Read only this number of runs.
    """
    if changes is None:
        with open_index_of_store(store, home) as index:
            changes = find_run_changes(index, home, compare_all=compare_all)
    unsettled = dict(changes.scan.unsettled)
    stale = list(changes.stale)[:max_runs]
    for batch in batched(stale, RUNS_PER_TRANSACTION):
        outdated = []
        for rows in _read_runs(store, home, batch):
            if changes.stale[rows.run_id] or rows.task["outcome"] in UNFINISHED_OUTCOMES:
                unsettled[rows.run_id] = changes.stale[rows.run_id]
            old_rows = changes.rows.get(rows.run_id, ())
            outdated += [(name, rows.run_id) for name, *_ in old_rows if name != rows.namespace]
        _delete_runs(store, outdated)
        if len(batch) == RUNS_PER_TRANSACTION:
            time.sleep(UPDATE_PAUSE_S)
    _delete_runs(
        store,
        # Another process may have started a run of this name meanwhile.
        [key for key in changes.deleted if not RunFolder(home / RUNS_FOLDER / key[1]).ledger_path.exists()],
    )
    if len(stale) == len(changes.stale):
        with open_index_of_store(store, home) as index:
            save_scan(index, home, replace(changes.scan, unsettled=unsettled))
    return ProjectionUpdate(
        runs=len(stale), up_to_date=changes.up_to_date, unread=len(changes.stale) - len(stale)
    )


def _read_runs(store: Store, home: Path, runs: Iterable[str]) -> list[RunRows]:
    """Project some runs and write their rows, which are returned.

    Only one process does so at a time, because an older row could otherwise replace a newer one.
    """
    with (home / CHANGE_LOG).open("ab") as file:
        lock_file(file, waits=True)
        projected = [project_run(RunFolder(home / RUNS_FOLDER / run)) for run in runs]
        write_rows(store, projected)
    return projected


def _delete_runs(store: Store, keys: Collection[tuple[str, str]]) -> None:
    if keys:
        with store.write_transaction() as connection:
            _delete_rows(connection, keys, RUN_TABLES)


def rebuild_projections(store: Store, home: Path) -> ProjectionUpdate:
    """Project all runs of this machine again; rows of runs whose ledgers are on other machines stay."""
    runs = [run.id for run in list_runs(home)]
    for batch in batched(runs, RUNS_PER_TRANSACTION):
        _read_runs(store, home, batch)
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
    """Return what SQLite's own checks of its pages and of the full-text index find."""
    results = connection.execute(text("PRAGMA quick_check")).scalars()
    findings = [f"the file: {line}" for line in results if line != "ok"]
    try:
        # With 1 in `rank`, FTS5 also compares the index with the table.
        connection.execute(text("INSERT INTO tasks_words(tasks_words, rank) VALUES ('integrity-check', 1)"))
    except Exception as fault:
        findings.append(f"the index tasks_words: {getattr(fault, 'orig', fault)}")
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
