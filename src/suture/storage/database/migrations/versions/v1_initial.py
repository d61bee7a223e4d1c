"""The first version of the schema: the tables as `suture.storage.database.tables` declares them.

Nothing has been released yet, so no database needs a history of changes: a developer who changes the tables gives this
version a new number that no earlier commit used, and databases of earlier checkouts are refused. The numbers `1` to `4`
and `0001` to `0004` were used for other tables. The first change after a release writes out these tables here and gets
its own version.
"""

from __future__ import annotations

from alembic import op

from suture.storage.database.tables import MEMORY_TABLES, METADATA
from suture.storage.tuning import SIGNATURE_INDEX_DEPTH

revision = "5"
down_revision = None


def upgrade() -> None:
    """Create all tables, and the indexes for full-text search and for near signatures."""
    METADATA.create_all(op.get_bind(), checkfirst=False)
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    (_index_words_postgresql if is_postgresql else _index_words_sqlite)()
    for table in MEMORY_TABLES if is_postgresql else ():
        _index_signatures(table.name)


def _index_signatures(table: str) -> None:
    """Create pgvector's index of near signatures; `signature_cache` replaces it in SQLite."""
    op.execute(
        f"CREATE INDEX ix_{table}_near_signatures ON {table} USING hnsw (signature bit_hamming_ops) "
        f"WITH (ef_construction = {SIGNATURE_INDEX_DEPTH})"
    )


def _index_words_postgresql() -> None:
    op.execute(
        "ALTER TABLE tasks ADD COLUMN words tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple', search_text)) STORED"
    )
    op.execute("CREATE INDEX ix_tasks_words ON tasks USING gin (words)")


def _index_words_sqlite() -> None:
    """Create an FTS5 table without content of its own, and triggers that keep it up to date.

    The triggers follow section 4.4.3 of SQLite's FTS5 manual ("External Content Tables").
    """
    remove = (
        "INSERT INTO tasks_words(tasks_words, rowid, search_text) VALUES ('delete', old.id, old.search_text);"
    )
    add = "INSERT INTO tasks_words(rowid, search_text) VALUES (new.id, new.search_text);"
    op.execute(
        "CREATE VIRTUAL TABLE tasks_words USING fts5(search_text, content='tasks', content_rowid='id')"
    )
    op.execute(f"CREATE TRIGGER tasks_words_ai AFTER INSERT ON tasks BEGIN {add} END")
    op.execute(f"CREATE TRIGGER tasks_words_ad AFTER DELETE ON tasks BEGIN {remove} END")
    op.execute(f"CREATE TRIGGER tasks_words_au AFTER UPDATE OF search_text ON tasks BEGIN {remove} {add} END")
