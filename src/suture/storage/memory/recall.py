"""Recall of memory items whose vectors are near that of a failure or a task; near-duplicates are merged."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING

from sqlalchemy import (
    ColumnElement,
    Double,
    LargeBinary,
    Table,
    func,
    select,
    type_coerce,
)

from suture.storage.database.tables import METADATA
from suture.storage.memory.fingerprints import FailureFingerprint
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryItem, MemoryTableName
from suture.storage.memory.memory_store import items_by_id
from suture.storage.memory.signature_cache import CACHE_LOCK, SignatureCache, get_signature_cache
from suture.storage.memory.vectors import compute_signature, compute_vector
from suture.storage.tuning import COMPARED_VECTORS, SEARCH_DEPTH

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
    failure_vector, text_vector = map(compute_vector, (fingerprint.embedding_text, fingerprint.search_text))
    matches: list[MemoryMatch] = []
    for name in tables:
        # Only failures have an error and a code shape; patterns and lessons are found by their texts.
        vector = failure_vector if name == "failures" else text_vector
        if vector is None:
            continue
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
    vector: Sequence[float],
    *,
    language: str = "",
    repaired: bool | None = None,
    limit: int,
) -> dict[int, float]:
    """Return row id -> dot product of the active rows with the nearest vectors, the nearest first.

    Only rows whose signatures differ least from the query's are compared exactly: in PostgreSQL by pgvector.

    Args:
        name: The table.
        vector: The query's unit vector.
        language: Only rows of this language; all if empty.
        repaired: Only rows that were, or were not, repaired; all if `None`.
        limit: Maximum number of rows.
    """
    table = METADATA.tables[name]
    conditions = [
        table.c.namespace == store.namespace,
        table.c.state == "active",
        table.c.signature.is_not(None),
    ]
    if language:
        conditions.append(table.c.language == language)
    if repaired is not None:
        conditions.append(table.c.repaired == repaired)
    if store.is_postgresql:
        matches = _compare_in_postgresql(store, table, conditions, vector)
    else:
        cache = get_signature_cache(store.engine.url, name, store.namespace, language, repaired)
        matches = _compare_in_process(store, table, conditions, vector, cache)
    matches.sort(key=lambda match: (-match[1], match[0]))  # ties in the order of their ids
    return dict(matches[:limit])


def _compare_in_postgresql(
    store: Store, table: Table, conditions: Sequence[ColumnElement[bool]], vector: Sequence[float]
) -> list[tuple[int, float]]:
    """Return pairs `(row id, dot product)` of the candidates."""
    difference = table.c.signature.op("<~>")(compute_signature(vector))
    candidates = select(table.c.id).where(*conditions).order_by(difference).limit(COMPARED_VECTORS)
    # This operator gives the negative dot product.
    distance: ColumnElement[float] = table.c.vector.op("<#>", return_type=Double())(vector)
    query = select(table.c.id, distance).where(table.c.id.in_(candidates))
    # The index is read until there are enough rows that meet the conditions.
    settings = {"hnsw.ef_search": str(COMPARED_VECTORS), "hnsw.iterative_scan": "relaxed_order"}
    with store.read_transaction() as connection:
        connection.execute(select(*(func.set_config(key, value, True) for key, value in settings.items())))
        return [(row_id, -negative) for row_id, negative in connection.execute(query)]


def _compare_in_process(
    store: Store,
    table: Table,
    conditions: Sequence[ColumnElement[bool]],
    vector: Sequence[float],
    cache: SignatureCache,
) -> list[tuple[int, float]]:
    """Return pairs `(row id, dot product)` of the candidates."""
    signature = compute_signature(vector)
    signatures = select(table.c.id, table.c.signature).where(*conditions)
    vectors = select(table.c.id, type_coerce(table.c.vector, LargeBinary)).where(table.c.vector.is_not(None))
    with CACHE_LOCK, store.read_transaction() as connection:
        for _ in range(2):
            cache.update(connection, signatures)
            candidates = cache.find_nearest(signature, COMPARED_VECTORS)
            rows = connection.execute(vectors.where(table.c.id.in_(candidates))).all()
            if len(rows) == len(candidates):
                break
            cache.clear()  # some of them were forgotten
    # Four of five numbers of the query are zero; those of the rows at the same positions are skipped.
    numbers = [number for number in vector if number]
    unpack = struct.Struct("<" + "".join("f" if number else "4x" for number in vector)).unpack
    return [(row_id, sum(map(mul, numbers, unpack(content)))) for row_id, content in rows]
