"""Recall of memory items whose vectors are near that of a failure or a task; near-duplicates are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.storage.database.vector_search import find_nearest
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
