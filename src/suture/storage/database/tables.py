"""Types of columns that both engines hold, each in its own way."""

from __future__ import annotations

from array import array
from typing import Any

from sqlalchemy import (
    JSON,
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


class SafeText(TypeDecorator[str]):
    """Text of anybody's: PostgreSQL takes no zero byte, and neither engine half a surrogate pair."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """From Python to what the engine stores."""
        return None if value is None else storable(value)


class SafeWord(TypeDecorator[str]):
    """A short text, such as a name; what is longer than its column is cut."""

    impl = String
    cache_ok = True

    def __init__(self, length: int = 200) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """From Python to what the engine stores."""
        return None if value is None else storable(value)[: self._length]


def storable(text: str) -> str:
    """Text that both engines take: what they do not becomes a replacement character or `?`."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


class Embedding(TypeDecorator["array[float]"]):
    """A vector of float32: pgvector's `vector` on PostgreSQL, little-endian bytes on SQLite.

    It takes any sequence of numbers, and gives an `array('f')`, which numpy reads without a copy
    (`numpy.frombuffer`). Rows of one table may have vectors of different lengths: each embedder has its own.
    """

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Pgvector's own type, or bytes."""
        if dialect.name == "postgresql":
            from pgvector.sqlalchemy import Vector

            return dialect.type_descriptor(Vector())
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """From Python to what the engine stores."""
        if value is None:
            return None
        if dialect.name == "postgresql":
            return [float(number) for number in value]
        return vector_bytes(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> array[float] | None:
        """From what the engine stored to Python."""
        if value is None:
            return None
        if isinstance(value, bytes):
            return vector_of(value)
        return array("f", value.to_list() if hasattr(value, "to_list") else list(value))


def vector_bytes(numbers: Any) -> bytes:
    """Numbers as little-endian float32, four bytes each."""
    vector = array("f", numbers)
    if BIG_ENDIAN:
        vector.byteswap()
    return vector.tobytes()


def vector_of(content: bytes) -> array[float]:
    """The numbers of `vector_bytes`."""
    vector = array("f")
    vector.frombytes(content)
    if BIG_ENDIAN:
        vector.byteswap()
    return vector


BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"


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


def _where(condition: str) -> dict[str, Any]:
    """Of an index: the rows that it is of."""
    return {"postgresql_where": text(condition), "sqlite_where": text(condition)}


def _of_a_run() -> tuple[Column[Any], ...]:
    return (
        Column("id", ID, primary_key=True, autoincrement=True),
        Column("namespace", String(200), nullable=False),
        Column("run_id", String(200), nullable=False),
    )


tasks = Table(
    "tasks",
    METADATA,
    *_of_a_run(),
    _word("kind"),  # write, heal
    _text("statement"),
    _word("language"),
    _word("recipe"),
    _word("model"),
    _word("sandbox"),
    _text("project"),
    _word("outcome"),  # as `suture history` tells it: an outcome, `running`, `cut off`, `damaged`
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
    Column("started_s", Double, nullable=True),
    Column("ended_s", Double, nullable=True),
    _word("fork_of"),
    Column("fork_at", Integer, nullable=True),
    _word("replay_of"),
    _count("events"),
    _count("ledger_bytes"),  # of the ledger when it was read: where it has grown since, the row is old
    _text("searched"),
    UniqueConstraint("namespace", "run_id"),
    Index(None, "namespace", "started_s"),
)
"""One row a run."""

iterations = Table(
    "iterations",
    METADATA,
    *_of_a_run(),
    Column("number", Integer, nullable=False),  # of the decision, from 1
    Column("round", Integer, nullable=False),
    _word("move"),  # kinds of its moves, in order, with commas
    _count("candidates"),
    _count("passed"),  # of the best verdict in it
    _count("failed"),
    _count("tokens"),
    _count("model_calls"),
    Column("started_s", Double, nullable=False),
    _number("seconds"),
    _word("error_kind"),  # an exception's type, `wrong answer`, `timeout`; empty where nothing failed
    _text("error"),
    _text("searched"),
    UniqueConstraint("namespace", "run_id", "number"),
)
"""One row for each decision that was carried out, with what came of it."""

metrics = Table(
    "metrics",
    METADATA,
    *_of_a_run(),
    _word("name"),  # tokens, seconds, calls, errors, memory
    _word("phase"),  # a role, a step of the run, an exception's type
    _number("value"),
    UniqueConstraint("namespace", "run_id", "name", "phase"),
    Index(None, "namespace", "name"),
)
"""Numbers of a run, by phase."""

approvals = Table(
    "approvals",
    METADATA,
    *_of_a_run(),
    Column("event_seq", Integer, nullable=False),
    _word("question"),  # its key
    _word("stage"),
    _text("subject"),  # what it was about
    _word("choice"),  # empty while nobody has answered
    _text("hint"),
    Column("asked_s", Double, nullable=False),
    Column("answered_s", Double, nullable=True),
    UniqueConstraint("namespace", "run_id", "event_seq"),
)
"""What people were asked, and what they said."""


def _remembered(name: str) -> Table:
    """A table of what is remembered across runs; all three have one shape."""
    return Table(
        name,
        METADATA,
        *_of_a_run(),
        Column("event_seq", Integer, nullable=False),  # of the event that it comes from
        Column("key", String(64), nullable=False),  # hash of where it comes from, so that nothing is doubled
        _word("source"),  # run, import, placebo
        _word("state"),  # active, evicted, forgotten
        _word("language"),
        _word("kind"),  # kind of error, or of task
        _text("text"),  # what a person or a model is told
        _text("error_signature"),
        _text("counterexample"),
        _text("diagnosis"),
        _text("code_shape"),
        _text("patch"),
        _text("tests"),  # that guarded it
        Column("mended", Boolean, nullable=False, default=False, server_default="0"),
        Column("created_s", Double, nullable=False),
        _word("embedder"),  # who made the vector; empty where there is none
        Column("vector", Embedding, nullable=True),
        _count("recalled"),
        _count("withheld"),
        _count("healed_recalled"),
        _count("healed_withheld"),
        Column("details", JSON, nullable=False, default=dict, server_default="{}"),
        _text("searched"),
        UniqueConstraint("namespace", "key"),
        Index(None, "namespace", "state", "kind"),
        Index(None, "namespace", "run_id"),
        Index(None, "namespace", "embedder"),
    )


failures = _remembered("failures")
"""A failure, and whether and by which patch it was mended."""
patterns = _remembered("patterns")
"""A task that was solved, its solution, and the tests that guarded it."""
lessons = _remembered("lessons")
"""One sentence each."""

run_files = Table(
    "run_files",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("path", String(400), primary_key=True),  # in the run's folder, with slashes
    Column("content", LargeBinary, nullable=False),
)
"""What lies in a run's folder beside its ledger, where runs are shared (`store.runs`)."""

run_lines = Table(
    "run_lines",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),  # byte of the ledger
    Column("content", LargeBinary, nullable=False),
)
"""A ledger in pieces, each where it begins: the same piece cannot be there twice."""

jobs = Table(
    "jobs",
    METADATA,
    Column("id", String(200), primary_key=True),
    Column("namespace", String(200), nullable=False),
    Column("run_id", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("caller", String(200), nullable=False),
    Column("request_key", String(200), nullable=False),  # the caller's name for the request, or empty
    Column("asked", Text, nullable=False),  # all of it, as JSON
    Column("stopped", Boolean, nullable=False, default=False, server_default="0"),  # its caller wants no more
    Column("tries", Integer, nullable=False, default=0, server_default="0"),  # workers that have begun it
    Column("ended", Text, nullable=True),  # how, as JSON
    Column("changed_s", Double, nullable=False),  # by the database's clock
    Index(None, "namespace", "changed_s"),
    Index(
        "uq_jobs_request_key",
        "namespace",
        "caller",
        "request_key",
        unique=True,
        **_where("request_key <> ''"),
    ),
    Index("uq_jobs_working", "run_id", unique=True, **_where("ended IS NULL AND kind <> 'verify'")),
)
"""What callers asked servers for that share their work; at most one job at a time works on a run."""

sent_archives = Table(
    "sent_archives",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Projects that callers have sent to such servers."""

SEARCHED = (tasks, iterations, failures, patterns, lessons)
"""Tables with an index of words."""
REMEMBERED = (failures, patterns, lessons)
OF_RUNS = (tasks, iterations, metrics, approvals)
"""Tables whose rows are a run's alone: they are written anew whenever its ledger is read."""
