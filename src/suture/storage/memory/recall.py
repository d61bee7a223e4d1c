"""Finding memories: by words and by vectors, the two rankings fused, near-duplicates merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.storage.database.full_text_search import most_similar
from suture.storage.database.vector_search import nearest
from suture.storage.memory.memory_items import TABLES, Item, TableName
from suture.storage.memory.memory_store import rows_of

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder

FUSED_K = 60
"""Of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""
DEPTH = 40
"""How many each search brings."""
MOST_QUERY_WORDS = 40
"""Of a search by words. By taste."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A memory that was found.

    Attributes:
        item: The memory.
        score: Sum of reciprocal ranks; comparable within one recall only.
        likeness: Dot product of the vectors, in [-1, 1]; 0 where its words alone were found.
    """

    item: Item
    score: float
    likeness: float = 0.0


def recall(
    store: Store,
    words: str,
    embedder: Embedder | None,
    *,
    tables: Sequence[TableName] = TABLES,
    language: str = "",
    kind: str = "",
    mended: bool | None = None,
    limit: int = 5,
    meaning: str = "",
    by_words: bool = True,
) -> list[Found]:
    """Memories like a failure or a task, the likeliest first.

    Args:
        store: The database.
        words: What it is about: `Clue.searched`, or what a person types.
        embedder: Makes the query's vector; only vectors of its own are looked at.
        tables: Where to look.
        language: Only memories of it; of all where empty.
        kind: Only memories of that kind; of all where empty.
        mended: Only of failures that were, or were not, mended.
        limit: The most.
        meaning: What the query's vector is made of; the words where empty.
        by_words: Whether words are searched too.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    vector = embedder.embed([meaning or words])[0] if embedder else None
    found: list[Found] = []
    for name in tables:
        ranked: dict[int, float] = {}
        near: dict[int, float] = {}
        if vector is not None and embedder is not None and vector.any():
            near = dict(nearest(store, name, vector, embedder.identity, language=language, limit=DEPTH))
            for rank, number in enumerate(near, 1):
                ranked[number] = ranked.get(number, 0.0) + 1 / (FUSED_K + rank)
        if by_words:
            ids = most_similar(store, name, telling_words(words), limit=DEPTH)
            for rank, number in enumerate(ids, 1):
                ranked[number] = ranked.get(number, 0.0) + 1 / (FUSED_K + rank)
        rows = rows_of(store, name, list(ranked))
        for number, (item, _) in sorted(rows.items()):
            fits = (
                item.state == "active"
                and item.source != "placebo"
                and (not language or item.language == language)
                and (not kind or item.kind == kind)
                and (mended is None or item.mended == mended)
            )
            if fits:
                found.append(Found(item=item, score=ranked[number], likeness=near.get(number, 0.0)))
    found.sort(key=lambda one: (-one.score, -one.likeness))  # equals stay in the order of their numbers
    return _merged(found)[:limit]


def telling_words(words: str) -> str:
    """The words of a query that are looked for: each once, without those of one or two letters."""
    each = dict.fromkeys(part for part in _apart(words) if len(part) > 2)
    return " ".join(list(each)[:MOST_QUERY_WORDS])


def _apart(words: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in words).split()


def _merged(found: Sequence[Found]) -> list[Found]:
    """Without those that say what a better one says already."""
    kept: list[Found] = []
    said: set[tuple[str, str]] = set()
    for one in found:
        mark = (one.item.error_signature, " ".join((one.item.patch or one.item.text).split()))
        if mark not in said:
            said.add(mark)
            kept.append(one)
    return kept
