"""The nearest vectors: by pgvector on PostgreSQL, by one pass over all of them on SQLite."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from suture.memory.storing import table_of

if TYPE_CHECKING:
    from suture.memory.items import TableName
    from suture.store.database import Store

MOST_KEPT = 4
"""Tables whose vectors a process keeps; 100,000 of 384 numbers take 150 MB."""


@dataclass
class _Kept:
    """Vectors that were read once: those of the rows up to an id."""

    ids: Any
    languages: Any
    vectors: Any
    last: int


_kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
_turn = threading.Lock()


def nearest(
    store: Store, name: TableName, vector: Any, embedder: str, *, language: str = "", limit: int
) -> list[tuple[int, float]]:
    """Ids of the rows with the nearest vectors and their dot products, the nearest first.

    Args:
        store: The database.
        name: The table.
        vector: Of length 1.
        embedder: Whose vectors are looked at; others are passed over.
        language: Only rows of it; of all where empty.
        limit: The most.
    """
    if store.is_postgresql:
        return _by_pgvector(store, name, vector, embedder, language, limit)
    return _by_scan(store, name, vector, embedder, language, limit)


def _by_pgvector(
    store: Store, name: TableName, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    size = len(vector)
    only = "AND language = :language " if language else ""
    statement = text(
        f"SELECT id, -(vector::vector({size}) <#> CAST(:vector AS vector({size}))) AS likeness FROM {name} "
        f"WHERE namespace = :namespace AND embedder = :embedder AND state = 'active' {only}"
        f"ORDER BY vector::vector({size}) <#> CAST(:vector AS vector({size})) LIMIT :limit"
    )
    given = {
        "vector": "[" + ",".join(f"{number:.7g}" for number in vector) + "]",
        "namespace": store.namespace,
        "embedder": embedder,
        "limit": limit,
    } | ({"language": language} if language else {})
    with store.reading() as connection:
        return [(row.id, float(row.likeness)) for row in connection.execute(statement, given)]


def _by_scan(
    store: Store, name: TableName, vector: Any, embedder: str, language: str, limit: int
) -> list[tuple[int, float]]:
    import numpy as np

    kept = _read(store, name, embedder, len(vector))
    if not len(kept.ids):
        return []
    likeness = kept.vectors @ np.asarray(vector, dtype=np.float32)
    if language:
        likeness = np.where(kept.languages == language, likeness, np.float32(-2.0))
    most = min(limit, len(likeness))
    best = np.argpartition(-likeness, most - 1)[:most]
    best = best[np.argsort(-likeness[best], kind="stable")]
    return [(int(kept.ids[one]), float(likeness[one])) for one in best if likeness[one] > -2.0]


def _read(store: Store, name: TableName, embedder: str, size: int) -> _Kept:
    """All vectors of an embedder: read once, and then what is new."""
    import numpy as np

    table = table_of(name)
    key = (store.where, store.namespace, name, embedder)
    mine = (table.c.namespace == store.namespace, table.c.embedder == embedder)
    with _turn:
        with store.reading() as connection:
            count = connection.execute(select(func.count()).select_from(table).where(*mine)).scalar_one()
            known = _kept.get(key)
            last = known.last if known is not None else 0
            query = select(table.c.id, table.c.language, table.c.vector).where(*mine, table.c.id > last)
            rows = connection.execute(query.order_by(table.c.id)).all()
            if (
                known is not None and len(known.ids) + len(rows) != count
            ):  # something was taken out, or changed
                known, last = None, 0
                query = select(table.c.id, table.c.language, table.c.vector).where(*mine)
                rows = connection.execute(query.order_by(table.c.id)).all()
        rows = [row for row in rows if row.vector is not None]
        ids = np.array([row.id for row in rows], dtype=np.int64)
        languages = np.array([row.language for row in rows], dtype="U12")
        vectors = np.array([row.vector for row in rows], dtype=np.float32).reshape(len(rows), size)
        if known is not None:
            if len(ids):
                ids, languages = (
                    np.concatenate([known.ids, ids]),
                    np.concatenate([known.languages, languages]),
                )
                vectors = np.concatenate([known.vectors, vectors])
            else:
                ids, languages, vectors = known.ids, known.languages, known.vectors
        fresh = _Kept(ids=ids, languages=languages, vectors=vectors, last=int(ids[-1]) if len(ids) else 0)
        _kept[key] = fresh
        _kept.move_to_end(key)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
        return fresh
