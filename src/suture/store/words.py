"""Full-text search, alike on both engines: FTS5 of SQLite, `tsvector` of PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Connection, Table, text

from suture.store.searched_words import MOST_WORDS, searched_words, words_of

__all__ = ["matching", "searched_words"]


def matching(
    connection: Connection, table: Table, query: str, *, namespace: str, any_word: bool = False, limit: int
) -> list[int]:
    """Ids of the rows that a query finds, the best first.

    Args:
        connection: In a transaction.
        table: One of `suture.store.tables.SEARCHED`.
        query: Words; signs between them count for nothing.
        namespace: Whose rows.
        any_word: Whether one of the words will do; else all of them are wanted.
        limit: The most ids.
    """
    words = list(dict.fromkeys(words_of(query)))[:MOST_WORDS]
    if not words:
        return []
    if connection.dialect.name == "postgresql":
        wanted = (" | " if any_word else " & ").join(f"'{word}'" for word in words)
        statement = (
            f"SELECT id FROM {table.name}, to_tsquery('simple', :wanted) AS wanted "
            "WHERE words @@ wanted AND namespace = :namespace "
            "ORDER BY ts_rank_cd(words, wanted) DESC, id DESC LIMIT :limit"
        )
    else:
        wanted = (" OR " if any_word else " ").join(f'"{word}"' for word in words)
        statement = (
            f"SELECT {table.name}.id FROM {table.name}_words JOIN {table.name} "
            f"ON {table.name}.id = {table.name}_words.rowid "
            f"WHERE {table.name}_words MATCH :wanted AND namespace = :namespace "
            f"ORDER BY bm25({table.name}_words), {table.name}.id DESC LIMIT :limit"
        )
    given = {"wanted": wanted, "namespace": namespace, "limit": limit}
    return list(connection.execute(text(statement), given).scalars())
