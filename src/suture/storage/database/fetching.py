"""Runs that other machines share, brought to this one; what a process here writes is left to it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection, func, or_, select, text

from suture.core.ledger import RunFolder, is_being_written
from suture.core.ledger.run_folder import PRIVATE
from suture.core.safe_files import write_atomically
from suture.core.settings import Settings
from suture.errors import StorageError
from suture.storage.database.database import Store
from suture.storage.database.shared_runs import FILE, LOCK, PAUSE_S, RUN_ID, ledger_in, shared_store
from suture.storage.database.tables import run_files, run_lines


def fetch_run(settings: Settings, name: str) -> None:
    """Bring a run of the database to this machine, where it has gone on further than here.

    Args:
        settings: They name the database and the folder of state.
        name: An id, or its start or end; where it is that of no run, or of several, nothing is done.

    Raises:
        StorageError: The database failed, or holds what is no run's.
    """
    store = shared_store(settings)
    with store, store.reading() as connection:
        column = run_lines.c.run_id
        like = or_(column.startswith(name, autoescape=True), column.endswith(name, autoescape=True))
        found = connection.execute(select(column).where(like).distinct().limit(2)).scalars().all()
        if len(found) == 1 and RUN_ID.fullmatch(found[0]):
            _bring(connection, RunFolder(settings.paths.home / "runs" / found[0]))


def bring_runs(store: Store, home: Path, runs: Collection[str]) -> dict[str, str]:
    """Bring those of some runs to this machine that have gone on elsewhere.

    Args:
        store: A PostgreSQL.
        home: The folder of state.
        runs: Their ids.

    Returns:
        Those that cannot be brought -> why; the others are here.

    Raises:
        StorageError: The database failed.
    """
    failed: dict[str, str] = {}
    if not runs:
        return failed
    length = func.sum(func.octet_length(run_lines.c.content))
    asked = (
        select(run_lines.c.run_id, length).where(run_lines.c.run_id.in_(runs)).group_by(run_lines.c.run_id)
    )
    with store.reading() as connection:
        for run, shared_bytes in connection.execute(asked).all():
            folder = RunFolder(home / "runs" / run)
            if RUN_ID.fullmatch(run) and shared_bytes > _length_of(folder.ledger_path):
                try:
                    _bring(connection, folder)
                except StorageError as fault:
                    failed[run] = fault.message
    return failed


def _length_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _bring(connection: Connection, folder: RunFolder) -> None:
    """Write what the database knows beyond this machine, unless a process here writes the run."""
    folder.path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    folder.path.mkdir(mode=PRIVATE, exist_ok=True)
    with _one_at_a_time(folder):
        ledger = ledger_in(connection, folder.id)
        if not _is_ahead(folder, ledger):
            return
        of_this_run = run_files.c.run_id == folder.id
        sums = dict(
            map(
                tuple,
                connection.execute(
                    select(run_files.c.path, func.md5(run_files.c.content)).where(of_this_run)
                ),
            )
        )
        new = [
            path
            for path, md5 in sums.items()
            if FILE.fullmatch(path) is None or _md5(folder.path / path) != md5
        ]
        rows = select(run_files.c.path, run_files.c.content).where(of_this_run, run_files.c.path.in_(new))
        _write(folder, ledger, dict(map(tuple, connection.execute(rows))))


@contextlib.contextmanager
def _one_at_a_time(folder: RunFolder) -> Iterator[None]:
    """Two processes that share a home do not bring one run at once."""
    place = os.open(folder.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _md5(path: Path) -> str:
    """As the database has it: it tells whether a file is the same, and guards nothing."""
    try:
        return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    except OSError:
        return ""


def wait_for_run(settings: Settings, run: str, *, most_s: float) -> None:
    """Wait until no process, wherever it is, holds a run; one whose machine died does for a moment.

    Raises:
        StorageError: The database failed.
    """
    until_s = time.monotonic() + most_s
    with shared_store(settings) as store:
        while time.monotonic() < until_s:
            with store.reading() as connection:  # given back with the connection
                asked = text(f"SELECT pg_try_advisory_xact_lock({LOCK})")
                if connection.execute(asked, {"run": run}).scalar():
                    return
            time.sleep(PAUSE_S)


def _is_ahead(folder: RunFolder, ledger: bytes) -> bool:
    """Whether the database knows more of the run than this machine.

    Raises:
        StorageError: Each knows something that the other does not.
    """
    try:
        here = folder.ledger_path.read_bytes()
    except FileNotFoundError:
        return True
    if here.startswith(ledger) or is_being_written(folder):
        return False
    if ledger.startswith(here[: here.rfind(b"\n") + 1]):
        return True
    raise StorageError(
        f"run {folder.id} has gone on elsewhere, and otherwise than here",
        remedy=f"move {str(folder.path)!r} away, and try again",
    )


def _write(folder: RunFolder, ledger: bytes, files: Mapping[str, bytes]) -> None:
    for path in files:
        if not FILE.fullmatch(path) or path == folder.ledger_path.name:
            raise StorageError(f"run {folder.id} of the database has a file {path!r:.80}, as no run has")
    for path, content in files.items():
        write_atomically(folder.path / path, content)
    write_atomically(folder.ledger_path, ledger)  # last: without it the folder is no run
