"""What a database refuses, as one line and a remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, inspect, make_url, text

from suture.core.settings import Settings
from suture.errors import PrerequisiteError, StorageError, UsageError

FULL = ("disk is full", "No space left", "disk I/O error", "could not extend file")
LOCKED = ("database is locked", "lock timeout")
NO_EXTENSION = ('extension "vector"',)
NO_DATABASE = ("file is not a database", "malformed")


@contextlib.contextmanager
def mapped(where: str) -> Iterator[None]:
    """Turn the database's own errors into one of ours.

    Args:
        where: The database, for people; without a password.

    Raises:
        StorageError: Anything that the engine or its driver raised.
    """
    try:
        yield
    except (exc.SQLAlchemyError, UnicodeError) as fault:
        said = str(getattr(fault, "orig", None) or fault).strip().splitlines()
        reason = said[0] if said else type(fault).__name__
        raise StorageError(f"the database {where} failed: {reason}", remedy=_remedy(fault, reason)) from fault


def _remedy(fault: Exception, reason: str) -> str:
    if any(sign in reason for sign in FULL):
        return "free some disk space; `suture db rebuild` makes up for what is missing"
    if any(sign in reason for sign in LOCKED):
        return "another process holds it; wait for it to end"
    if any(sign in reason for sign in NO_DATABASE):
        return "move the file away: `suture db rebuild` makes it anew from the runs"
    if any(sign in reason for sign in NO_EXTENSION):
        return (
            "install pgvector there, and have its administrator run `CREATE EXTENSION vector` in the database"
        )
    if isinstance(fault, (exc.OperationalError, exc.InterfaceError)) or _was_lost(fault):
        return "see that it runs and that store.url is right; runs keep their ledgers without it"
    return "see `suture db check`; runs keep their ledgers without it"


def _was_lost(fault: Exception) -> bool:
    return isinstance(fault, exc.DBAPIError) and fault.connection_invalidated


VERSIONS = ("0001", "0002", "0003", "0004")
"""Every version that was released, the oldest first; a test compares them with the scripts."""
NEWEST = VERSIONS[-1]
VERSION_TABLE = "suture_schema"
"""Alembic's own name for it may be another program's, where a database is shared."""
SCHEMA = "suture"
"""Of PostgreSQL, where the tables lie: another program in the same database may have a table `tasks`."""
MIGRATION_LOCK = 7_305_801_927_311_001
"""Of PostgreSQL's advisory locks: two processes that start at once migrate one after the other."""


def version_of(connection: Connection) -> str:
    """The version of a database's tables; empty where it has none of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return str(found or "")


def require_known(version: str, where: str) -> None:
    """Refuse a database that a newer Suture made.

    Raises:
        PrerequisiteError: It is of a version that is unknown here.
    """
    if version and version not in VERSIONS:
        raise PrerequisiteError(
            f"the database {where} has version {version!r}, and this Suture knows {NEWEST!r}",
            remedy="install the Suture that made it; nothing was changed",
        )


def upgrade(connection: Connection) -> None:
    """Make the tables, or bring them to the newest version, in the connection's transaction."""
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


def is_ours(_: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """Whether Alembic compares a thing with the tables: not indexes of words and vectors, or others'."""
    if kind == "table" and reflected and compare_to is None:
        return False
    return not (reflected and (name or "").rpartition("_")[2] in ("words", "vectors"))


DATABASE_FILE = "suture.db"
"""Beside the folder of runs."""
LOCK_WAIT_S = 30
PRIVATE = 0o700
"""As the runs are: it holds what they hold."""
CONNECT_WAIT_S = 5
TEXTS = "UTF8"
"""What texts are sent and read as; of a database that names no encoding (SQL_ASCII) they would be bytes."""
KEEPALIVES = "-ctcp_keepalives_idle=10 -ctcp_keepalives_interval=5 -ctcp_keepalives_count=3"
"""What a machine held that died is free after half a minute, and not after the server's two hours."""
EXTRA = "pip install 'suture[postgres]'"
DRIVER = "postgresql+psycopg"


class TablesMissing(PrerequisiteError):
    """A PostgreSQL has no tables of Suture's."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """An open database.

    Attributes:
        engine: SQLAlchemy's.
        namespace: Whose rows are read and written.
        where: What it is, for people; without a password.
    """

    engine: Engine
    namespace: str
    where: str

    @property
    def is_postgresql(self) -> bool:
        """Whether it is PostgreSQL; else it is SQLite."""
        return self.engine.dialect.name == "postgresql"

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads.

        Raises:
            StorageError: The database failed.
        """
        with mapped(self.where), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: all of it is kept, or nothing.

        Raises:
            StorageError: The database failed.
        """
        with (
            mapped(self.where),
            self.engine.connect().execution_options(suture_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Let go of all connections; safe to call twice."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str | None, home: Path, *, namespace: str = "default", init: bool = False) -> Store:
    """Open the database, whose tables are of the newest version afterwards.

    A file of SQLite is made and brought up to date without asking. PostgreSQL is shared, so its tables are
    made and changed by `suture db init` and `suture db upgrade` alone.

    Args:
        url: `sqlite:///FILE` or `postgresql://...`; the file beside the runs where not given.
        home: The folder of state.
        namespace: Whose rows are read and written.
        init: Whether tables of PostgreSQL are made or changed too.

    Raises:
        UsageError: The address is none, or of another kind of database.
        PrerequisiteError: The driver is not installed, the tables are missing (`TablesMissing`) or old, or a
            newer Suture made them.
        StorageError: The database cannot be reached, opened or written.
    """
    address = database_url(url, home)
    store = Store(engine=_engine(address), namespace=namespace, where=shown_url(address))
    try:
        with store.reading() as connection:
            version = version_of(connection)
        require_known(version, store.where)
        if version != NEWEST:
            _bring_up_to_date(store, version, may=init or not store.is_postgresql)
    except BaseException:
        store.close()
        raise
    return store


def store_of(settings: Settings, *, init: bool = False) -> Store:
    """Open the database that the settings name; raises as `open_store`.

    Args:
        settings: Its address is `store.url`; else `store.fallback_url`, which may be another program's and
            counts only where Suture's tables are in it; else the file beside the runs.
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
    """The address as SQLAlchemy has it.

    Raises:
        UsageError: It is no address of SQLite or PostgreSQL.
    """
    if not url:
        return URL.create("sqlite", database=str(home / DATABASE_FILE))
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError) as fault:
        raise UsageError(
            "store.url is no address of a database", remedy="such as postgresql://user@host/name"
        ) from fault
    kind = address.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return address.set(drivername=DRIVER)
    if kind == "sqlite" and address.database not in (None, "", ":memory:"):
        return address
    raise UsageError(
        f"store.url names a database {shown_url(address)!r} that Suture cannot use",
        remedy="sqlite:///FILE or postgresql://user@host/name",
    )


def shown_url(address: URL) -> str:
    """An address for people: a file's path, or host and name without a password."""
    if address.drivername.startswith("sqlite"):
        return repr(str(address.database))
    host = address.host or address.query.get("host") or "localhost"
    port = f":{address.port}" if address.port else ""
    return repr(f"postgresql://{host}{port}/{address.database or ''}")


def _engine(address: URL) -> Engine:
    if address.drivername.startswith("sqlite"):
        return _sqlite(address)
    arguments: dict[str, Any] = {"connect_timeout": CONNECT_WAIT_S, "application_name": "suture"}
    arguments["client_encoding"] = TEXTS
    if "options" not in address.query:
        arguments["options"] = f"-csearch_path={SCHEMA},public {KEEPALIVES}"
    try:
        import pgvector.sqlalchemy  # noqa: F401  # the columns need it

        return create_engine(address, connect_args=arguments, pool_pre_ping=True)
    except ImportError as fault:
        raise PrerequisiteError("PostgreSQL needs packages that are not installed", remedy=EXTRA) from fault


def _sqlite(address: URL) -> Engine:
    file = Path(str(address.database))
    try:
        file.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(
            f"the folder of {str(file)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    engine = create_engine(address, connect_args={"timeout": LOCK_WAIT_S})

    @event.listens_for(engine, "connect")
    def opened(connection: Any, _: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins and ends transactions, not the driver
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")  # what a power cut takes, the ledgers give back

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # A writer takes the lock at once: one that reads first could not wait for it later.
        writes = connection.get_execution_options().get("suture_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _bring_up_to_date(store: Store, version: str, *, may: bool) -> None:
    if not may:
        needed = f"Suture's tables are needed, and the database {store.where} has"
        if version:
            raise PrerequisiteError(f"{needed} version {version!r} of them", remedy="suture db upgrade")
        raise TablesMissing(f"{needed} none", remedy="suture db init")
    with store.writing() as connection:
        found = version_of(connection)  # another process may have been faster
        require_known(found, store.where)
        if found != NEWEST:
            upgrade(connection)
