"""One interface over two engines: SQLite in a file next to the runs, or PostgreSQL by its URL.

It also migrates the schema and maps the engines' errors. It imports SQLAlchemy, which takes half a second, so
nothing imports it before a database is needed; Alembic takes a second and is imported only for a migration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, inspect, make_url, text

from suture.core.installation import format_install_command
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.database.connection_options import (
    DATABASE_FILE,
    LATEST_VERSION,
    POSTGRESQL_ARGUMENTS,
    POSTGRESQL_OPTIONS,
    SCHEMA,
    SELECT_VERSION,
    VERSION_TABLE,
    VERSIONS,
)
from suture.storage.tuning import DATABASE_LOCK_TIMEOUT_S

REMEDIES = (
    (
        ("disk is full", "No space left", "disk I/O error", "could not extend file"),
        "free some disk space; `suture db rebuild` restores what is missing",
    ),
    (("database is locked", "lock timeout"), "another process holds it; wait for it to end"),
    (
        ("file is not a database", "malformed"),
        "move the file away: `suture db rebuild` makes it again from the runs",
    ),
    (
        ('extension "vector"',),
        "install pgvector there, and have its administrator run `CREATE EXTENSION vector` in the database",
    ),
    (
        ("hnsw",),
        "install pgvector 0.8 or later there, and run `ALTER EXTENSION vector UPDATE` in the database",
    ),
)
"""Pairs `(phrases in an engine's message, what the user can do)`."""


@contextlib.contextmanager
def map_database_errors(location: str) -> Iterator[None]:
    """Turn the database's errors into `StorageError`; `location` names the database without a password."""
    try:
        yield
    except (exc.SQLAlchemyError, UnicodeError) as fault:
        raise explain_fault(location, fault) from fault


def explain_fault(location: str, fault: Exception) -> StorageError:
    """Return the error of a database, from SQLAlchemy or from a driver, as one that says what to do."""
    original = getattr(fault, "orig", None) or fault
    message_lines = str(original).strip().splitlines()
    reason = message_lines[0] if message_lines else type(fault).__name__
    return StorageError(f"the database {location} failed: {reason}", remedy=_find_remedy(fault, reason))


def _find_remedy(fault: Exception, reason: str) -> str:
    for phrases, remedy in REMEDIES:
        if any(phrase in reason for phrase in phrases):
            return remedy
    connection_lost = isinstance(fault, exc.DBAPIError) and fault.connection_invalidated
    # SQLAlchemy's classes are called as those of the drivers.
    class_names = {base.__name__ for base in type(fault).__mro__}
    if connection_lost or class_names & {"OperationalError", "InterfaceError"}:
        return "check that it runs and that store.url is right; runs keep their ledgers without it"
    return "see `suture db check`; runs keep their ledgers without it"


MIGRATION_LOCK = 7_305_801_927_311_001
"""PostgreSQL advisory lock: processes that start at the same time migrate one after the other. The number is
arbitrary; locks of other programs in the database should have other numbers."""


def schema_version_of(connection: Connection) -> str:
    """Return the version of a database's tables; empty if it has none of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    version = connection.execute(text(SELECT_VERSION)).scalar()
    return str(version or "")


def upgrade_schema(connection: Connection) -> None:
    """Create the tables, or migrate them to the latest version, in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"))
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def is_compared_by_alembic(_: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """Return whether Alembic compares an object with the tables.

    Indexes that SQLAlchemy cannot declare for both engines, and tables of other programs, are not compared.
    """
    if kind == "table" and reflected and compare_to is None:
        return False
    return not (reflected and (name or "").endswith(("words", "near_signatures")))


DRIVER = "postgresql+psycopg"


class TablesMissing(PrerequisiteError):
    """A PostgreSQL database has none of Suture's tables."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """An open database.

    Attributes:
        namespace: Namespace of the rows that are read and written.
        location: The database, for people; without a password.
    """

    engine: Engine
    namespace: str
    location: str

    @property
    def is_postgresql(self) -> bool:
        """Return whether the engine is PostgreSQL; otherwise it is SQLite."""
        return self.engine.dialect.name == "postgresql"

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """Open a transaction for reading; a database error becomes a `StorageError`."""
        with map_database_errors(self.location), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a transaction for writing, which is committed as a whole or not at all.

        A database error becomes a `StorageError`.
        """
        with (
            map_database_errors(self.location),
            self.engine.connect().execution_options(suture_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str | None, home: Path, *, namespace: str = "default", init: bool = False) -> Store:
    """Open the database with tables of the latest version.

    A SQLite file is created and migrated without asking. PostgreSQL is shared, so its tables are created and
    changed only by `suture db init` and `suture db upgrade`.

    Args:
        url: `sqlite:///FILE` or `postgresql://...`; by default the file next to the runs.
        home: The folder of state.
        namespace: Namespace of the rows that are read and written.
        init: Whether PostgreSQL tables may be created or changed too.

    Raises:
        UsageError: The URL is invalid, or of another kind of database.
        PrerequisiteError: The driver is not installed; or the tables are missing (`TablesMissing`), old, or
            of an unknown version.
        StorageError: The database cannot be reached, opened or written.
    """
    address = database_url(url, home)
    store = Store(engine=_create_engine(address), namespace=namespace, location=format_url(address))
    try:
        with store.read_transaction() as connection:
            version = schema_version_of(connection)
        _require_known_version(store, version)
        if version != LATEST_VERSION:
            if store.is_postgresql and not init:
                problem = f"Suture's tables are needed, and the database {store.location} has"
                if version:
                    raise PrerequisiteError(
                        f"{problem} version {version!r} of them", remedy="suture db upgrade"
                    )
                raise TablesMissing(f"{problem} none", remedy="suture db init")
            _migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def open_configured_store(settings: Settings, *, init: bool = False) -> Store:
    """Open the database that the settings name; raises as `open_store`.

    Args:
        settings: `store.url` is used first; then `store.fallback_url`, which may belong to another program
            and is used only if it has Suture's tables; then the file next to the runs.
        init: As in `open_store`.
    """
    home, namespace = settings.paths.home, settings.store.namespace
    if settings.store.url is None and settings.store.fallback_url:
        try:
            return open_store(settings.store.fallback_url, home, namespace=namespace, init=init)
        except TablesMissing:
            pass
    return open_store(settings.store.url, home, namespace=namespace, init=init)


def database_url(url: str | None, home: Path) -> URL:
    """Parse a database URL for SQLAlchemy; refuse any but those of SQLite and PostgreSQL."""
    if not url:
        return URL.create("sqlite", database=str(home / DATABASE_FILE))
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError) as fault:
        raise UsageError(
            "store.url is not the URL of a database", remedy="such as postgresql://user@host/name"
        ) from fault
    kind = address.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return address.set(drivername=DRIVER)
    if kind == "sqlite" and address.database not in (None, "", ":memory:"):
        return address
    raise UsageError(
        f"store.url names a database {format_url(address)!r} that Suture cannot use",
        remedy="sqlite:///FILE or postgresql://user@host/name",
    )


def format_url(address: URL) -> str:
    """Return a URL for people: a file's path, or host and name without a password."""
    if address.drivername.startswith("sqlite"):
        return repr(str(address.database))
    host = address.host or address.query.get("host") or "localhost"
    port = f":{address.port}" if address.port else ""
    return repr(f"postgresql://{host}{port}/{address.database or ''}")


def _create_engine(address: URL) -> Engine:
    if address.drivername.startswith("sqlite"):
        return _create_sqlite_engine(address)
    arguments: dict[str, Any] = dict(POSTGRESQL_ARGUMENTS)
    if "options" not in address.query:
        arguments["options"] = POSTGRESQL_OPTIONS
    try:
        import pgvector.sqlalchemy  # noqa: F401  # the columns need it

        return create_engine(address, connect_args=arguments, pool_pre_ping=True)
    except ImportError as fault:
        raise PrerequisiteError(
            "PostgreSQL needs packages that are not installed", remedy=format_install_command("postgres")
        ) from fault


def _create_sqlite_engine(address: URL) -> Engine:
    file = Path(str(address.database))
    try:
        file.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(
            f"the folder of {str(file)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    engine = create_engine(address, connect_args={"timeout": DATABASE_LOCK_TIMEOUT_S})

    @event.listens_for(engine, "connect")
    def configure_connection(connection: Any, _: object) -> None:
        connection.isolation_level = None  # SQLAlchemy controls transactions, not the driver
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")  # rows lost in a power cut are rebuilt from ledgers

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        # A writer locks at once: SQLite fails instead of waiting if a reader upgrades to a writer.
        writes = connection.get_execution_options().get("suture_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _require_known_version(store: Store, version: str) -> None:
    """Refuse tables of a newer Suture, or of a checkout from before the first release."""
    if not version or version in VERSIONS:
        return
    if store.is_postgresql:  # which may hold the only copy of shared runs
        replacement = "set store.url to another database and run `suture db init`"
    else:
        replacement = "delete the file and run `suture db rebuild`, which reads the runs from their folders"
    raise PrerequisiteError(
        f"the database {store.location} has version {version!r}, and this Suture reads {LATEST_VERSION!r}",
        remedy=f"install the Suture that made it if it is newer; otherwise {replacement}; nothing was changed",
    )


def _migrate(store: Store) -> None:
    with store.write_transaction() as connection:
        version = schema_version_of(connection)  # another process may have migrated in the meantime
        _require_known_version(store, version)
        if version != LATEST_VERSION:
            upgrade_schema(connection)
