"""The second version of the schema: a run's row knows the time of its ledger, not only the size."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column. Its value 0 differs from any ledger's time, so that all runs are read again."""
    column = sa.Column("ledger_mtime_ns", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("tasks", column)
