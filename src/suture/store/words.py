"""Full-text search, alike on both engines: FTS5 of SQLite, `tsvector` of PostgreSQL.

Both take texts apart in ways of their own (`os.path` is a host's name to PostgreSQL), so they are given words
that are apart already.
"""

from __future__ import annotations

import re

from sqlalchemy import Connection, Table, text

WORD = re.compile(r"[^\W_]+")
PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""`KeyError` is two words, and one."""
MOST_WORDS = 4000
"""Of one row: PostgreSQL's index takes a megabyte, and nobody searches beyond."""
MOST_LETTERS = 80


def searched_words(*texts: str) -> str:
    """What a column `searched` holds of some texts: their words in lower case, with blanks between.

    Args:
        texts: Anything, code and messages of errors too.
    """
    return " ".join(_words(" ".join(texts))[:MOST_WORDS])


def _words(content: str) -> list[str]:
    found: list[str] = []
    for word in WORD.findall(content):
        parts = PARTS.split(word)
        found += [part.lower()[:MOST_LETTERS] for part in ((word, *parts) if len(parts) > 1 else parts)]
    return found


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
    words = list(dict.fromkeys(_words(query)))[:MOST_WORDS]
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
