"""Where run folders and checkpoints are stored; nothing heavy is imported for a run that is not shared."""

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
def share_run(settings: Settings, folder: RunFolder) -> Iterator[Callable[[], None] | None]:
    """Hold a run if runs are shared, and send the rest of it at the end.

    The context is a function that sends everything new in the folder, or `None` if runs are not shared. Raises
    as `SharedRun` and `open_shared_store`.
    """
    if settings.store.runs == "local":
        yield None
        return
    from suture.storage.postgresql.shared_runs import open_shared_run

    with contextlib.closing(open_shared_run(settings, folder)) as shared_run:
        yield shared_run.push
        shared_run.push()


def checkpoint_location(settings: Settings) -> Path | str:
    """Return where LangGraph's checkpoints are: a SQLite file, or the URL of a PostgreSQL database."""
    if settings.store.runs == "local":
        return settings.paths.home / CHECKPOINTS
    return settings.store.url or ""  # `share_run` has already refused a missing URL


def fetch_shared_run(settings: Settings, name: str) -> None:
    """Copy a run to this machine that another machine has continued, if runs are shared; see `fetch_run`."""
    if settings.store.runs == "local" or name in ("last", "newest"):
        return
    from suture.storage.postgresql.shared_runs import fetch_run

    fetch_run(settings, name)


def wait_until_released(settings: Settings, run: str, *, timeout_s: float) -> None:
    """Wait until no other machine holds a run, if runs are shared; see `wait_for_release`."""
    if settings.store.runs == "database":
        from suture.storage.postgresql.shared_runs import wait_for_release

        wait_for_release(settings, run, timeout_s=timeout_s)
