"""Full-text search, alike on both engines: FTS5 of SQLite, `tsvector` of PostgreSQL.

Both take texts apart in ways of their own (`os.path` is a host's name to PostgreSQL), so they are given words
that are apart already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select, text

from suture.storage.database.memory_rows import table_of
from suture.storage.database.store import Store

WORD = re.compile(r"[^\W_]+")
PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""`KeyError` is two words, and one."""
MOST_WORDS = 4000
"""Of one row: PostgreSQL's index takes a megabyte, and nobody searches beyond."""
MOST_LETTERS = 80
MOST_RANKED = 4000
"""Rows that a search for the most similar ranks: what they hold is read one by one."""
MOST_SURE = 4
"""Times the limit, of the best rows on SQLite, that are looked at for those of a namespace."""
MOST_COLUMNS = 500
"""Of one statement; SQLite takes 2,000 (https://www.sqlite.org/limits.html)."""


def searched_words(*texts: str) -> str:
    """What a column `searched` holds of some texts: their words in lower case, with blanks between.

    Args:
        texts: Anything, code and messages of errors too.
    """
    return " ".join(words_of(" ".join(texts))[:MOST_WORDS])


def words_of(content: str) -> list[str]:
    """The words of a text in lower case, in order."""
    found: list[str] = []
    for word in WORD.findall(content):
        parts = PARTS.split(word)
        found += [part.lower()[:MOST_LETTERS] for part in ((word, *parts) if len(parts) > 1 else parts)]
    return found


def matching(connection: Connection, table: Table, query: str, *, namespace: str, limit: int) -> list[int]:
    """Ids of the rows that have all words of a query, the best first.

    Args:
        connection: In a transaction.
        table: One of `suture.storage.database.tables.SEARCHED`.
        query: Words; signs between them count for nothing.
        namespace: Whose rows.
        limit: The most ids.
    """
    words = list(dict.fromkeys(words_of(query)))[:MOST_WORDS]
    if not words:
        return []
    given: dict[str, Any] = {"namespace": namespace, "limit": limit}
    if connection.dialect.name == "postgresql":
        statement = (
            f"SELECT id FROM {table.name}, to_tsquery('simple', :wanted) AS wanted "
            "WHERE words @@ wanted AND namespace = :namespace "
            "ORDER BY ts_rank_cd(words, wanted) DESC, id DESC LIMIT :limit"
        )
        given["wanted"] = " & ".join(f"'{word}'" for word in words)
    else:
        statement = _sqlite_statement(table.name)
        given["wanted"] = " ".join(f'"{word}"' for word in words)
    return list(connection.execute(text(statement), given).scalars())


def most_similar(store: Store, name: str, query: str, *, limit: int) -> list[int]:
    """Ids of the rows that have some words of a query, the best first; `rare_words` says which words count.

    Args:
        store: The database.
        name: A table of `suture.storage.database.tables.SEARCHED`.
        query: Words; signs between them count for nothing.
        limit: The most ids.

    Raises:
        StorageError: The database failed.
    """
    words = list(dict.fromkeys(words_of(query)))[:MOST_WORDS]
    with store.reading() as connection:
        rows_with = _rows_with_postgresql if store.is_postgresql else _rows_with_sqlite
        kept = rare_words(rows_with(connection, name, words)) if words else []
        if not kept:
            return []
        best = _most_similar_postgresql if store.is_postgresql else _most_similar_sqlite
        return best(connection, name, kept, store.namespace, limit)


def rare_words(rows_with: Mapping[str, int]) -> list[str]:
    """The words that a search looks for: the rarest, as many as have `MOST_RANKED` rows together.

    A word that very many rows have tells little of which is meant, and to rank its rows takes long.

    Args:
        rows_with: Word -> about how many rows have it.
    """
    kept: list[str] = []
    total = 0
    for word, count in sorted(rows_with.items(), key=lambda pair: pair[1]):
        total += count
        if kept and total > MOST_RANKED:
            break
        kept.append(word)
    return kept


def _rows_with_sqlite(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """Of words that are there, counted no further than is needed."""
    one = f"(SELECT count(*) FROM (SELECT 1 FROM {name}_words WHERE {name}_words MATCH :w{{0}} LIMIT :most))"
    found: dict[str, int] = {}
    for start in range(0, len(words), MOST_COLUMNS):
        some = words[start : start + MOST_COLUMNS]
        given = {f"w{number}": f'"{word}"' for number, word in enumerate(some)}
        counted = text("SELECT " + ", ".join(one.format(number) for number in range(len(some))))
        row = connection.execute(counted, {**given, "most": MOST_RANKED + 1}).one()
        found |= dict(zip(some, row, strict=True))
    return {word: count for word, count in found.items() if count}


def _rows_with_postgresql(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """By the server's own statistics: the frequent words are in them, others count as none."""
    known = connection.execute(
        text(
            "SELECT one.word, one.share * table_of.reltuples AS rows "
            "FROM pg_class AS table_of JOIN pg_namespace AS n ON n.oid = table_of.relnamespace "
            "JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = table_of.relname, "
            "unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS one(word, share) "
            "WHERE table_of.oid = to_regclass(:name) AND s.attname = 'words' AND one.word = ANY(:words)"
        ),
        {"name": name, "words": list(words)},
    )
    counts = dict.fromkeys(words, 0)
    return counts | {row.word: int(row.rows) for row in known}


def _most_similar_sqlite(
    connection: Connection, name: str, words: Sequence[str], namespace: str, limit: int
) -> list[int]:
    wanted = " OR ".join(f'"{word}"' for word in words)
    table = table_of(name)
    many = MOST_SURE * limit
    ranked = text(
        f"SELECT id FROM (SELECT rowid AS id, bm25({name}_words) AS score FROM {name}_words "
        f"WHERE {name}_words MATCH :wanted ORDER BY rowid DESC LIMIT :ranked) "
        "ORDER BY score, id DESC LIMIT :many"
    )
    ids = list(connection.execute(ranked, {"wanted": wanted, "ranked": MOST_RANKED, "many": many}).scalars())
    mine = select(table.c.id).where(table.c.id.in_(ids), table.c.namespace == namespace)
    known = set(connection.execute(mine).scalars())
    found = [one for one in ids if one in known]
    if len(found) >= limit or len(ids) < many:
        return found[:limit]
    # Other namespaces have the best rows: all are ranked, however long it takes.
    given = {"wanted": wanted, "namespace": namespace, "limit": limit}
    return list(connection.execute(text(_sqlite_statement(name)), given).scalars())


def _sqlite_statement(name: str) -> str:
    return (
        f"SELECT {name}.id FROM {name}_words JOIN {name} ON {name}.id = {name}_words.rowid "
        f"WHERE {name}_words MATCH :wanted AND namespace = :namespace "
        f"ORDER BY bm25({name}_words), {name}.id DESC LIMIT :limit"
    )


def _most_similar_postgresql(
    connection: Connection, name: str, words: Sequence[str], namespace: str, limit: int
) -> list[int]:
    statement = text(
        f"SELECT id FROM (SELECT id, words, wanted FROM {name}, to_tsquery('simple', :wanted) AS wanted "
        "WHERE words @@ wanted AND namespace = :namespace LIMIT :ranked) AS found "
        "ORDER BY ts_rank(words, wanted) DESC, id DESC LIMIT :limit"
    )
    wanted = " | ".join(f"'{word}'" for word in words)
    given = {"wanted": wanted, "namespace": namespace, "ranked": MOST_RANKED, "limit": limit}
    return list(connection.execute(statement, given).scalars())
