"""Recall of memory items by words and by vectors: the two rankings are fused, and near-duplicates merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.storage.database.full_text_search import rank_similar_rows
from suture.storage.database.vector_search import find_nearest
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryItem, MemoryTableName
from suture.storage.memory.memory_store import items_by_id
from suture.storage.memory.vectors import VECTOR_METHOD, compute_vectors
from suture.storage.tuning import MAX_QUERY_WORDS, RANK_FUSION_K, SEARCH_DEPTH

if TYPE_CHECKING:
    from suture.storage.database.store import Store


@dataclass(frozen=True, kw_only=True)
class MemoryMatch:
    """A recalled item.

    Attributes:
        score: Sum of reciprocal ranks; comparable only within one recall.
        similarity: Dot product of the vectors, in [-1, 1]; 0 if only its words matched.
    """

    item: MemoryItem
    score: float
    similarity: float = 0.0


def recall_memories(
    store: Store,
    words: str,
    *,
    tables: Sequence[MemoryTableName] = MEMORY_TABLE_NAMES,
    language: str = "",
    kind: str = "",
    repaired: bool | None = None,
    limit: int = 5,
    embedding_text: str = "",
) -> list[MemoryMatch]:
    """Return items that resemble a failure or a task, the likeliest first.

    Args:
        store: The database.
        words: The query: `FailureFingerprint.search_text`, or what a person types.
        tables: The tables to search.
        language: Only items of this language; all if empty.
        kind: Only items of this kind; all if empty.
        repaired: Only items that were, or were not, repaired; all if `None`.
        limit: Maximum number of items.
        embedding_text: The text that the query's vector is computed from; `words` if empty.
    """
    vector = compute_vectors([embedding_text or words])[0]
    matches: list[MemoryMatch] = []
    for name in tables:
        similarities: dict[int, float] = {}
        rankings: list[list[int]] = []
        if vector.any():
            nearest = find_nearest(store, name, vector, VECTOR_METHOD, language=language, limit=SEARCH_DEPTH)
            similarities = dict(nearest)
            rankings.append(list(similarities))
        rankings.append(rank_similar_rows(store, name, _select_query_words(words), limit=SEARCH_DEPTH))
        scores: dict[int, float] = {}
        for ranking in rankings:
            for rank, row_id in enumerate(ranking, 1):
                scores[row_id] = scores.get(row_id, 0.0) + 1 / (RANK_FUSION_K + rank)
        for row_id, item in sorted(items_by_id(store, name, list(scores)).items(), key=lambda pair: pair[0]):
            if (
                item.state == "active"
                and (not language or item.language == language)
                and (not kind or item.kind == kind)
                and (repaired is None or item.repaired == repaired)
            ):
                similarity = similarities.get(row_id, 0.0)
                matches.append(MemoryMatch(item=item, score=scores[row_id], similarity=similarity))
    matches.sort(key=lambda match: (-match.score, -match.similarity))  # ties stay in the order of their ids
    distinct: dict[tuple[str, str], MemoryMatch] = {}
    for match in matches:  # a match that says the same as a better one is dropped
        content = " ".join((match.item.patch or match.item.text).split())
        distinct.setdefault((match.item.error_signature, content), match)
    return list(distinct.values())[:limit]


def _select_query_words(text: str) -> str:
    """Return the words of a query that are searched: each once, without those of one or two letters."""
    words = "".join(character if character.isalnum() else " " for character in text).split()
    return " ".join(list(dict.fromkeys(word for word in words if len(word) > 2))[:MAX_QUERY_WORDS])
