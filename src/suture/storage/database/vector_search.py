"""Nearest-vector search: by pgvector in PostgreSQL, by numpy in SQLite. Both compare all vectors of a table."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Double, LargeBinary, Table, select, type_coerce

from suture.storage.database.store import Store
from suture.storage.database.tables import METADATA


def find_nearest(
    store: Store,
    name: str,
    vector: Any,
    *,
    language: str = "",
    repaired: bool | None = None,
    limit: int,
) -> dict[int, float]:
    """Return row id -> dot product of the active rows with the nearest vectors, the nearest first.

    Args:
        name: The table.
        vector: The query's unit vector; a vector of zeros is near nothing.
        language: Only rows of this language; all if empty.
        repaired: Only rows that were, or were not, repaired; all if `None`.
        limit: Maximum number of rows.
    """
    if not vector.any():
        return {}
    table = METADATA.tables[name]
    conditions = [
        table.c.namespace == store.namespace,
        table.c.state == "active",
        table.c.vector.is_not(None),
        *([table.c.language == language] if language else []),
        *([table.c.repaired == repaired] if repaired is not None else []),
    ]
    search = _search_with_pgvector if store.is_postgresql else _scan_vectors
    matches = search(store, table, vector, conditions, limit)
    return dict(sorted(matches, key=lambda match: (-match[1], match[0])))  # ties in the order of their ids


def _search_with_pgvector(
    store: Store, table: Table, vector: Any, conditions: list[Any], limit: int
) -> list[tuple[int, float]]:
    # This operator gives the negative dot product.
    distance: ColumnElement[float] = table.c.vector.op("<#>", return_type=Double())(vector)
    query = select(table.c.id, distance).where(*conditions).order_by(distance, table.c.id).limit(limit)
    with store.read_transaction() as connection:
        return [(row_id, -negative) for row_id, negative in connection.execute(query)]


def _scan_vectors(
    store: Store, table: Table, vector: Any, conditions: list[Any], limit: int
) -> list[tuple[int, float]]:
    import numpy as np

    query = select(table.c.id, type_coerce(table.c.vector, LargeBinary)).where(*conditions)
    with store.read_transaction() as connection:
        rows = connection.execute(query.order_by(table.c.id)).all()
    if not rows:
        return []
    vectors = np.frombuffer(b"".join(content for _, content in rows), dtype="<f4")
    similarities = vectors.reshape(len(rows), -1) @ np.asarray(vector, dtype=np.float32)
    best = np.argsort(-similarities, kind="stable")[:limit]
    return [(rows[index][0], float(similarities[index])) for index in best]
