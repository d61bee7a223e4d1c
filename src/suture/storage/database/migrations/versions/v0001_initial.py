"""The first version of the schema: projections of ledgers, memories, shared runs and shared jobs."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

from suture.storage.database.tables import Embedding

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MEMORY_TABLES = ("failures", "patterns", "lessons")
SEARCHED_TABLES = ("tasks", "iterations", *MEMORY_TABLES)
VECTOR_METHOD, VECTOR_DIMENSIONS = "hashed-ngrams:1:512", 512


def upgrade() -> None:
    """Create all tables, and their full-text and vector indexes."""
    _create_run_tables()
    for name in MEMORY_TABLES:
        _create_memory_table(name)
    _create_shared_run_tables()
    _create_shared_job_tables()
    if op.get_bind().dialect.name == "postgresql":
        for name in SEARCHED_TABLES:
            _index_words_postgresql(name)
        for name in MEMORY_TABLES:
            _index_vectors_postgresql(name)
    else:
        for name in SEARCHED_TABLES:
            _index_words_sqlite(name)


def _create_run_tables() -> None:
    op.create_table(
        "tasks",
        *_run_columns(),
        _word("kind"),
        _text("statement"),
        _word("language"),
        _word("recipe"),
        _word("model"),
        _word("sandbox"),
        _text("project"),
        _word("outcome"),
        _text("reason"),
        _word("evidence"),
        _number("confidence"),
        _count("attempts"),
        _count("tokens"),
        _count("prompt_tokens"),
        _count("completion_tokens"),
        _count("model_calls"),
        _number("money"),
        _number("seconds"),
        sa.Column("started_s", sa.Double(), nullable=True),
        sa.Column("ended_s", sa.Double(), nullable=True),
        _word("fork_of"),
        sa.Column("fork_at", sa.Integer(), nullable=True),
        _word("replay_of"),
        _count("events"),
        _count("ledger_bytes"),
        _text("search_text"),
        *_keys("tasks", "run_id"),
    )
    op.create_index("ix_tasks_namespace_started_s", "tasks", ["namespace", "started_s"])
    op.create_table(
        "iterations",
        *_run_columns(),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        _word("move"),
        _count("candidates"),
        _count("passed"),
        _count("failed"),
        _count("tokens"),
        _count("model_calls"),
        sa.Column("started_s", sa.Double(), nullable=False),
        _number("seconds"),
        _word("error_kind"),
        _text("error"),
        _text("search_text"),
        *_keys("iterations", "run_id", "number"),
    )
    op.create_table(
        "metrics",
        *_run_columns(),
        _word("name"),
        _word("phase"),
        _number("value"),
        *_keys("metrics", "run_id", "name", "phase"),
    )
    op.create_index("ix_metrics_namespace_name", "metrics", ["namespace", "name"])
    op.create_table(
        "approvals",
        *_run_columns(),
        sa.Column("event_seq", sa.Integer(), nullable=False),
        _word("question"),
        _word("stage"),
        _text("subject"),
        _word("choice"),
        _text("hint"),
        sa.Column("asked_s", sa.Double(), nullable=False),
        sa.Column("answered_s", sa.Double(), nullable=True),
        *_keys("approvals", "run_id", "event_seq"),
    )


def _create_memory_table(name: str) -> None:
    op.create_table(
        name,
        *_run_columns(),
        sa.Column("event_seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        _word("source"),
        _word("state"),
        _word("language"),
        _word("kind"),
        _text("text"),
        _text("error_signature"),
        _text("counterexample"),
        _text("diagnosis"),
        _text("code_shape"),
        _text("patch"),
        _text("tests"),
        sa.Column("repaired", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_s", sa.Double(), nullable=False),
        _word("embedder"),
        sa.Column("vector", Embedding(), nullable=True),
        _count("recalled"),
        _count("healed_recalled"),
        sa.Column("details", sa.JSON(), nullable=False, server_default="{}"),
        _text("search_text"),
        *_keys(name, "key"),
    )
    for columns in (["namespace", "state", "kind"], ["namespace", "run_id"], ["namespace", "embedder"]):
        op.create_index(f"ix_{name}_{'_'.join(columns)}", name, columns)


def _create_shared_run_tables() -> None:
    op.create_table(
        "run_files",
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("path", sa.String(400), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "path", name="pk_run_files"),
    )
    op.create_table(
        "ledger_chunks",
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "start", name="pk_ledger_chunks"),
    )


def _create_shared_job_tables() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("request_key", sa.String(200), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False, server_default="0"),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("changed_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_namespace_changed_s", "jobs", ["namespace", "changed_s"])
    has_key = sa.text("request_key <> ''")
    op.create_index(
        "uq_jobs_request_key",
        "jobs",
        ["namespace", "caller", "request_key"],
        unique=True,
        postgresql_where=has_key,
        sqlite_where=has_key,
    )
    is_active = sa.text("ending IS NULL AND kind <> 'verify'")
    op.create_index(
        "uq_jobs_active_run",
        "jobs",
        ["run_id"],
        unique=True,
        postgresql_where=is_active,
        sqlite_where=is_active,
    )
    op.create_table(
        "uploaded_archives",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_uploaded_archives"),
    )


def _run_columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("run_id", sa.String(200), nullable=False),
    )


def _keys(table: str, *columns: str) -> tuple[sa.Constraint, ...]:
    names = ("namespace", *columns)
    return (
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint(*names, name=f"uq_{table}_{'_'.join(names)}"),
    )


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False, server_default="")


def _word(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(200), nullable=False, server_default="")


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=False, server_default="0")


def _index_words_postgresql(table: str) -> None:
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN words tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple', search_text)) STORED"
    )
    op.execute(f"CREATE INDEX ix_{table}_words ON {table} USING gin (words)")


def _index_words_sqlite(table: str) -> None:
    """Create an FTS5 table without texts of its own, and triggers that keep it up to date.

    The triggers follow section 4.4.3 of SQLite's FTS5 manual ("External Content Tables").
    """
    words = f"{table}_words"
    remove = f"INSERT INTO {words}({words}, rowid, search_text) VALUES ('delete', old.id, old.search_text);"
    add = f"INSERT INTO {words}(rowid, search_text) VALUES (new.id, new.search_text);"
    op.execute(f"CREATE VIRTUAL TABLE {words} USING fts5(search_text, content='{table}', content_rowid='id')")
    op.execute(f"CREATE TRIGGER {words}_ai AFTER INSERT ON {table} BEGIN {add} END")
    op.execute(f"CREATE TRIGGER {words}_ad AFTER DELETE ON {table} BEGIN {remove} END")
    op.execute(f"CREATE TRIGGER {words}_au AFTER UPDATE OF search_text ON {table} BEGIN {remove} {add} END")


def _index_vectors_postgresql(table: str) -> None:
    """Create the HNSW index of the vectors; SQLite compares all of them instead."""
    digest = hashlib.sha256(VECTOR_METHOD.encode()).hexdigest()[:8]
    literal = VECTOR_METHOD.replace(":", r"\:")
    op.execute(
        f"CREATE INDEX ix_{table}_{digest}_vectors ON {table} "
        f"USING hnsw ((vector::vector({VECTOR_DIMENSIONS})) vector_ip_ops) WHERE embedder = '{literal}'"
    )
