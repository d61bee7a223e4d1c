"""Full-text and vector search in both engines."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from suture.storage.database.full_text_search import rank_similar_rows, select_rare_words
from suture.storage.database.store import Store, open_store
from suture.storage.database.vector_search import create_vector_index, find_nearest
from suture.storage.memory.embedders import HashedNgrams
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES
from suture.storage.memory.memory_store import insert_missing
from suture.storage.memory.minilm import MiniLm


def test_vector_search_uses_the_index_of_each_embedder(postgres_url: str, tmp_path: Path) -> None:
    served_embedder = "openai:it's 100%:3"

    with open_store(postgres_url, tmp_path, init=True) as store:
        assert create_vector_index(store, MEMORY_TABLE_NAMES, served_embedder, 3)
        assert create_vector_index(store, MEMORY_TABLE_NAMES, served_embedder, 3)
        assert not create_vector_index(store, MEMORY_TABLE_NAMES, "openai:large:3072", 3072)

        sizes = {HashedNgrams.identity: 512, MiniLm.identity: 384, served_embedder: 3}

        for number, (embedder, size) in enumerate(sizes.items()):
            vector = [1.0, *[0.0] * (size - 1)]
            row = {"run_id": "r", "event_seq": 0, "key": f"{number}", "created_s": 0.0, "details": {}}
            row |= {"state": "active", "embedder": embedder, "vector": vector, "language": "python"}
            insert_missing(store, "failures", [row])
            assert [
                round(similarity, 5)
                for _, similarity in find_nearest(store, "failures", vector, embedder, limit=2)
            ] == [1]

        with store.read_transaction() as connection:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            connection.execute(text("SET LOCAL enable_bitmapscan = off"))

            for embedder, size in sizes.items():
                literal = embedder.replace("'", "''").replace(":", r"\:")
                distance = f"(vector::vector({size})) <#> CAST('{[0] * size}' AS vector({size}))"
                query = f"SELECT id FROM failures WHERE embedder = '{literal}' ORDER BY {distance} LIMIT 2"
                plan = connection.execute(text(f"EXPLAIN {query}"))
                assert "_vectors" in "\n".join(plan.scalars()), embedder


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
