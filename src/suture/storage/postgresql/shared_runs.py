"""Run folders that lie in PostgreSQL too, so that another machine can go on with a run.

The folder on this machine stays what the run works with. Whatever is new in it is sent before the run goes
on: a reply before anyone uses it, events before the next step. One process holds a run, wherever it is.
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
from suture.core.ledger.run_folder import PRIVATE
from suture.core.safe_files import write_atomically
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.storage.database.store import Store, mapped, open_store
from suture.storage.database.tables import run_files, run_lines

RUN_ID = re.compile(r"[\w-]{1,100}")
FILE = re.compile(r"(?:[\w-][\w.-]{0,127}/){0,2}[\w-][\w.-]{0,127}")
"""Of a path that may come from the database: it says where this machine writes."""
UNFINISHED = ".partial-"
RETAKEN, PAUSE_S = 25, 0.2
"""A server may see only after a while that a connection was lost, and holds the run for it until then."""
LOCK = "hashtextextended('suture run ' || :run, 0)"


class SharedRun:
    """One run's folder, as far as it has been sent; nobody else writes the run while this is open.

    Raises:
        UsageError: Another process, here or elsewhere, writes this run.
        StorageError: The database failed, or holds something else of this run.
    """

    def __init__(self, store: Store, folder: RunFolder) -> None:
        self._store = store
        self._folder = folder
        self._files: dict[str, tuple[int, int]] = {}
        self._sent_bytes = 0
        self._connection = self._held()

    def _held(self, tries: int = 1) -> Connection:
        run = {"run": self._folder.id}
        with mapped(self._store.where):
            connection = self._store.engine.connect()
            try:
                while not connection.execute(text(f"SELECT pg_try_advisory_lock({LOCK})"), run).scalar():
                    tries -= 1
                    if tries <= 0:
                        raise UsageError(
                            f"another process is writing run {self._folder.id}", remedy="wait for it to end"
                        )
                    time.sleep(PAUSE_S)
                self._sent_bytes = self._already_sent(connection)
                connection.commit()
            except BaseException:
                connection.close()
                raise
        return connection

    def _already_sent(self, connection: Connection) -> int:
        shared = ledger_in(connection, self._folder.id)
        if not self._ledger().startswith(shared):
            raise StorageError(
                f"run {self._folder.id} has gone on elsewhere, and otherwise than here",
                remedy="move this machine's folder of it away, and resume it again",
            )
        return len(shared)

    def _ledger(self) -> bytes:
        try:
            return self._folder.ledger_path.read_bytes()
        except FileNotFoundError:
            return b""

    def push(self) -> None:
        """Send what is new; a connection that was lost is made once more.

        Raises:
            UsageError: Another process has taken the run over meanwhile.
            StorageError: The database failed; what is here stays here, and is sent when the run goes on.
        """
        try:
            self._send()
        except StorageError:
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._held(tries=RETAKEN)
            self._send()

    def _send(self) -> None:
        new = dict(self._new_files())
        ledger = self._ledger()[self._sent_bytes :]
        whole = ledger[: ledger.rfind(b"\n") + 1]
        run = self._folder.id
        with mapped(self._store.where), self._connection.begin():
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
                    run_lines.insert().values(run_id=run, start=self._sent_bytes, content=whole)
                )
        self._files.update(new)
        self._sent_bytes += len(whole)

    def _new_files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for place, _, names in os.walk(self._folder.path):
            for name in names:
                file = Path(place) / name
                path = file.relative_to(self._folder.path).as_posix()
                if file == self._folder.ledger_path or name.startswith(UNFINISHED) or file.is_symlink():
                    continue
                about = file.stat()
                stamp = (about.st_mtime_ns, about.st_size)
                if self._files.get(path) != stamp and FILE.fullmatch(path):
                    yield path, stamp

    def close(self) -> None:
        """Let others go on with the run."""
        self._connection.close()
        self._store.close()


def open_shared(settings: Settings, folder: RunFolder) -> SharedRun:
    """Hold a run in the database of the settings; raises as `SharedRun` and `open_store`."""
    store = shared_store(settings)
    try:
        shared = SharedRun(store, folder)
    except BaseException:
        store.close()
        raise
    return shared


def shared_store(settings: Settings) -> Store:
    """The database that runs are shared in.

    Raises:
        UsageError: `store.url` names no PostgreSQL.
        PrerequisiteError: Its tables are missing, or the driver is.
        StorageError: It cannot be reached.
    """
    store = open_store(settings.store.url, settings.paths.home, namespace=settings.store.namespace)
    if store.is_postgresql:
        return store
    store.close()
    raise UsageError(
        "store.runs is `database`, and store.url names no PostgreSQL",
        remedy="set SUTURE_DATABASE_URL=postgresql://..., or store.runs=local",
    )


def ledger_in(connection: Connection, run: str) -> bytes:
    """A run's ledger as the database holds it; empty where it holds none.

    Raises:
        StorageError: A piece of it is missing.
    """
    pieces = connection.execute(
        select(run_lines.c.start, run_lines.c.content)
        .where(run_lines.c.run_id == run)
        .order_by(run_lines.c.start)
    ).all()
    content = b"".join(piece.content for piece in pieces)
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece.content))
    if [piece.start for piece in pieces] != ends[:-1]:
        raise StorageError(f"the ledger of run {run} in the database has a gap")
    return content


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
