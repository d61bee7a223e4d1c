"""A connection that closes or a disk that fills leaves whole runs and memories, and the next command adds the rest."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from storage.database.sample_runs import write_healed_run, write_sample_runs
from suture.core.ledger import RunFolder
from suture.errors import StorageError
from suture.storage.database import projection_updates
from suture.storage.database.projection_updates import (
    catch_up,
    check_database,
    rebuild_projections,
    stored_rows,
)
from suture.storage.database.projections import project_run
from suture.storage.database.store import Store, open_store
from suture.storage.database.tables import METADATA, RUN_TABLES
from suture.storage.memory.memory_items import MemoryItem, MemoryTableName
from suture.storage.memory.memory_store import forget_items, iter_items, store_items
from suture.storage.postgresql.shared_runs import SharedRun, read_shared_ledger

TABLES: tuple[MemoryTableName, ...] = ("failures", "patterns", "lessons")
ITEMS = [
    MemoryItem(table=table, run_id="r", kind="write", text=f"{table} {n}", search_text=f"word {n}")
    for table in TABLES
    for n in range(2)
]


@contextlib.contextmanager
def connection_closed_at(store: Store, step: int) -> Iterator[list[str]]:
    """Close the connection before the statement number `step`, from 0; yield the statements."""
    statements: list[str] = []

    def close(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        statements.append(statement)
        if len(statements) == step + 1:
            connection.connection.dbapi_connection.close()

    event.listen(store.engine, "before_cursor_execute", close)
    try:
        yield statements
    finally:
        event.remove(store.engine, "before_cursor_execute", close)


def close_everywhere(store: Store, work: Callable[[], object], check: Callable[[], object]) -> None:
    """Do some work with an empty database and a connection that closes, once at each of its statements."""
    with connection_closed_at(store, -1) as statements:
        work()
    assert len(statements) > 5
    for step in range(len(statements)):
        with store.write_transaction() as connection:
            for table in (*RUN_TABLES, *(METADATA.tables[name] for name in TABLES)):
                connection.execute(table.delete())
        with connection_closed_at(store, step), pytest.raises(StorageError):
            work()
        check()


def require_whole_runs(store: Store, runs: list[RunFolder]) -> None:
    """Check that each run has all of its rows, or none."""
    for run, expected in zip(runs, map(project_run, runs), strict=True):
        with store.read_transaction() as connection:
            counts = [len(stored_rows(connection, table, "default", run.id)) for table in RUN_TABLES]
        assert counts in ([0] * len(counts), [len(rows) for rows in expected.by_table.values()])


def test_the_rows_of_runs_are_whole_wherever_the_connection_closes(store: Store, tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = [write_healed_run(home, "2026-1", "write"), write_healed_run(home, "2026-2", "heal")]

    def check() -> None:
        require_whole_runs(store, runs)
        catch_up(store, home)
        assert check_database(store, home) == []

    close_everywhere(store, lambda: rebuild_projections(store, home), check)


def test_memories_are_stored_once_and_forgotten_wherever_the_connection_closes(store: Store) -> None:
    def learn_and_forget() -> None:
        store_items(store, ITEMS)
        for item in ITEMS:
            forget_items(store, [(item.table, item.key)])

    def check() -> None:
        learn_and_forget()
        stored = list(iter_items(store, state=None))
        assert [item.state for item in stored] == ["forgotten"] * len(ITEMS)
        assert [item.text for item in stored] == [""] * len(ITEMS)

    close_everywhere(store, learn_and_forget, check)


def test_the_rows_of_runs_are_whole_wherever_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_updates, "RUNS_PER_TRANSACTION", 2)
    home = tmp_path / "home"
    runs = write_sample_runs(home)
    for run in runs:  # each needs a page of its own
        run.ledger_path.write_text(run.ledger_path.read_text().replace("Sum a cart.", "Sum a cart. " * 400))
    remedies = []
    for spare_pages in itertools.count():
        url = f"sqlite:///{tmp_path / f'{spare_pages}.db'}"
        with open_store(url, home) as store:
            with store.read_transaction() as connection:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + spare_pages}")
            try:
                catch_up(store, home)
                break
            except StorageError as fault:
                remedies.append(fault.remedy)
        with open_store(url, home) as store:
            require_whole_runs(store, runs)
            catch_up(store, home)
            assert check_database(store, home) == []
    assert len(remedies) > 2
    assert all(remedy.startswith("free some disk space") for remedy in remedies)


def test_a_shared_run_is_sent_whole_wherever_the_connection_closes(
    postgres_with_tables: str, tmp_path: Path
) -> None:
    for step in itertools.count():
        run = write_healed_run(tmp_path / "home", f"2026-{step}", "write")
        run.save_blob(b"a reply")
        with open_store(postgres_with_tables, tmp_path) as store:
            shared = SharedRun(store, run)
            with connection_closed_at(store, step) as statements:
                shared.push()
            with store.read_transaction() as connection:
                assert read_shared_ledger(connection, run.id) == run.ledger_path.read_bytes()
            shared.close()
        if len(statements) <= step:
            break
    assert step > 1
