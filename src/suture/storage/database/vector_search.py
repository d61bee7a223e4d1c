"""Nearest-vector search: pgvector in PostgreSQL, a scan over all vectors in SQLite.

In PostgreSQL, a migration creates the HNSW index of the vectors.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import LargeBinary, func, select, text, type_coerce

from suture.storage.database.store import Store
from suture.storage.database.tables import METADATA
from suture.storage.tuning import HNSW_CANDIDATES, MAX_CACHED_TABLES

EXCLUDED_SIMILARITY = -2.0
"""Marks a row that is not requested; below the dot product of any two unit vectors."""


def find_nearest(
    store: Store, name: str, vector: Any, embedder: str, *, language: str = "", limit: int
) -> list[tuple[int, float]]:
    """Return `(row id, dot product)` of the rows with the nearest vectors, the nearest first.

    Args:
        store: The database.
        name: The table.
        vector: The query's unit vector.
        embedder: Only vectors of this embedder are compared.
        language: Only rows of this language; all if empty.
        limit: Maximum number of rows.
    """
    search = _search_with_pgvector if store.is_postgresql else _scan_vectors
    matches = search(store, name, vector, embedder, language, limit)
    return sorted(matches, key=lambda match: (-match[1], match[0]))  # ties in the order of their ids


def _sql_literal(word: str) -> str:
    """Return a SQL literal: a partial index is used only by queries with its exact condition."""
    return "'" + word.replace("'", "''").replace(":", r"\:") + "'"


def _search_with_pgvector(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    size = len(vector)
    distance = f"vector::vector({size}) <#> CAST(:vector AS vector({size}))"
    parameters: dict[str, Any] = {
        "vector": "[" + ",".join(f"{number:.7g}" for number in vector) + "]",
        "namespace": store.namespace,
        "limit": limit,
    }
    language_condition = ""
    if language:
        language_condition = "AND language = :language "
        parameters["language"] = language
    statement = text(
        f"SELECT id, -({distance}) AS similarity FROM {name} WHERE namespace = :namespace "
        f"AND embedder = {_sql_literal(embedder)} AND state = 'active' {language_condition}"
        f"ORDER BY {distance} LIMIT :limit"
    )
    with store.read_transaction() as connection:
        connection.execute(CONFIGURE_HNSW, {"candidates": str(HNSW_CANDIDATES)})
        return [(row.id, float(row.similarity)) for row in connection.execute(statement, parameters)]


CONFIGURE_HNSW = text(
    "SELECT set_config('hnsw.ef_search', :candidates, true), "
    "CASE WHEN string_to_array(extversion, '.')::int[] "
    ">= '{0,8}' THEN set_config('hnsw.iterative_scan', 'strict_order', true) END "
    "FROM pg_extension WHERE extname = 'vector'"
)
"""Since pgvector 0.8 an index scan continues if the nearest rows are filtered out."""


@dataclass
class _CachedVectors:
    """The vectors of an embedder in one table: numpy arrays with one entry per row, in the order of the ids."""

    ids: Any
    languages: Any
    vectors: Any

    @property
    def last_id(self) -> int:
        return int(self.ids[-1]) if len(self.ids) else 0


_cache: OrderedDict[tuple[str, ...], _CachedVectors] = OrderedDict()
_cache_lock = threading.Lock()


def _scan_vectors(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    import numpy as np

    cached = _load_vectors(store, name, embedder, len(vector))
    if not len(cached.ids):
        return []
    similarities = cached.vectors @ np.asarray(vector, dtype=np.float32)
    if language:
        similarities = np.where(cached.languages == language, similarities, np.float32(EXCLUDED_SIMILARITY))
    count = min(limit, len(similarities))
    best_indices = np.argpartition(-similarities, count - 1)[:count]
    return [
        (int(cached.ids[index]), float(similarities[index]))
        for index in best_indices
        if similarities[index] > EXCLUDED_SIMILARITY
    ]


def _load_vectors(store: Store, name: str, embedder: str, size: int) -> _CachedVectors:
    """Return all vectors of an embedder: they are read once, later only the new ones."""
    table = METADATA.tables[name]
    key = (store.location, store.namespace, name, embedder)
    conditions = (table.c.namespace == store.namespace, table.c.embedder == embedder)
    columns = (table.c.id, table.c.language, type_coerce(table.c.vector, LargeBinary).label("vector"))
    with _cache_lock:
        with store.read_transaction() as connection:
            row_count = connection.execute(
                select(func.count()).select_from(table).where(*conditions)
            ).scalar_one()
            cached = _cache.get(key)
            last_id = cached.last_id if cached is not None else 0
            query = select(*columns).where(*conditions).order_by(table.c.id)
            rows = connection.execute(query.where(table.c.id > last_id)).all()
            if cached is not None and len(cached.ids) + len(rows) != row_count:
                # Some of the cached rows were removed or changed, so all are read again.
                cached = None
                rows = connection.execute(query).all()
        cached = _append_rows(cached, [row for row in rows if row.vector is not None], size)
        _cache[key] = cached
        _cache.move_to_end(key)
        while len(_cache) > MAX_CACHED_TABLES:
            _cache.popitem(last=False)
        return cached


def _append_rows(cached: _CachedVectors | None, rows: list[Any], size: int) -> _CachedVectors:
    """Return the cached vectors with those of new rows."""
    import numpy as np

    if cached is not None and not rows:
        return cached
    ids = np.array([row.id for row in rows], dtype=np.int64)
    languages = np.array([row.language for row in rows], dtype=np.str_)
    vectors = np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4").reshape(len(rows), size)
    if cached is not None:
        ids = np.concatenate([cached.ids, ids])
        languages = np.concatenate([cached.languages, languages])
        vectors = np.concatenate([cached.vectors, vectors])
    return _CachedVectors(ids=ids, languages=languages, vectors=vectors)
