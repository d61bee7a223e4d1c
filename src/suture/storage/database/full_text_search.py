"""Full-text search that behaves alike in SQLite (FTS5) and PostgreSQL (`tsvector`).

Both engines tokenise in their own ways (`os.path` is a host name for PostgreSQL), so they are given words
that are already split.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Table, false, select, text

from suture.storage.database.search_words import split_words
from suture.storage.tuning import MAX_INDEXED_WORDS


def contains_all_words(connection: Connection, table: Table, query: str) -> ColumnElement[bool]:
    """Return the condition that a row contains all words of a query.

    The table is one of `tables.SEARCHED_TABLES`. Punctuation in the query is ignored; without a word no row matches.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
    if not words:
        return false()
    if connection.dialect.name == "postgresql":
        all_words = " & ".join(f"'{word}'" for word in words)
        matching = text("words @@ to_tsquery('simple', :all_words)").bindparams(all_words=all_words)
        return table.c.id.in_(select(table.c.id).where(matching))
    index = f"{table.name}_words"
    matching_rows = text(f"SELECT rowid FROM {index} WHERE {index} MATCH :all_words")
    all_words = " ".join(f'"{word}"' for word in words)
    return table.c.id.in_(matching_rows.bindparams(all_words=all_words).columns(table.c.id))
