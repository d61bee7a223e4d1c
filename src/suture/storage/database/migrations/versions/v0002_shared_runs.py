"""Run folders in the database, for those who share them between machines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of files and ledger lines of shared runs."""
    op.create_table(
        "run_files",
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("path", sa.String(400), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "path", name="pk_run_files"),
    )
    op.create_table(
        "run_lines",
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "start", name="pk_run_lines"),
    )
