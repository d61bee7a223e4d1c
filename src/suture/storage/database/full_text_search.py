"""Full-text search that behaves alike in SQLite (FTS5) and PostgreSQL (`tsvector`).

Both engines tokenise in their own ways (`os.path` is a host name for PostgreSQL), so they are given words
that are already split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select, text

from suture.storage.database.memory_rows import get_table
from suture.storage.database.store import Store
from suture.storage.tuning import (
    MAX_COLUMNS_PER_STATEMENT,
    MAX_INDEXED_WORDS,
    MAX_RANKED_ROWS,
    MAX_WORD_CHARS,
    NAMESPACE_OVERSAMPLING,
)

WORD = re.compile(r"[^\W_]+")
CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Splits `KeyError` into two words; the whole word is indexed too."""


def index_text(*texts: str) -> str:
    """Return the value of a `search_text` column: the words of some texts in lower case, separated by blanks.

    Args:
        texts: Any texts, including code and error messages.
    """
    return " ".join(split_words(" ".join(texts))[:MAX_INDEXED_WORDS])


def split_words(content: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    found: list[str] = []
    for word in WORD.findall(content):
        parts = CAMEL_CASE.split(word)
        found += [part.lower()[:MAX_WORD_CHARS] for part in ((word, *parts) if len(parts) > 1 else parts)]
    return found


def match_all_words(
    connection: Connection, table: Table, query: str, *, namespace: str, limit: int
) -> list[int]:
    """Return the ids of rows that contain all words of a query, the best first.

    Args:
        connection: In a transaction.
        table: One of `suture.storage.database.tables.SEARCHED_TABLES`.
        query: Words; punctuation between them is ignored.
        namespace: Namespace of the rows.
        limit: Maximum number of ids.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
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


def rank_similar_rows(store: Store, name: str, query: str, *, limit: int) -> list[int]:
    """Return the ids of rows that contain some words of a query, the best first; see `select_rare_words`.

    Args:
        store: The database.
        name: A table of `suture.storage.database.tables.SEARCHED_TABLES`.
        query: Words; punctuation between them is ignored.
        limit: Maximum number of ids.

    Raises:
        StorageError: The database failed.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
    with store.read_transaction() as connection:
        rows_with = _rows_with_postgresql if store.is_postgresql else _rows_with_sqlite
        selected = select_rare_words(rows_with(connection, name, words)) if words else []
        if not selected:
            return []
        best = _most_similar_postgresql if store.is_postgresql else _most_similar_sqlite
        return best(connection, name, selected, store.namespace, limit)


def select_rare_words(rows_with: Mapping[str, int]) -> list[str]:
    """Return the rarest words, as many as have `MAX_RANKED_ROWS` rows together.

    A word in very many rows says little about which row is meant, and ranking all of its rows takes long.

    Args:
        rows_with: Word -> approximate number of rows that contain it.
    """
    selected: list[str] = []
    total = 0
    for word, count in sorted(rows_with.items(), key=lambda pair: pair[1]):
        total += count
        if selected and total > MAX_RANKED_ROWS:
            break
        selected.append(word)
    return selected


def _rows_with_sqlite(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """Count the rows of each word that occurs, no further than necessary."""
    one = f"(SELECT count(*) FROM (SELECT 1 FROM {name}_words WHERE {name}_words MATCH :w{{0}} LIMIT :most))"
    found: dict[str, int] = {}
    for start in range(0, len(words), MAX_COLUMNS_PER_STATEMENT):
        some = words[start : start + MAX_COLUMNS_PER_STATEMENT]
        given = {f"w{number}": f'"{word}"' for number, word in enumerate(some)}
        counted = text("SELECT " + ", ".join(one.format(number) for number in range(len(some))))
        row = connection.execute(counted, {**given, "most": MAX_RANKED_ROWS + 1}).one()
        found |= dict(zip(some, row, strict=True))
    return {word: count for word, count in found.items() if count}


def _rows_with_postgresql(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """Estimate the rows of each word by the server's statistics of frequent words; others count as 0."""
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
    table = get_table(name)
    many = NAMESPACE_OVERSAMPLING * limit
    ranked = text(
        f"SELECT id FROM (SELECT rowid AS id, bm25({name}_words) AS score FROM {name}_words "
        f"WHERE {name}_words MATCH :wanted ORDER BY rowid DESC LIMIT :ranked) "
        "ORDER BY score, id DESC LIMIT :many"
    )
    ids = list(
        connection.execute(ranked, {"wanted": wanted, "ranked": MAX_RANKED_ROWS, "many": many}).scalars()
    )
    mine = select(table.c.id).where(table.c.id.in_(ids), table.c.namespace == namespace)
    known = set(connection.execute(mine).scalars())
    found = [one for one in ids if one in known]
    if len(found) >= limit or len(ids) < many:
        return found[:limit]
    # The best rows belong to other namespaces, so all rows of this one must be ranked, which may be slow.
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
    given = {"wanted": wanted, "namespace": namespace, "ranked": MAX_RANKED_ROWS, "limit": limit}
    return list(connection.execute(statement, given).scalars())
