"""The first tables, and the index of words beside five of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from suture.storage.database.tables import Embedding

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
SEARCHED = ("tasks", "iterations", "failures", "patterns", "lessons")


def upgrade() -> None:
    """Make the tables of the first version."""
    _of_runs()
    for name in ("failures", "patterns", "lessons"):
        _remembered(name)
    make = _words_of_postgresql if op.get_bind().dialect.name == "postgresql" else _words_of_sqlite
    for name in SEARCHED:
        make(name)


def _of_runs() -> None:
    op.create_table(
        "tasks",
        *_of_a_run(),
        _word("kind"),
        _text("statement"),
        *(_word(name) for name in ("language", "recipe", "model", "sandbox")),
        _text("project"),
        _word("outcome"),
        _text("reason"),
        _word("evidence"),
        _number("confidence"),
        *(
            _count(name)
            for name in ("attempts", "tokens", "prompt_tokens", "completion_tokens", "model_calls")
        ),
        _number("money"),
        _number("seconds"),
        sa.Column("started_s", sa.Double(), nullable=True),
        sa.Column("ended_s", sa.Double(), nullable=True),
        _word("fork_of"),
        sa.Column("fork_at", sa.Integer(), nullable=True),
        _word("replay_of"),
        _count("events"),
        _count("ledger_bytes"),
        _text("searched"),
        *_keys("tasks", "run_id"),
    )
    op.create_index("ix_tasks_namespace_started_s", "tasks", ["namespace", "started_s"])
    op.create_table(
        "iterations",
        *_of_a_run(),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        _word("move"),
        *(_count(name) for name in ("candidates", "passed", "failed", "tokens", "model_calls")),
        sa.Column("started_s", sa.Double(), nullable=False),
        _number("seconds"),
        _word("error_kind"),
        _text("error"),
        _text("searched"),
        *_keys("iterations", "run_id", "number"),
    )
    op.create_table(
        "metrics",
        *_of_a_run(),
        _word("name"),
        _word("phase"),
        _number("value"),
        *_keys("metrics", "run_id", "name", "phase"),
    )
    op.create_index("ix_metrics_namespace_name", "metrics", ["namespace", "name"])
    op.create_table(
        "approvals",
        *_of_a_run(),
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


def _remembered(name: str) -> None:
    op.create_table(
        name,
        *_of_a_run(),
        sa.Column("event_seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        *(_word(column) for column in ("source", "state", "language", "kind")),
        *(
            _text(column)
            for column in (
                *("text", "error_signature", "counterexample", "diagnosis", "code_shape", "patch", "tests"),
            )
        ),
        sa.Column("mended", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_s", sa.Double(), nullable=False),
        _word("embedder"),
        sa.Column("vector", Embedding(), nullable=True),
        *(_count(column) for column in ("recalled", "withheld", "healed_recalled", "healed_withheld")),
        sa.Column("details", sa.JSON(), nullable=False, server_default="{}"),
        _text("searched"),
        *_keys(name, "key"),
    )
    for columns in (["namespace", "state", "kind"], ["namespace", "run_id"], ["namespace", "embedder"]):
        op.create_index(f"ix_{name}_{'_'.join(columns)}", name, columns)


def _of_a_run() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("run_id", sa.String(200), nullable=False),
    )


def _keys(table: str, *columns: str) -> tuple[sa.Constraint, ...]:
    named = ("namespace", *columns)
    return (
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint(*named, name=f"uq_{table}_{'_'.join(named)}"),
    )


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False, server_default="")


def _word(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(200), nullable=False, server_default="")


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=False, server_default="0")


def _words_of_postgresql(table: str) -> None:
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN words tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple', searched)) STORED"
    )
    op.execute(f"CREATE INDEX ix_{table}_words ON {table} USING gin (words)")


def _words_of_sqlite(table: str) -> None:
    """An FTS5 table that keeps no text of its own; triggers keep it so (SQLite's manual, FTS5 4.4.3)."""
    words = f"{table}_words"
    gone = f"INSERT INTO {words}({words}, rowid, searched) VALUES ('delete', old.id, old.searched);"
    come = f"INSERT INTO {words}(rowid, searched) VALUES (new.id, new.searched);"
    op.execute(f"CREATE VIRTUAL TABLE {words} USING fts5(searched, content='{table}', content_rowid='id')")
    op.execute(f"CREATE TRIGGER {words}_ai AFTER INSERT ON {table} BEGIN {come} END")
    op.execute(f"CREATE TRIGGER {words}_ad AFTER DELETE ON {table} BEGIN {gone} END")
    op.execute(f"CREATE TRIGGER {words}_au AFTER UPDATE OF searched ON {table} BEGIN {gone} {come} END")
