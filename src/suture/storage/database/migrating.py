"""Which version of the schema a database has, and how it gets the newest.

Alembic takes a second to import: it is loaded only where something is to be made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from suture.errors import PrerequisiteError

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
