"""Full-text and vector search in both engines."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from suture.storage.database.full_text_search import rank_similar_rows, select_rare_words
from suture.storage.database.store import Store, open_store
from suture.storage.database.vector_search import find_nearest
from suture.storage.memory.memory_store import insert_missing
from suture.storage.memory.vectors import VECTOR_METHOD
from suture.storage.tuning import VECTOR_DIMENSIONS


def test_vector_search_uses_its_index(postgres_url: str, tmp_path: Path) -> None:
    vector = [1.0, *[0.0] * (VECTOR_DIMENSIONS - 1)]
    row = {"run_id": "r", "event_seq": 0, "key": "1", "created_s": 0.0, "details": {}}
    row |= {"state": "active", "embedder": VECTOR_METHOD, "vector": vector, "language": "python"}
    with open_store(postgres_url, tmp_path, init=True) as store:
        insert_missing(store, "failures", [row])
        found = find_nearest(store, "failures", vector, VECTOR_METHOD, limit=2)
        assert [round(similarity, 5) for _, similarity in found] == [1]

        with store.read_transaction() as connection:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            literal = VECTOR_METHOD.replace(":", r"\:")
            size = VECTOR_DIMENSIONS
            distance = f"(vector::vector({size})) <#> CAST('{[0] * size}' AS vector({size}))"
            query = f"SELECT id FROM failures WHERE embedder = '{literal}' ORDER BY {distance} LIMIT 2"
            plan = connection.execute(text(f"EXPLAIN {query}"))
            assert "_vectors" in "\n".join(plan.scalars())


def test_rows_of_other_namespaces_do_not_displace_own_rows(store: Store) -> None:
    words = {"search_text": "cart total"}
    row = {"run_id": "r", "event_seq": 0, "created_s": 0.0, "details": {}, "state": "active", **words}
    other_store = Store(engine=store.engine, namespace="theirs", location=store.location)
    insert_missing(store, "failures", [{**row, "key": "mine"}])
    insert_missing(other_store, "failures", [{**row, "key": f"{number}"} for number in range(300)])

    assert len(rank_similar_rows(store, "failures", "total of a cart", limit=5)) == 1
    assert len(rank_similar_rows(other_store, "failures", "total of a cart", limit=5)) == 5


def test_frequent_words_are_dropped_but_at_least_one_word_remains() -> None:
    assert select_rare_words({"return": 90_000, "cart": 40, "total": 3000, "price": 2000}) == [
        "cart",
        "price",
    ]
    assert select_rare_words({"return": 90_000, "def": 95_000}) == ["return"]
    assert select_rare_words({}) == []
