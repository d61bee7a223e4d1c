"""Alembic reads this: the connection is handed in, so there is no file of settings."""

from __future__ import annotations

from alembic import context

from suture.storage.database.store import VERSION_TABLE, is_ours
from suture.storage.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    include_object=is_ours,
    transaction_per_migration=False,
)
context.run_migrations()
