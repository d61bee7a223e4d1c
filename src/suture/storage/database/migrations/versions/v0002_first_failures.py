"""Add the tests that failed at first to `tasks`."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Text, inspect, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns, unless revision 0001 has just created the table with them, and have all runs read again."""
    if "failing" in {column["name"] for column in inspect(op.get_bind()).get_columns("tasks")}:
        return
    op.add_column("tasks", Column("failing", BigInteger, nullable=False, server_default="0"))
    op.add_column("tasks", Column("failing_test", Text, nullable=False, server_default=""))
    op.execute(text("UPDATE tasks SET ledger_bytes = -1"))
