"""Jobs in the database, and what callers have sent, for servers that share them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of jobs that servers share."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("request_key", sa.String(200), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False, server_default="0"),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("ended", sa.Text(), nullable=True),
        sa.Column("changed_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_namespace_changed_s", "jobs", ["namespace", "changed_s"])
    once = sa.text("request_key <> ''")
    op.create_index(
        "uq_jobs_request_key",
        "jobs",
        ["namespace", "caller", "request_key"],
        unique=True,
        postgresql_where=once,
        sqlite_where=once,
    )
    working = sa.text("ended IS NULL AND kind <> 'verify'")
    op.create_index(
        "uq_jobs_working", "jobs", ["run_id"], unique=True, postgresql_where=working, sqlite_where=working
    )
    op.create_table(
        "sent_archives",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sent_archives"),
    )
