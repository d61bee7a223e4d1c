"""The database of runs, brought up to date before a query. SQLAlchemy is imported only if a run has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from suture.core.settings import Settings
from suture.storage.database.run_changes import find_run_changes, save_scan
from suture.storage.database.run_index import RunIndex, open_run_index
from suture.storage.tuning import MAX_RUNS_READ_AT_ONCE, MAX_RUNS_READ_EARLY


@contextlib.contextmanager
def open_current_index(
    settings: Settings, *, compare_all: bool = False, reads_all: bool = False
) -> Iterator[tuple[RunIndex, int]]:
    """Open the database that the settings name, and read the runs of this machine that have changed.

    The context is the database and the number of runs that are not in it yet: if many have changed, only the newest
    ones are read. Raises as `open_configured_store`.

    Args:
        compare_all: Compare all ledgers with their rows, in case another program has changed one.
        reads_all: Read all that have changed, however long it takes.
    """
    home = settings.paths.home
    with open_run_index(settings) as index:
        changes = find_run_changes(index, home, compare_all=compare_all)
        unread = 0
        if changes.stale or changes.deleted:
            from suture.storage.database.projection_updates import catch_up
            from suture.storage.database.store import open_configured_store

            is_much = len(changes.stale) > MAX_RUNS_READ_AT_ONCE and not reads_all
            with open_configured_store(settings) as store:
                max_runs = MAX_RUNS_READ_EARLY if is_much else None
                unread = catch_up(store, home, changes=changes, max_runs=max_runs).unread
        elif changes.is_worth_saving:
            save_scan(index, home, changes.scan)
        yield index, unread
