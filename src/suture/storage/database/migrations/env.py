"""The entry point that Alembic runs: it takes the open connection from the caller, not from a file."""

from __future__ import annotations

from alembic import context

from suture.storage.database.connection_options import VERSION_TABLE
from suture.storage.database.store import is_compared_by_alembic
from suture.storage.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    include_object=is_compared_by_alembic,
    transaction_per_migration=False,
)
context.run_migrations()
