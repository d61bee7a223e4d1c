"""Run folders that are copied to PostgreSQL, so that another machine can continue a run.

The run works with the folder on its machine. Whatever is new in it is sent before the run continues: a reply
before it is used, events before the next step. Only one process, on whichever machine, holds a run at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from suture.core.ledger import RunFolder, is_being_written
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.core.safe_files import write_file_atomically
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.storage.database.store import Store, map_database_errors, open_store
from suture.storage.database.tables import ledger_chunks, run_files
from suture.storage.tuning import LOCK_POLL_S, MAX_LOCK_ATTEMPTS

RUN_ID = re.compile(r"[\w-]{1,100}")
SHARED_PATH = re.compile(r"(?:[\w-][\w.-]{0,127}/){0,2}[\w-][\w.-]{0,127}")
"""Paths that the database may name, because this machine writes to them."""
TEMPORARY_PREFIX = ".partial-"
LOCK = "hashtextextended('suture run ' || :run, 0)"


class SharedRun:
    """A run folder and how much of it has been sent; it locks the run against other processes.

    Raises:
        UsageError: Another process, on this or another machine, writes this run.
        StorageError: The database failed, or its ledger of this run differs from this machine's.
    """

    def __init__(self, store: Store, folder: RunFolder) -> None:
        self._store = store
        self._folder = folder
        self._files: dict[str, tuple[int, int]] = {}
        self._sent_bytes = 0
        self._connection = self._lock_run()

    def _lock_run(self, tries: int = 1) -> Connection:
        run = {"run": self._folder.id}
        with map_database_errors(self._store.location):
            connection = self._store.engine.connect()
            try:
                while not connection.execute(text(f"SELECT pg_try_advisory_lock({LOCK})"), run).scalar():
                    tries -= 1
                    if tries <= 0:
                        raise UsageError(
                            f"another process is writing run {self._folder.id}", remedy="wait for it to end"
                        )
                    time.sleep(LOCK_POLL_S)
                self._sent_bytes = self._already_sent(connection)
                connection.commit()
            except BaseException:
                connection.close()
                raise
        return connection

    def _already_sent(self, connection: Connection) -> int:
        shared = read_shared_ledger(connection, self._folder.id)
        if not self._ledger().startswith(shared):
            raise StorageError(
                f"run {self._folder.id} continued on another machine and differs from the copy here",
                remedy="move this machine's folder of the run away, and resume it again",
            )
        return len(shared)

    def _ledger(self) -> bytes:
        try:
            return self._folder.ledger_path.read_bytes()
        except FileNotFoundError:
            return b""

    def push(self) -> None:
        """Send what is new; a lost connection is opened again once.

        Raises:
            UsageError: Another process has taken over the run.
            StorageError: The database failed. The local folder is complete and is sent when the run
                continues.
        """
        try:
            self._send()
        except StorageError:
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._lock_run(tries=MAX_LOCK_ATTEMPTS)
            self._send()

    def _send(self) -> None:
        new = dict(self._new_files())
        ledger = self._ledger()[self._sent_bytes :]
        whole = ledger[: ledger.rfind(b"\n") + 1]
        run = self._folder.id
        with map_database_errors(self._store.location), self._connection.begin():
            for path in new:
                content = (self._folder.path / path).read_bytes()
                row = insert(run_files).values(run_id=run, path=path, content=content)
                again = row.on_conflict_do_update(
                    index_elements=[run_files.c.run_id, run_files.c.path],
                    set_={"content": row.excluded.content},
                )
                self._connection.execute(again)
            if whole:
                self._connection.execute(
                    ledger_chunks.insert().values(run_id=run, start=self._sent_bytes, content=whole)
                )
        self._files.update(new)
        self._sent_bytes += len(whole)

    def _new_files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for place, _, names in os.walk(self._folder.path):
            for name in names:
                file = Path(place) / name
                path = file.relative_to(self._folder.path).as_posix()
                if file == self._folder.ledger_path or name.startswith(TEMPORARY_PREFIX) or file.is_symlink():
                    continue
                about = file.stat()
                stamp = (about.st_mtime_ns, about.st_size)
                if self._files.get(path) != stamp and SHARED_PATH.fullmatch(path):
                    yield path, stamp

    def close(self) -> None:
        """Release the run for other processes."""
        self._connection.close()
        self._store.close()


def open_shared_run(settings: Settings, folder: RunFolder) -> SharedRun:
    """Hold a run in the configured database; raises as `SharedRun` and `open_store`."""
    store = open_shared_store(settings)
    try:
        shared = SharedRun(store, folder)
    except BaseException:
        store.close()
        raise
    return shared


def open_shared_store(settings: Settings) -> Store:
    """Open the database in which runs are shared.

    Raises:
        UsageError: `store.url` is not a PostgreSQL database.
        PrerequisiteError: Its tables or the driver are missing.
        StorageError: It cannot be reached.
    """
    store = open_store(settings.store.url, settings.paths.home, namespace=settings.store.namespace)
    if store.is_postgresql:
        return store
    store.close()
    raise UsageError(
        "store.runs is `database`, but store.url is not a PostgreSQL database",
        remedy="set SUTURE_DATABASE_URL=postgresql://..., or store.runs=local",
    )


def read_shared_ledger(connection: Connection, run: str) -> bytes:
    """Return a run's ledger in the database; empty if it has none.

    Raises:
        StorageError: A chunk is missing.
    """
    chunks = connection.execute(
        select(ledger_chunks.c.start, ledger_chunks.c.content)
        .where(ledger_chunks.c.run_id == run)
        .order_by(ledger_chunks.c.start)
    ).all()
    content = b"".join(chunk.content for chunk in chunks)
    ends = [0]
    for chunk in chunks:
        ends.append(ends[-1] + len(chunk.content))
    if [chunk.start for chunk in chunks] != ends[:-1]:
        raise StorageError(f"the ledger of run {run} in the database has a gap")
    return content


def fetch_run(settings: Settings, name: str) -> None:
    """Copy a run from the database to this machine if it has progressed further there.

    Args:
        settings: They name the database and the folder of state.
        name: An id, or its start or end. Nothing happens if it matches no run, or several.

    Raises:
        StorageError: The database failed, or contains something that is not part of a run.
    """
    store = open_shared_store(settings)
    with store, store.read_transaction() as connection:
        column = ledger_chunks.c.run_id
        like = or_(column.startswith(name, autoescape=True), column.endswith(name, autoescape=True))
        found = connection.execute(select(column).where(like).distinct().limit(2)).scalars().all()
        if len(found) == 1 and RUN_ID.fullmatch(found[0]):
            _fetch(connection, RunFolder(settings.paths.home / "runs" / found[0]))


def fetch_runs(store: Store, home: Path, runs: Collection[str]) -> dict[str, str]:
    """Copy those of some runs to this machine that have progressed on other machines.

    Args:
        store: A PostgreSQL database.
        home: The folder of state.
        runs: Ids of the runs.

    Returns:
        Id of each run that cannot be copied -> the reason.

    Raises:
        StorageError: The database failed.
    """
    failed: dict[str, str] = {}
    if not runs:
        return failed
    length = func.sum(func.octet_length(ledger_chunks.c.content))
    asked = (
        select(ledger_chunks.c.run_id, length)
        .where(ledger_chunks.c.run_id.in_(runs))
        .group_by(ledger_chunks.c.run_id)
    )
    with store.read_transaction() as connection:
        for run, shared_bytes in connection.execute(asked).all():
            folder = RunFolder(home / "runs" / run)
            if RUN_ID.fullmatch(run) and shared_bytes > _length_of(folder.ledger_path):
                try:
                    _fetch(connection, folder)
                except StorageError as fault:
                    failed[run] = fault.message
    return failed


def _length_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _fetch(connection: Connection, folder: RunFolder) -> None:
    """Write what the database has beyond this machine, unless a local process writes the run."""
    folder.path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    folder.path.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    with _lock_folder(folder):
        ledger = read_shared_ledger(connection, folder.id)
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
            if SHARED_PATH.fullmatch(path) is None or _md5(folder.path / path) != md5
        ]
        rows = select(run_files.c.path, run_files.c.content).where(of_this_run, run_files.c.path.in_(new))
        _write(folder, ledger, dict(map(tuple, connection.execute(rows))))


@contextlib.contextmanager
def _lock_folder(folder: RunFolder) -> Iterator[None]:
    """Keep two processes that share a home from copying one run at the same time."""
    place = os.open(folder.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _md5(path: Path) -> str:
    """Return the MD5 that PostgreSQL computes too; it only detects changes and protects nothing."""
    try:
        return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    except OSError:
        return ""


def wait_for_release(settings: Settings, run: str, *, timeout_s: float) -> None:
    """Wait until no process on any machine holds a run. A machine that died holds it for a moment.

    Raises:
        StorageError: The database failed.
    """
    until_s = time.monotonic() + timeout_s
    with open_shared_store(settings) as store:
        while time.monotonic() < until_s:
            with store.read_transaction() as connection:  # the lock ends with the transaction
                asked = text(f"SELECT pg_try_advisory_xact_lock({LOCK})")
                if connection.execute(asked, {"run": run}).scalar():
                    return
            time.sleep(LOCK_POLL_S)


def _is_ahead(folder: RunFolder, ledger: bytes) -> bool:
    """Return whether the database has more of the run than this machine.

    Raises:
        StorageError: Each has something that the other lacks.
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
        f"run {folder.id} continued on another machine and differs from the copy here",
        remedy=f"move {str(folder.path)!r} away, and try again",
    )


def _write(folder: RunFolder, ledger: bytes, files: Mapping[str, bytes]) -> None:
    for path in files:
        if not SHARED_PATH.fullmatch(path) or path == folder.ledger_path.name:
            raise StorageError(f"run {folder.id} in the database has an invalid path {path!r:.80}")
    for path, content in files.items():
        write_file_atomically(folder.path / path, content)
    write_file_atomically(folder.ledger_path, ledger)  # last: without a ledger the folder is not a run
