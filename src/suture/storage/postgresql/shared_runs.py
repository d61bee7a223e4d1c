"""Run folders that are copied to PostgreSQL, so that another machine can continue a run.

The run works with the folder on its machine. Whatever is new in it is sent before the run continues: a reply
before it is used, events before the next step. Only one process, on whichever machine, holds a run at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection, exc, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from suture.core.change_log import log_change
from suture.core.file_locks import lock_file
from suture.core.ledger import RunFolder, is_being_written
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE, RUN_ID
from suture.core.safe_files import write_file_atomically
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.storage.database.store import Store, map_database_errors, open_store
from suture.storage.database.tables import ledger_chunks, run_files
from suture.storage.tuning import LOCK_POLL_S, RECONNECT_TIMEOUT_S

SHARED_PATH = re.compile(r"(?:[\w-][\w.-]{0,127}/){0,2}[\w-][\w.-]{0,127}")
"""Paths that the database may name, because this machine writes to them."""
TEMPORARY_PREFIX = ".partial-"
"""How `write_file_atomically` begins the name of a file that it is still writing."""
LOCK = "hashtextextended('suture run ' || :run, 0)"
"""The number of a run's advisory lock, in SQL."""


class SharedRun:
    """A run folder and how much of it has been sent; it locks the run against other processes.

    Raises:
        UsageError: Another process, on this or another machine, writes this run.
        StorageError: The database failed, or its ledger of this run differs from this machine's.
    """

    def __init__(self, store: Store, folder: RunFolder) -> None:
        self._store = store
        self._folder = folder
        self._sent_stamps: dict[str, tuple[int, int]] = {}  # path -> (mtime_ns, size)
        self._sent_ledger_bytes = 0
        self._connection = self._lock_run()

    def _lock_run(self, timeout_s: float = 0.0) -> Connection:
        """Connect and lock the run; wait at most `timeout_s` for the server and for the lock."""
        run, deadline_s = {"run": self._folder.id}, time.monotonic() + timeout_s
        with map_database_errors(self._store.location):
            connection = self._connect(deadline_s)
            try:
                while not connection.execute(text(f"SELECT pg_try_advisory_lock({LOCK})"), run).scalar():
                    if time.monotonic() >= deadline_s:
                        raise UsageError(
                            f"another process is writing run {self._folder.id}", remedy="wait for it to end"
                        )
                    time.sleep(LOCK_POLL_S)
                shared_ledger = read_shared_ledger(connection, self._folder.id)
                if not self._read_ledger().startswith(shared_ledger):
                    raise StorageError(
                        f"run {self._folder.id} continued on another machine and differs from the copy here",
                        remedy="move this machine's folder of the run away, and resume it again",
                    )
                self._sent_ledger_bytes = len(shared_ledger)
                connection.commit()
            except BaseException:
                connection.close()
                raise
        return connection

    def _connect(self, deadline_s: float) -> Connection:
        while True:
            try:
                return self._store.engine.connect()
            except exc.OperationalError:  # the server is restarting
                if time.monotonic() >= deadline_s:
                    raise
            time.sleep(LOCK_POLL_S)

    def _read_ledger(self, start: int = 0) -> bytes:
        """Return the ledger from a byte offset on; empty if there is none."""
        try:
            with self._folder.ledger_path.open("rb") as file:
                file.seek(start)
                return file.read()
        except FileNotFoundError:
            return b""

    def push(self) -> None:
        """Send what is new; a lost connection is opened again once.

        If it fails, the local folder is complete and is sent when the run continues.
        """
        try:
            self._send()
        except StorageError:
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._lock_run(RECONNECT_TIMEOUT_S)
            self._send()

    def _send(self) -> None:
        changed_files = dict(self._find_changed_files())
        ledger_tail = self._read_ledger(self._sent_ledger_bytes)
        complete_lines = ledger_tail[: ledger_tail.rfind(b"\n") + 1]
        run = self._folder.id
        with map_database_errors(self._store.location), self._connection.begin():
            for path in changed_files:
                content = (self._folder.path / path).read_bytes()
                statement = insert(run_files).values(run_id=run, path=path, content=content)
                upsert_statement = statement.on_conflict_do_update(
                    index_elements=[run_files.c.run_id, run_files.c.path],
                    set_={"content": statement.excluded.content},
                )
                self._connection.execute(upsert_statement)
            if complete_lines:
                chunk = {"run_id": run, "start": self._sent_ledger_bytes, "content": complete_lines}
                self._connection.execute(ledger_chunks.insert().values(chunk))
        self._sent_stamps.update(changed_files)
        self._sent_ledger_bytes += len(complete_lines)

    def _find_changed_files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield `(path, (mtime_ns, size))` of each file that is new or has changed since it was sent."""
        for directory, _, names in os.walk(self._folder.path):
            for name in names:
                file = Path(directory) / name
                path = file.relative_to(self._folder.path).as_posix()
                if file == self._folder.ledger_path or name.startswith(TEMPORARY_PREFIX) or file.is_symlink():
                    continue
                stat = file.stat()
                stamp = (stat.st_mtime_ns, stat.st_size)
                if self._sent_stamps.get(path) != stamp and SHARED_PATH.fullmatch(path):
                    yield path, stamp

    def close(self) -> None:
        """Release the run for other processes."""
        self._connection.close()
        self._store.close()


def open_shared_run(settings: Settings, folder: RunFolder) -> SharedRun:
    """Hold a run in the configured database; raises as `SharedRun` and `open_store`."""
    store = open_shared_store(settings)
    try:
        return SharedRun(store, folder)
    except BaseException:
        store.close()
        raise


def open_shared_store(settings: Settings) -> Store:
    """Open the database in which runs are shared; raises as `open_store`, also if it is not PostgreSQL."""
    store = open_store(settings.store.url, settings.paths.home, namespace=settings.store.namespace)
    if store.is_postgresql:
        return store
    store.close()
    raise UsageError(
        "store.runs is `database`, but store.url is not a PostgreSQL database",
        remedy="set SUTURE_DATABASE_URL=postgresql://..., or store.runs=local",
    )


def read_shared_ledger(connection: Connection, run: str) -> bytes:
    """Return a run's ledger in the database; empty if it has none."""
    chunks = connection.execute(
        select(ledger_chunks.c.start, ledger_chunks.c.content)
        .where(ledger_chunks.c.run_id == run)
        .order_by(ledger_chunks.c.start)
    )
    content = bytearray()
    for chunk in chunks:
        if chunk.start != len(content):
            raise StorageError(f"the ledger of run {run} in the database has a gap")
        content += chunk.content
    return bytes(content)


def fetch_run(settings: Settings, name: str) -> None:
    """Copy a run from the database to this machine if it has progressed further there.

    `name` is an id, or its start or end. Nothing happens if it matches no run, or several.
    """
    store = open_shared_store(settings)
    with store, store.read_transaction() as connection:
        column = ledger_chunks.c.run_id
        matches = or_(column.startswith(name, autoescape=True), column.endswith(name, autoescape=True))
        runs = connection.execute(select(column).where(matches).distinct().limit(2)).scalars().all()
        if len(runs) == 1 and RUN_ID.fullmatch(runs[0]):
            _fetch_folder(connection, RunFolder(settings.paths.home / "runs" / runs[0]))


def fetch_runs(store: Store, home: Path, runs: Collection[str]) -> dict[str, str]:
    """Copy those of some runs to this machine that have progressed on other machines.

    Returns:
        Id of each run that cannot be copied -> the reason.
    """
    failures: dict[str, str] = {}
    if not runs:
        return failures
    length = func.sum(func.octet_length(ledger_chunks.c.content))
    query = (
        select(ledger_chunks.c.run_id, length)
        .where(ledger_chunks.c.run_id.in_(runs))
        .group_by(ledger_chunks.c.run_id)
    )
    with store.read_transaction() as connection:
        for run, shared_bytes in connection.execute(query).all():
            if not RUN_ID.fullmatch(run):
                continue
            folder = RunFolder(home / "runs" / run)
            try:
                local_bytes = folder.ledger_path.stat().st_size
            except FileNotFoundError:
                local_bytes = 0
            if shared_bytes > local_bytes:
                try:
                    _fetch_folder(connection, folder)
                except StorageError as fault:
                    failures[run] = fault.message
    return failures


def _fetch_folder(connection: Connection, folder: RunFolder) -> None:
    """Write what the database has beyond this machine, unless a local process writes the run."""
    folder.path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    folder.path.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    with _lock_folder(folder):
        ledger = read_shared_ledger(connection, folder.id)
        if not _is_ahead(folder, ledger):
            return
        same_run = run_files.c.run_id == folder.id
        query = select(run_files.c.path, func.md5(run_files.c.content).label("md5")).where(same_run)
        changed_paths = [
            row.path
            for row in connection.execute(query)
            if SHARED_PATH.fullmatch(row.path) is None or _md5(folder.path / row.path) != row.md5
        ]
        changed = run_files.c.path.in_(changed_paths)
        rows = connection.execute(select(run_files.c.path, run_files.c.content).where(same_run, changed))
        _write_folder(folder, ledger, {row.path: row.content for row in rows})


@contextlib.contextmanager
def _lock_folder(folder: RunFolder) -> Iterator[None]:
    """Keep two processes that share a home from copying one run at the same time."""
    descriptor = os.open(folder.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock_file(descriptor, waits=True)
        yield
    finally:
        os.close(descriptor)


def _md5(path: Path) -> str:
    """Return the MD5 that PostgreSQL computes too; it only detects changes and protects nothing."""
    try:
        return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    except OSError:
        return ""


def wait_for_release(settings: Settings, run: str, *, timeout_s: float) -> None:
    """Wait until no process on any machine holds a run, or until the timeout.

    A machine that died holds its run for a moment.
    """
    deadline_s = time.monotonic() + timeout_s
    with open_shared_store(settings) as store:
        while time.monotonic() < deadline_s:
            with store.read_transaction() as connection:  # the lock ends with the transaction
                statement = text(f"SELECT pg_try_advisory_xact_lock({LOCK})")
                if connection.execute(statement, {"run": run}).scalar():
                    return
            time.sleep(LOCK_POLL_S)


def _is_ahead(folder: RunFolder, shared_ledger: bytes) -> bool:
    """Return whether the database has more of the run than this machine; refuse if each has what the other lacks."""
    try:
        local_ledger = folder.ledger_path.read_bytes()
    except FileNotFoundError:
        return True
    if local_ledger.startswith(shared_ledger) or is_being_written(folder):
        return False
    if shared_ledger.startswith(local_ledger[: local_ledger.rfind(b"\n") + 1]):
        return True
    raise StorageError(
        f"run {folder.id} continued on another machine and differs from the copy here",
        remedy=f"move {str(folder.path)!r} away, and try again",
    )


def _write_folder(folder: RunFolder, ledger: bytes, files: Mapping[str, bytes]) -> None:
    for path in files:
        if not SHARED_PATH.fullmatch(path) or path == folder.ledger_path.name:
            raise StorageError(f"run {folder.id} in the database has an invalid path {path!r:.80}")
    for path, content in files.items():
        write_file_atomically(folder.path / path, content)
    log_change(folder.ledger_path)
    write_file_atomically(folder.ledger_path, ledger)  # last: without a ledger the folder is not a run
    log_change(folder.ledger_path)  # again, as the ledger was not locked while it was replaced
