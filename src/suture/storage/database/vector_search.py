"""The nearest vectors: by pgvector on PostgreSQL, by one pass over all of them on SQLite.

PostgreSQL has an index (HNSW) of each embedder's vectors, for it compares those of one length only. The
embedded ones have theirs by a migration, others by `index_vectors`. Without one all vectors are compared.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import LargeBinary, func, select, text, type_coerce

from suture.storage.database.memory_rows import table_of
from suture.storage.database.store import Store

MOST_KEPT = 4
"""Tables whose vectors a process keeps; 100,000 of 512 numbers take 200 MB."""
MOST_INDEXED = 2000
"""Numbers of a vector that HNSW takes (pgvector's manual)."""
LOOKED_AT = 100
"""Neighbours that HNSW holds while it looks: more finds surer and slower."""
LEAST_LIKENESS = -2.0
"""Below any dot product of vectors of length 1: of a row that is not asked for."""


def nearest(
    store: Store, name: str, vector: Any, embedder: str, *, language: str = "", limit: int
) -> list[tuple[int, float]]:
    """Ids of the rows with the nearest vectors and their dot products, the nearest first.

    Args:
        store: The database.
        name: The table.
        vector: Of length 1.
        embedder: Whose vectors are looked at; others are passed over.
        language: Only rows of it; of all where empty.
        limit: The most.

    Raises:
        StorageError: The database failed.
    """
    search = _by_pgvector if store.is_postgresql else _by_scan
    found = search(store, name, vector, embedder, language, limit)
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))  # equals in the order of their numbers


def index_vectors(store: Store, names: Iterable[str], embedder: str, size: int) -> bool:
    """Make the indexes of an embedder's vectors, where there is a use for them; answers whether there is.

    Args:
        store: The database.
        names: Its tables.
        embedder: Whose vectors.
        size: Their length.

    Raises:
        StorageError: The database failed, or does not let this user make an index.
    """
    if not store.is_postgresql or size > MOST_INDEXED:
        return False
    with store.writing() as connection:
        for name in names:
            made = (
                f"CREATE INDEX IF NOT EXISTS {_index_name(name, embedder)} ON {name} "
                f"USING hnsw ((vector::vector({size})) vector_ip_ops) WHERE embedder = {_quoted(embedder)}"
            )
            connection.execute(text(made))
    return True


def _index_name(name: str, embedder: str) -> str:
    return f"ix_{name}_{hashlib.sha256(embedder.encode()).hexdigest()[:8]}_vectors"


def _quoted(word: str) -> str:
    """As a literal: an index of some rows serves only a query that names them as it was made."""
    return "'" + word.replace("'", "''").replace(":", r"\:") + "'"


def _by_pgvector(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    size = len(vector)
    only = "AND language = :language " if language else ""
    distance = f"vector::vector({size}) <#> CAST(:vector AS vector({size}))"
    statement = text(
        f"SELECT id, -({distance}) AS likeness FROM {name} "
        f"WHERE namespace = :namespace AND embedder = {_quoted(embedder)} AND state = 'active' {only}"
        f"ORDER BY {distance} LIMIT :limit"
    )
    given = {
        "vector": "[" + ",".join(f"{number:.7g}" for number in vector) + "]",
        "namespace": store.namespace,
        "limit": limit,
    } | ({"language": language} if language else {})
    with store.reading() as connection:
        connection.execute(LOOK_WELL, {"many": str(LOOKED_AT)})
        return [(row.id, float(row.likeness)) for row in connection.execute(statement, given)]


LOOK_WELL = text(
    "SELECT set_config('hnsw.ef_search', :many, true), CASE WHEN string_to_array(extversion, '.')::int[] "
    ">= '{0,8}' THEN set_config('hnsw.iterative_scan', 'strict_order', true) END "
    "FROM pg_extension WHERE extname = 'vector'"
)
"""Since pgvector 0.8 the index goes on where other rows than those asked for are the nearest."""


@dataclass
class _Kept:
    """Vectors that were read once: those of the rows up to an id."""

    ids: Any
    languages: Any
    vectors: Any
    last: int


_kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
_turn = threading.Lock()


def _by_scan(
    store: Store, name: str, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    import numpy as np

    kept = _read(store, name, embedder, len(vector))
    if not len(kept.ids):
        return []
    likeness = kept.vectors @ np.asarray(vector, dtype=np.float32)
    if language:
        likeness = np.where(kept.languages == language, likeness, np.float32(LEAST_LIKENESS))
    most = min(limit, len(likeness))
    best = np.argpartition(-likeness, most - 1)[:most]
    return [(int(kept.ids[one]), float(likeness[one])) for one in best if likeness[one] > LEAST_LIKENESS]


def _read(store: Store, name: str, embedder: str, size: int) -> _Kept:
    """All vectors of an embedder: read once, and then what is new."""
    table = table_of(name)
    key = (store.where, store.namespace, name, embedder)
    mine = (table.c.namespace == store.namespace, table.c.embedder == embedder)
    columns = (table.c.id, table.c.language, type_coerce(table.c.vector, LargeBinary).label("vector"))
    with _turn:
        with store.reading() as connection:
            counted = select(func.count()).select_from(table).where(*mine)
            count = connection.execute(counted).scalar_one()
            known = _kept.get(key)
            last = known.last if known is not None else 0
            query = select(*columns).where(*mine).order_by(table.c.id)
            rows = connection.execute(query.where(table.c.id > last)).all()
            if known is not None and len(known.ids) + len(rows) != count:  # some were taken out, or changed
                known = None
                rows = connection.execute(query).all()
        fresh = _joined(known, [row for row in rows if row.vector is not None], size)
        _kept[key] = fresh
        _kept.move_to_end(key)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
        return fresh


def _joined(known: _Kept | None, rows: list[Any], size: int) -> _Kept:
    """What was known, and rows after it."""
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
    return _Kept(ids=ids, languages=languages, vectors=vectors, last=int(ids[-1]) if len(ids) else 0)
