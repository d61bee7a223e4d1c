"""Queries in the database of runs without SQLAlchemy, whose import takes longer than a query over 10,000 runs.

The statements are the same for SQLite and PostgreSQL. What is unusual, such as a database that does not exist yet or a
URL with options of its own, is left to `store`, which also explains errors.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.core.settings import Settings
from suture.storage.database.connection_options import (
    DATABASE_FILE,
    LATEST_VERSION,
    POSTGRESQL_ARGUMENTS,
    POSTGRESQL_OPTIONS,
    SELECT_VERSION,
)
from suture.storage.tuning import DATABASE_LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from suture.storage.database.store import Store

PARAMETER = re.compile(r":(\w+)")
PLAIN_URL = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://(?P<rest>[^?]*(?:\?host=[\w/.-]+)?)")
"""A URL that means the same to PostgreSQL's own library and to SQLAlchemy, without further options."""


class RunIndex:
    """An open database of runs.

    Args:
        connection: A connection of the module `sqlite3` or `psycopg`.
        namespace: Namespace of the rows that are read.
        location: The database, for people; without a password.
        is_beside_runs: Whether it is the file next to the runs, which has no rows of other machines.
    """

    def __init__(self, connection: Any, *, namespace: str, location: str, is_beside_runs: bool) -> None:
        self._connection = connection
        self.namespace = namespace
        self.location = location
        self.is_beside_runs = is_beside_runs
        self.is_postgresql = not isinstance(connection, sqlite3.Connection)
        self._is_snapshot = False

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement with parameters such as `:name`, commit it, and return its rows.

        Raises:
            StorageError: The database failed.
        """
        if self.is_postgresql:
            statement = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
        try:
            cursor = self._connection.execute(statement, parameters or {})
            rows = cursor.fetchall() if cursor.description else []
            if not self._is_snapshot:
                self._connection.commit()
        except Exception as fault:
            from suture.storage.database.store import explain_fault

            raise explain_fault(self.location, fault) from fault
        return rows

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the same state of the database with every statement in the `with` block."""
        self._is_snapshot = True
        try:
            self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ" if self.is_postgresql else "BEGIN")
            yield
        finally:
            self._is_snapshot = False
            with contextlib.suppress(Exception):  # the connection may be what has failed
                self._connection.rollback()


@contextlib.contextmanager
def open_run_index(settings: Settings) -> Iterator[RunIndex]:
    """Open the database that the settings name; raises as `open_configured_store`."""
    home = settings.paths.home
    connection = _connect(settings)
    if connection is not None:
        is_beside_runs = isinstance(connection, sqlite3.Connection)
        location = repr(str(home / DATABASE_FILE))
        if not is_beside_runs:
            location = repr(f"postgresql://{connection.info.host}/{connection.info.dbname}")
        with contextlib.closing(connection):
            yield RunIndex(
                connection,
                namespace=settings.store.namespace,
                location=location,
                is_beside_runs=is_beside_runs,
            )
        return
    from suture.storage.database.store import open_configured_store

    with open_configured_store(settings) as store, open_index_of_store(store, home) as index:
        yield index


@contextlib.contextmanager
def open_index_of_store(store: Store, home: Path) -> Iterator[RunIndex]:
    """Use a connection of an open store."""
    from suture.storage.database.store import map_database_errors

    with map_database_errors(store.location):
        connection = store.engine.raw_connection()
    with contextlib.closing(connection):
        yield RunIndex(
            connection.driver_connection,
            namespace=store.namespace,
            location=store.location,
            is_beside_runs=store.location == repr(str(home / DATABASE_FILE)),
        )


def _connect(settings: Settings) -> Any:
    """Connect to a database that has the current tables; return `None` if there is anything unusual."""
    url = settings.store.url or settings.store.fallback_url
    try:
        if not url:
            file = (settings.paths.home / DATABASE_FILE).absolute().as_uri()
            connection: Any = sqlite3.connect(
                f"{file}?mode=rw", uri=True, timeout=DATABASE_LOCK_TIMEOUT_S, isolation_level=None
            )
        elif match := PLAIN_URL.fullmatch(url):
            import psycopg  # slow to import, and most databases are SQLite

            connection = psycopg.connect(
                f"postgresql://{match['rest']}", options=POSTGRESQL_OPTIONS, **POSTGRESQL_ARGUMENTS
            )
        else:
            return None
        if connection.execute(SELECT_VERSION).fetchall() == [(LATEST_VERSION,)]:
            return connection
        connection.close()
    except Exception:  # of either module, or a package is missing: opening the store says what it is
        return None
    return None
