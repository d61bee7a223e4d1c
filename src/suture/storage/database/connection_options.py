"""What both ways of connecting to the database share: `store`, and `run_index`, which does without SQLAlchemy."""

from __future__ import annotations

from typing import Any

from suture.storage.tuning import CONNECT_TIMEOUT_S

DATABASE_FILE = "suture.db"
"""The file name of the SQLite database, which is next to the folder of runs."""
VERSIONS = ("5",)
"""All schema versions, the oldest first; a test compares them with the migration scripts."""
LATEST_VERSION = VERSIONS[-1]
VERSION_TABLE = "suture_schema"
"""Not Alembic's default name, which another program in a shared database may use."""
SELECT_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
SCHEMA = "suture"
"""PostgreSQL schema of the tables: another program in the same database may have a table `tasks`."""
KEEPALIVES = "-ctcp_keepalives_idle=10 -ctcp_keepalives_interval=5 -ctcp_keepalives_count=3"
"""Locks of a machine that died are released after half a minute; the server's default is two hours."""
CLIENT_ENCODING = "UTF8"
"""Requested explicitly: a database without an encoding (SQL_ASCII) would return bytes."""
POSTGRESQL_ARGUMENTS: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "application_name": "suture",
    "client_encoding": CLIENT_ENCODING,
}
POSTGRESQL_OPTIONS = f"-csearch_path={SCHEMA},public {KEEPALIVES}"
"""Options in the user's URL replace all of these."""
