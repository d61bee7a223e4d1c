"""The tables: projections of ledgers, memories, and runs and jobs that machines share.

Each row belongs to a namespace (a team or a project). Times are seconds since the epoch, as in ledgers. The column
`tasks.search_text` holds the words of a full-text index, see `run_queries`.
"""

from __future__ import annotations

import struct
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from suture.storage.tuning import VECTOR_DIMENSIONS


class SafeText(TypeDecorator[str]):
    """Text from anywhere: PostgreSQL accepts no zero byte, and neither engine a lone surrogate."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Convert a Python value to a stored one."""
        return None if value is None else sanitise_text(value)


class SafeWord(TypeDecorator[str]):
    """A short string, such as a name; it is cut at the column's length."""

    impl = String
    cache_ok = True

    def __init__(self, length: int = 200) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Convert a Python value to a stored one."""
        return None if value is None else sanitise_text(value)[: self._length]


def sanitise_text(text: str) -> str:
    """Replace characters that an engine does not accept by a replacement character or `?`."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


class Embedding(TypeDecorator[Any]):
    """A float32 vector: pgvector's `vector` in PostgreSQL, little-endian bytes in SQLite.

    It accepts any sequence of numbers. pgvector compares vectors, or `recall` reads their bytes.
    """

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return pgvector's type, or bytes."""
        if dialect.name == "postgresql":
            from pgvector.sqlalchemy import Vector

            return dialect.type_descriptor(Vector())
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Convert a Python value to a stored one."""
        if value is None:
            return None
        if dialect.name == "postgresql":
            return [float(number) for number in value]
        return struct.pack(f"<{len(value)}f", *value)


class BitString(TypeDecorator[bytes]):
    """One bit for each position of a vector: `bit` in PostgreSQL, bytes in SQLite."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return PostgreSQL's type, or bytes."""
        if dialect.name == "postgresql":
            from sqlalchemy.dialects import postgresql  # slow to import, and most databases are SQLite

            return dialect.type_descriptor(postgresql.BIT(VECTOR_DIMENSIONS))
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> Any:
        """Convert a Python value to a stored one."""
        if value is None or dialect.name != "postgresql":
            return value
        return f"{int.from_bytes(value, 'big'):0{VECTOR_DIMENSIONS}b}"


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
ID = BigInteger().with_variant(Integer, "sqlite")


def _text(name: str) -> Column[Any]:
    return Column(name, SafeText, nullable=False, default="", server_default="")


def _word(name: str) -> Column[Any]:
    return Column(name, SafeWord, nullable=False, default="", server_default="")


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, default=0, server_default="0")


def _number(name: str) -> Column[Any]:
    return Column(name, Double, nullable=False, default=0.0, server_default="0")


def _partial_index(condition: str) -> dict[str, Any]:
    """Return the options of an index on the rows that meet a condition."""
    return {"postgresql_where": text(condition), "sqlite_where": text(condition)}


def _run_columns() -> tuple[Column[Any], ...]:
    return (
        Column("id", ID, primary_key=True, autoincrement=True),
        Column("namespace", String(200), nullable=False),
        Column("run_id", String(200), nullable=False),
    )


tasks = Table(
    "tasks",
    METADATA,
    *_run_columns(),
    _word("kind"),  # write, heal
    _text("statement"),
    _word("language"),
    _word("recipe"),
    _word("model"),
    _word("sandbox"),
    _text("project"),
    _word("outcome"),  # an outcome, or the state of a run without one, as `suture history` shows it
    _word("delivery"),  # applied, committed, undone; empty if the change was never written into the project
    _text("reason"),
    _word("evidence"),
    _number("confidence"),
    _count("failing"),  # tests that failed at first
    _text("failing_test"),  # the first of them
    _count("attempts"),
    _count("tokens"),
    _count("prompt_tokens"),
    _count("completion_tokens"),
    _count("model_calls"),
    _number("money"),
    _number("seconds"),
    Column("started_s", Double, nullable=True),
    Column("ended_s", Double, nullable=True),
    _word("fork_of"),
    Column("fork_at", Integer, nullable=True),
    _word("replay_of"),
    _count("events"),
    _count("ledger_bytes"),  # size of the ledger when it was read; if it differs, the row is stale
    _count("ledger_mtime_ns"),  # the same for its time; it differs between the machines that share a run
    _text("search_text"),
    UniqueConstraint("namespace", "run_id"),
    Index(None, "namespace", "started_s", "run_id"),
    # What the totals of all runs are computed from, so that the wide rows are not read for them.
    Index(None, "namespace", "outcome", "started_s", "seconds", "tokens", "money"),
)
"""One row per run."""

iterations = Table(
    "iterations",
    METADATA,
    *_run_columns(),
    Column("number", Integer, nullable=False),  # the decision's number from 1; 0 for the baseline run
    Column("round", Integer, nullable=False),
    _word("move"),  # kinds of its moves in order, separated by commas
    _count("candidates"),
    _count("passed"),  # checks that the iteration's best candidate passes
    _count("failed"),
    _count("tokens"),
    _count("model_calls"),
    Column("started_s", Double, nullable=False),
    _number("seconds"),
    _word("error_kind"),  # an exception's type, a `FailureCode` or an `ErrorKind`; empty if nothing failed
    _text("error"),
    UniqueConstraint("namespace", "run_id", "number"),
    Index(None, "namespace", "move", "seconds"),
)
"""One row per decision that was carried out, with its result."""

metrics = Table(
    "metrics",
    METADATA,
    *_run_columns(),
    _word("name"),  # {tokens,calls}_by_{role,move}, seconds, errors, candidates
    _word("phase"),  # a role, a phase of the run, an error kind
    _number("value"),
    UniqueConstraint("namespace", "run_id", "name", "phase"),
    Index(None, "namespace", "name", "phase", "value"),
)
"""Numbers of a run, by phase."""

approvals = Table(
    "approvals",
    METADATA,
    *_run_columns(),
    Column("event_seq", Integer, nullable=False),
    _word("question"),  # the question's key
    _word("stage"),
    _text("subject"),
    _word("choice"),  # empty until a person answers
    _text("hint"),
    Column("asked_s", Double, nullable=False),
    Column("answered_s", Double, nullable=True),
    UniqueConstraint("namespace", "run_id", "event_seq"),
)
"""Questions to people, and their answers."""


def _memory_table(name: str) -> Table:
    """Return a table of memory items; all three have the same columns."""
    return Table(
        name,
        METADATA,
        *_run_columns(),
        Column("key", String(64), nullable=False),  # hash of the content, so that an item is stored once
        _word("state"),  # active, forgotten
        _word("language"),
        _word("kind"),  # kind of error, or of task
        _text("text"),  # shown to people and models
        _text("error_signature"),
        _text("counterexample"),
        _text("diagnosis"),
        _text("code_shape"),
        _text("patch"),
        _text("tests"),  # ids or sources of the tests that passed
        Column("repaired", Boolean, nullable=False, default=False, server_default="0"),
        Column("created_s", Double, nullable=False),
        _text("search_text"),  # what the vector of a pattern or a lesson is computed from
        Column("vector", Embedding, nullable=True),  # `NULL` for a text without words
        Column("signature", BitString, nullable=True),  # of the vector
        UniqueConstraint("namespace", "key"),
        Index(None, "namespace", "state", "kind"),
        Index(None, "namespace", "run_id"),
        # It holds all that the choice of candidates reads, so that the wide rows are not read for it.
        Index(None, "namespace", "state", "id", "language", "repaired", "signature"),
    )


failures = _memory_table("failures")
"""Failures, and the patches that repaired them."""
patterns = _memory_table("patterns")
"""Solved tasks with their solutions and tests."""
lessons = _memory_table("lessons")
"""Lessons of one sentence each."""

scanned_homes = Table(
    "scanned_homes",
    METADATA,
    Column("home", String(200), primary_key=True),  # the machine and the folder
    Column("log_offset", BigInteger, nullable=False),  # position in the log of changed runs
    Column("log_checksum", BigInteger, nullable=False),
    Column("names_checksum", BigInteger, nullable=False),  # of the names of the run folders
    Column("unsettled", Text, nullable=False),  # runs to compare again the next time, as JSON
    Column("compared_s", Double, nullable=False),  # when all ledgers were compared with their rows
)
"""For each folder of state, up to which point its ledgers are in the other tables (see `run_changes`)."""

run_files = Table(
    "run_files",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("path", String(400), primary_key=True),  # relative to the run's folder, with slashes
    Column("content", LargeBinary, nullable=False),
)
"""Files of shared run folders, except the ledgers."""

ledger_chunks = Table(
    "ledger_chunks",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),  # byte offset in the ledger
    Column("content", LargeBinary, nullable=False),
)
"""Ledgers in chunks, each at its byte offset, so that a chunk cannot be stored twice."""

jobs = Table(
    "jobs",
    METADATA,
    Column("id", String(200), primary_key=True),
    Column("namespace", String(200), nullable=False),
    Column("run_id", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("caller", String(200), nullable=False),
    Column("request_key", String(200), nullable=False),  # the caller's idempotency key, or empty
    Column("request", Text, nullable=False),  # as JSON
    Column("stop_requested", Boolean, nullable=False, default=False, server_default="0"),
    Column("attempts", Integer, nullable=False, default=0, server_default="0"),  # workers that started it
    Column("ending", Text, nullable=True),  # how it ended, as JSON
    Column("changed_s", Double, nullable=False),  # by the database's clock
    Index(None, "namespace", "changed_s"),
    Index(
        "uq_jobs_request_key",
        "namespace",
        "caller",
        "request_key",
        unique=True,
        **_partial_index("request_key <> ''"),
    ),
    Index(
        "uq_jobs_active_run",
        "run_id",
        unique=True,
        **_partial_index("ending IS NULL AND kind <> 'verify'"),
    ),
)
"""Requests to servers that share their work; at most one job at a time works on a run."""

uploaded_archives = Table(
    "uploaded_archives",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Projects that callers have sent to servers that share their work."""

MEMORY_TABLES = (failures, patterns, lessons)
RUN_TABLES = (tasks, iterations, metrics, approvals)
"""Tables whose rows belong to one run; they are replaced whenever its ledger is read."""
