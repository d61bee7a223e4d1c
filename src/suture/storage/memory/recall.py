"""Recall of memory items by words and by vectors: the two rankings are fused, and near-duplicates merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.storage.database.full_text_search import rank_similar_rows
from suture.storage.database.vector_search import find_nearest
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryItem, MemoryTableName
from suture.storage.memory.memory_store import items_by_id
from suture.storage.tuning import MAX_QUERY_WORDS, RANK_FUSION_K, SEARCH_DEPTH

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder


@dataclass(frozen=True, kw_only=True)
class MemoryMatch:
    """A recalled item.

    Attributes:
        item: The memory item.
        score: Sum of reciprocal ranks; comparable only within one recall.
        similarity: Dot product of the vectors, in [-1, 1]; 0 if only its words matched.
    """

    item: MemoryItem
    score: float
    similarity: float = 0.0


def recall_memories(
    store: Store,
    words: str,
    embedder: Embedder | None,
    *,
    tables: Sequence[MemoryTableName] = MEMORY_TABLE_NAMES,
    language: str = "",
    kind: str = "",
    repaired: bool | None = None,
    limit: int = 5,
    embedding_text: str = "",
    search_words: bool = True,
) -> list[MemoryMatch]:
    """Return items that resemble a failure or a task, the likeliest first.

    Args:
        store: The database.
        words: The query: `FailureFingerprint.search_text`, or what a person types.
        embedder: Computes the query's vector; only its own vectors are compared.
        tables: The tables to search.
        language: Only items of this language; all if empty.
        kind: Only items of this kind; all if empty.
        repaired: Only items that were, or were not, repaired.
        limit: Maximum number of items.
        embedding_text: The text that the query's vector is computed from; `words` if empty.
        search_words: Whether words are searched too.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    vector = embedder.embed([embedding_text or words])[0] if embedder else None
    found: list[MemoryMatch] = []
    for name in tables:
        ranked: dict[int, float] = {}
        near: dict[int, float] = {}
        if vector is not None and embedder is not None and vector.any():
            near = dict(
                find_nearest(store, name, vector, embedder.identity, language=language, limit=SEARCH_DEPTH)
            )
            for rank, number in enumerate(near, 1):
                ranked[number] = ranked.get(number, 0.0) + 1 / (RANK_FUSION_K + rank)
        if search_words:
            ids = rank_similar_rows(store, name, query_words(words), limit=SEARCH_DEPTH)
            for rank, number in enumerate(ids, 1):
                ranked[number] = ranked.get(number, 0.0) + 1 / (RANK_FUSION_K + rank)
        rows = items_by_id(store, name, list(ranked))
        for number, (item, _) in sorted(rows.items()):
            fits = (
                item.state == "active"
                and item.source != "placebo"
                and (not language or item.language == language)
                and (not kind or item.kind == kind)
                and (repaired is None or item.repaired == repaired)
            )
            if fits:
                found.append(MemoryMatch(item=item, score=ranked[number], similarity=near.get(number, 0.0)))
    found.sort(key=lambda one: (-one.score, -one.similarity))  # ties stay in the order of their ids
    return _drop_duplicates(found)[:limit]


def query_words(words: str) -> str:
    """Return the words of a query that are searched: each once, without those of one or two letters."""
    each = dict.fromkeys(part for part in _split(words) if len(part) > 2)
    return " ".join(list(each)[:MAX_QUERY_WORDS])


def _split(words: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in words).split()


def _drop_duplicates(found: Sequence[MemoryMatch]) -> list[MemoryMatch]:
    """Drop matches that say the same as a better one."""
    distinct: list[MemoryMatch] = []
    seen: set[tuple[str, str]] = set()
    for one in found:
        mark = (one.item.error_signature, " ".join((one.item.patch or one.item.text).split()))
        if mark not in seen:
            seen.add(mark)
            distinct.append(one)
    return distinct
