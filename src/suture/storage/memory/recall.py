"""Recall of memory items whose vectors are near that of a failure or a task; near-duplicates are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Double, LargeBinary, Table, select, type_coerce

from suture.storage.database.tables import METADATA
from suture.storage.memory.fingerprints import FailureFingerprint
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryItem, MemoryTableName
from suture.storage.memory.memory_store import items_by_id
from suture.storage.memory.vectors import compute_vectors
from suture.storage.tuning import SEARCH_DEPTH

if TYPE_CHECKING:
    from suture.storage.database.store import Store


@dataclass(frozen=True, kw_only=True)
class MemoryMatch:
    """A recalled item, with the dot product of its vector and that of the query, in [-1, 1]."""

    item: MemoryItem
    similarity: float


def recall_memories(
    store: Store,
    fingerprint: FailureFingerprint,
    *,
    tables: Sequence[MemoryTableName] = MEMORY_TABLE_NAMES,
    language: str = "",
    repaired: bool | None = None,
    limit: int = 5,
) -> list[MemoryMatch]:
    """Return items that resemble a failure or a task, the likeliest first.

    Args:
        language: Only items of this language; all if empty.
        repaired: Only items that were, or were not, repaired; all if `None`.
        limit: Maximum number of items.
    """
    failure_vector, text_vector = compute_vectors([fingerprint.embedding_text, fingerprint.search_text])
    matches: list[MemoryMatch] = []
    for name in tables:
        # Only failures have an error and a code shape; patterns and lessons are found by their texts.
        vector = failure_vector if name == "failures" else text_vector
        nearest = find_nearest(store, name, vector, language=language, repaired=repaired, limit=SEARCH_DEPTH)
        items = items_by_id(store, name, nearest)
        matches += [
            MemoryMatch(item=items[row_id], similarity=similarity)
            for row_id, similarity in nearest.items()
            if row_id in items
        ]
    matches.sort(key=lambda match: -match.similarity)
    distinct: dict[tuple[str, str], MemoryMatch] = {}
    for match in matches:  # a match with the same content as a better one is dropped
        content = " ".join((match.item.patch or match.item.text).split())
        distinct.setdefault((match.item.error_signature, content), match)
    return list(distinct.values())[:limit]


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

    pgvector in PostgreSQL, or numpy with SQLite, compares all vectors of the table.

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
    ]
    if language:
        conditions.append(table.c.language == language)
    if repaired is not None:
        conditions.append(table.c.repaired == repaired)
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
