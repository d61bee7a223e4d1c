"""Where a run's folder and its checkpoints lie; nothing heavy is loaded for a run that is not shared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suture.core.ledger import RunFolder
    from suture.core.settings import Settings


CHECKPOINTS = "checkpoints.db"


@contextlib.contextmanager
def sharing(settings: Settings, folder: RunFolder) -> Iterator[Callable[[], None] | None]:
    """Hold a run where it is shared, and send the rest of it at the end.

    Yields:
        What sends everything that is new in the folder; `None` where runs are not shared.

    Raises:
        UsageError: Another process writes this run, or `store.url` names no PostgreSQL.
        PrerequisiteError: The tables are missing.
        StorageError: The database cannot be reached.
    """
    if settings.store.runs == "local":
        yield None
        return
    from suture.storage.postgresql.shared_runs import open_shared

    shared = open_shared(settings, folder)
    with contextlib.closing(shared):
        yield shared.push
        shared.push()


def checkpoint_place(settings: Settings) -> Path | str:
    """Where LangGraph keeps its state: a file, or the address of a PostgreSQL."""
    if settings.store.runs == "local":
        return settings.paths.home / CHECKPOINTS
    return settings.store.url or ""  # `sharing` has refused one that is none


def fetched(settings: Settings, name: str) -> None:
    """Bring a run here that another machine has worked on, where runs are shared; see `fetch_run`."""
    if settings.store.runs == "local" or name in ("last", "newest"):
        return
    from suture.storage.postgresql.shared_runs import fetch_run

    fetch_run(settings, name)


def let_go_elsewhere(settings: Settings, run: str, *, most_s: float) -> None:
    """Wait until no other machine holds a run, where runs are shared; see `wait_for_run`."""
    if settings.store.runs == "database":
        from suture.storage.postgresql.shared_runs import wait_for_run

        wait_for_run(settings, run, most_s=most_s)
