"""Nearest-vector search: pgvector in PostgreSQL, a scan over all vectors in SQLite.

PostgreSQL has one HNSW index per embedder, because an index needs vectors of one length. The built-in
embedders get theirs by a migration, others by `create_vector_index`. Without an index all vectors are
compared.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import LargeBinary, func, select, text, type_coerce

from suture.storage.database.memory_rows import get_table
from suture.storage.database.store import Store
from suture.storage.tuning import HNSW_CANDIDATES, MAX_CACHED_TABLES, MAX_INDEXED_DIMENSIONS

EXCLUDED_SIMILARITY = -2.0
"""Marks a row that is not requested; below the dot product of any two unit vectors."""


def find_nearest(
    store: Store, name: str, vector: Any, embedder: str, *, language: str = "", limit: int
) -> list[tuple[int, float]]:
    """Return ids of the rows with the nearest vectors and their dot products, the nearest first.

    Args:
        store: The database.
        name: The table.
        vector: The query's unit vector.
        embedder: Only vectors of this embedder are compared.
        language: Only rows of this language; all if empty.
        limit: Maximum number of ids.

    Raises:
        StorageError: The database failed.
    """
    search = _by_pgvector if store.is_postgresql else _by_scan
    found = search(store, name, vector, embedder, language, limit)
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))  # ties in the order of their ids


def create_vector_index(store: Store, names: Iterable[str], embedder: str, size: int) -> bool:
    """Create the indexes of an embedder's vectors if the database supports them; return whether it does.

    Args:
        store: The database.
        names: The tables.
        embedder: Identity of the embedder.
        size: Length of its vectors.

    Raises:
        StorageError: The database failed, or this user may not create an index.
    """
    if not store.is_postgresql or size > MAX_INDEXED_DIMENSIONS:
        return False
    with store.write_transaction() as connection:
        for name in names:
            statement = (
                f"CREATE INDEX IF NOT EXISTS {_index_name(name, embedder)} ON {name} "
                f"USING hnsw ((vector::vector({size})) vector_ip_ops) "
                f"WHERE embedder = {_sql_literal(embedder)}"
            )
            connection.execute(text(statement))
    return True


def _index_name(name: str, embedder: str) -> str:
    return f"ix_{name}_{hashlib.sha256(embedder.encode()).hexdigest()[:8]}_vectors"


def _sql_literal(word: str) -> str:
    """Return a SQL literal: a partial index is used only by queries with its exact condition."""
    return "'" + word.replace("'", "''").replace(":", r"\:") + "'"


def _by_pgvector(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    size = len(vector)
    only = "AND language = :language " if language else ""
    distance = f"vector::vector({size}) <#> CAST(:vector AS vector({size}))"
    statement = text(
        f"SELECT id, -({distance}) AS similarity FROM {name} "
        f"WHERE namespace = :namespace AND embedder = {_sql_literal(embedder)} AND state = 'active' {only}"
        f"ORDER BY {distance} LIMIT :limit"
    )
    given = {
        "vector": "[" + ",".join(f"{number:.7g}" for number in vector) + "]",
        "namespace": store.namespace,
        "limit": limit,
    } | ({"language": language} if language else {})
    with store.read_transaction() as connection:
        connection.execute(CONFIGURE_HNSW, {"many": str(HNSW_CANDIDATES)})
        return [(row.id, float(row.similarity)) for row in connection.execute(statement, given)]


CONFIGURE_HNSW = text(
    "SELECT set_config('hnsw.ef_search', :many, true), CASE WHEN string_to_array(extversion, '.')::int[] "
    ">= '{0,8}' THEN set_config('hnsw.iterative_scan', 'strict_order', true) END "
    "FROM pg_extension WHERE extname = 'vector'"
)
"""Since pgvector 0.8 an index scan continues if the nearest rows are filtered out."""


@dataclass
class _CachedVectors:
    """The vectors of the rows up to an id."""

    ids: Any
    languages: Any
    vectors: Any
    last: int


_cache: OrderedDict[tuple[str, ...], _CachedVectors] = OrderedDict()
_cache_lock = threading.Lock()


def _by_scan(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    import numpy as np

    cached = _load_vectors(store, name, embedder, len(vector))
    if not len(cached.ids):
        return []
    similarity = cached.vectors @ np.asarray(vector, dtype=np.float32)
    if language:
        similarity = np.where(cached.languages == language, similarity, np.float32(EXCLUDED_SIMILARITY))
    most = min(limit, len(similarity))
    best = np.argpartition(-similarity, most - 1)[:most]
    return [
        (int(cached.ids[one]), float(similarity[one]))
        for one in best
        if similarity[one] > EXCLUDED_SIMILARITY
    ]


def _load_vectors(store: Store, name: str, embedder: str, size: int) -> _CachedVectors:
    """Return all vectors of an embedder: they are read once, later only the new ones."""
    table = get_table(name)
    key = (store.location, store.namespace, name, embedder)
    mine = (table.c.namespace == store.namespace, table.c.embedder == embedder)
    columns = (table.c.id, table.c.language, type_coerce(table.c.vector, LargeBinary).label("vector"))
    with _cache_lock:
        with store.read_transaction() as connection:
            counted = select(func.count()).select_from(table).where(*mine)
            count = connection.execute(counted).scalar_one()
            known = _cache.get(key)
            last = known.last if known is not None else 0
            query = select(*columns).where(*mine).order_by(table.c.id)
            rows = connection.execute(query.where(table.c.id > last)).all()
            if known is not None and len(known.ids) + len(rows) != count:  # some were removed or changed
                known = None
                rows = connection.execute(query).all()
        fresh = _append(known, [row for row in rows if row.vector is not None], size)
        _cache[key] = fresh
        _cache.move_to_end(key)
        while len(_cache) > MAX_CACHED_TABLES:
            _cache.popitem(last=False)
        return fresh


def _append(known: _CachedVectors | None, rows: list[Any], size: int) -> _CachedVectors:
    """Return the known vectors with those of new rows."""
    import numpy as np

    if known is not None and not rows:
        return known
    ids = np.array([row.id for row in rows], dtype=np.int64)
    languages = np.array([row.language for row in rows], dtype=np.str_)
    vectors = np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4").reshape(len(rows), size)
    if known is not None:
        ids = np.concatenate([known.ids, ids])
        languages = np.concatenate([known.languages, languages])
        vectors = np.concatenate([known.vectors, vectors])
    return _CachedVectors(ids=ids, languages=languages, vectors=vectors, last=int(ids[-1]) if len(ids) else 0)
