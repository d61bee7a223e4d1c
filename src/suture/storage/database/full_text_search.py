"""Full-text search that behaves alike in SQLite (FTS5) and PostgreSQL (`tsvector`).

Both engines tokenise in their own ways (`os.path` is a host name for PostgreSQL), so they are given words
that are already split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Table, false, select, text

from suture.storage.database.search_words import split_words
from suture.storage.database.store import Store
from suture.storage.database.tables import METADATA
from suture.storage.tuning import (
    MAX_COLUMNS_PER_STATEMENT,
    MAX_INDEXED_WORDS,
    MAX_RANKED_ROWS,
    NAMESPACE_OVERSAMPLING,
)


def contains_all_words(connection: Connection, table: Table, query: str) -> ColumnElement[bool]:
    """Return the condition that a row contains all words of a query.

    The table is one of `tables.SEARCHED_TABLES`. Punctuation in the query is ignored; without a word no row matches.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
    if not words:
        return false()
    if connection.dialect.name == "postgresql":
        matching = text("words @@ to_tsquery('simple', :all_words)").bindparams(
            all_words=_join_postgresql(words, " & ")
        )
        return table.c.id.in_(select(table.c.id).where(matching))
    index = f"{table.name}_words"
    matching_rows = text(f"SELECT rowid FROM {index} WHERE {index} MATCH :all_words")
    return table.c.id.in_(matching_rows.bindparams(all_words=_join_sqlite(words, " ")).columns(table.c.id))


def rank_similar_rows(store: Store, name: str, query: str, *, limit: int) -> list[int]:
    """Return the ids of rows that contain some words of a query, the best first; see `select_rare_words`.

    The table called `name` is one of `tables.SEARCHED_TABLES`. Punctuation in the query is ignored.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
    if not words:
        return []
    with store.read_transaction() as connection:
        if store.is_postgresql:
            words = select_rare_words(_estimate_rows_postgresql(connection, name, words))
            return _rank_similar_postgresql(connection, name, words, store.namespace, limit)
        words = select_rare_words(_count_rows_sqlite(connection, name, words))
        return _rank_similar_sqlite(connection, name, words, store.namespace, limit) if words else []


def select_rare_words(row_counts: Mapping[str, int]) -> list[str]:
    """Return the rarest words, as many as have `MAX_RANKED_ROWS` rows together.

    A word in very many rows says little about which row is meant, and ranking all of its rows takes long.
    `row_counts` maps each word to the approximate number of rows that contain it.
    """
    rare_words: list[str] = []
    total = 0
    for word, count in sorted(row_counts.items(), key=lambda pair: pair[1]):
        total += count
        if rare_words and total > MAX_RANKED_ROWS:
            break
        rare_words.append(word)
    return rare_words


def _count_rows_sqlite(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """Count the rows of each word that occurs, up to one more than are ranked."""
    counts: dict[str, int] = {}
    for start in range(0, len(words), MAX_COLUMNS_PER_STATEMENT):
        batch = words[start : start + MAX_COLUMNS_PER_STATEMENT]
        columns = [
            f"(SELECT count(*) FROM (SELECT 1 FROM {name}_words WHERE {name}_words MATCH :w{number} LIMIT :max))"
            for number in range(len(batch))
        ]
        parameters = {f"w{number}": _join_sqlite([word], "") for number, word in enumerate(batch)}
        statement = text("SELECT " + ", ".join(columns))
        row = connection.execute(statement, {**parameters, "max": MAX_RANKED_ROWS + 1}).one()
        counts |= dict(zip(batch, row, strict=True))
    return {word: count for word, count in counts.items() if count}


def _estimate_rows_postgresql(connection: Connection, name: str, words: Sequence[str]) -> dict[str, int]:
    """Estimate the rows of each word by the server's statistics of frequent words; others count as 0."""
    rows = connection.execute(
        text(
            "SELECT frequent.word, frequent.share * class.reltuples AS rows "
            "FROM pg_class AS class JOIN pg_namespace AS n ON n.oid = class.relnamespace "
            "JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = class.relname, "
            "unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS frequent(word, share) "
            "WHERE class.oid = to_regclass(:name) AND s.attname = 'words' AND frequent.word = ANY(:words)"
        ),
        {"name": name, "words": list(words)},
    )
    return dict.fromkeys(words, 0) | {row.word: int(row.rows) for row in rows}


def _rank_similar_sqlite(
    connection: Connection, name: str, words: Sequence[str], namespace: str, limit: int
) -> list[int]:
    table = METADATA.tables[name]
    query = _join_sqlite(words, " OR ")
    best_limit = NAMESPACE_OVERSAMPLING * limit
    statement = text(
        f"SELECT id FROM (SELECT rowid AS id, bm25({name}_words) AS score FROM {name}_words "
        f"WHERE {name}_words MATCH :query ORDER BY rowid DESC LIMIT :max_ranked) "
        "ORDER BY score, id DESC LIMIT :best_limit"
    )
    parameters = {"query": query, "max_ranked": MAX_RANKED_ROWS, "best_limit": best_limit}
    best_ids = list(connection.execute(statement, parameters).scalars())
    in_namespace = select(table.c.id).where(table.c.id.in_(best_ids), table.c.namespace == namespace)
    namespace_ids = set(connection.execute(in_namespace).scalars())
    ids = [row_id for row_id in best_ids if row_id in namespace_ids]
    if len(ids) >= limit or len(best_ids) < best_limit:
        return ids[:limit]
    # The best rows belong to other namespaces, so all rows of this one must be ranked, which may be slow.
    return _rank_all_sqlite(connection, name, query, namespace, limit)


def _rank_all_sqlite(connection: Connection, name: str, query: str, namespace: str, limit: int) -> list[int]:
    """Rank all rows of a namespace that match a query of FTS5."""
    statement = text(
        f"SELECT {name}.id FROM {name}_words JOIN {name} ON {name}.id = {name}_words.rowid "
        f"WHERE {name}_words MATCH :query AND namespace = :namespace "
        f"ORDER BY bm25({name}_words), {name}.id DESC LIMIT :limit"
    )
    parameters = {"query": query, "namespace": namespace, "limit": limit}
    return list(connection.execute(statement, parameters).scalars())


def _rank_similar_postgresql(
    connection: Connection, name: str, words: Sequence[str], namespace: str, limit: int
) -> list[int]:
    statement = text(
        f"SELECT id FROM (SELECT id, words, query FROM {name}, to_tsquery('simple', :query) AS query "
        "WHERE words @@ query AND namespace = :namespace LIMIT :max_ranked) AS matching "
        "ORDER BY ts_rank(words, query) DESC, id DESC LIMIT :limit"
    )
    parameters = {
        "query": _join_postgresql(words, " | "),
        "namespace": namespace,
        "max_ranked": MAX_RANKED_ROWS,
        "limit": limit,
    }
    return list(connection.execute(statement, parameters).scalars())


def _join_sqlite(words: Sequence[str], operator: str) -> str:
    return operator.join(f'"{word}"' for word in words)


def _join_postgresql(words: Sequence[str], operator: str) -> str:
    return operator.join(f"'{word}'" for word in words)
