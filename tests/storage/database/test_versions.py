"""A database of the first version opens after every later migration, with what it held."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import create_engine, select, text

import suture.storage.database.store as migrating
from suture.storage.database.full_text_search import rank_similar_rows, select_rare_words
from suture.storage.database.memory_rows import insert_missing
from suture.storage.database.projection_updates import check_database
from suture.storage.database.store import DATABASE_FILE, LATEST_VERSION, Store, open_store, schema_version_of
from suture.storage.database.tables import tasks
from suture.storage.database.vector_search import create_vector_index, find_nearest
from suture.storage.memory.embedders import HashedNgrams
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES
from suture.storage.memory.memory_store import find_item
from suture.storage.memory.minilm import MiniLm
from suture.storage.memory.recall import recall_memories

FIRST = Path(__file__).with_name("first_version.db.gz")
"""Made by the migration 0001, with a task and a failure."""
ROWS = (
    "INSERT INTO {0}tasks (namespace, run_id, statement, outcome, searched) "
    "VALUES ('default', 'run-1', 'Write double(n).', 'healed', 'write double n')",
    "INSERT INTO {0}failures (namespace, run_id, event_seq, key, source, state, language, kind, text, "
    "error_signature, mended, created_s, recalled, searched) VALUES ('default', 'run-1', 3, 'k1', 'run', "
    "'active', 'python', 'KeyError', 'a mend', 'KeyError: <value>', true, 1.5, 2, 'keyerror cart total')",
)


def assert_it_is_all_there(store: Store, home: Path) -> None:
    with store.read_transaction() as connection:
        assert schema_version_of(connection) == LATEST_VERSION
        assert connection.execute(select(tasks.c.run_id, tasks.c.outcome)).all() == [("run-1", "healed")]
    assert (find_item(store, "k1").text, find_item(store, "k1").recalled) == ("a mend", 2)
    assert [one.item.text for one in recall_memories(store, "the total of a cart", HashedNgrams())] == [
        "a mend"
    ]
    assert check_database(store, home) == []


def test_a_file_of_the_first_version_opens(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(gzip.decompress(FIRST.read_bytes()))
    with open_store(None, tmp_path) as store:
        assert_it_is_all_there(store, tmp_path)


def test_a_postgresql_of_the_first_version_is_brought_up_to_date(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = command.upgrade
    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", lambda config, _: usual(config, "0001"))
        first = create_engine(
            postgres_url.replace("postgresql://", "postgresql+psycopg://"),
            connect_args={"options": f"-csearch_path={migrating.SCHEMA},public"},
        )
        with first.begin() as connection:
            migrating.upgrade_schema(connection)
        with first.begin() as connection:
            assert schema_version_of(connection) == "0001"
            for row in ROWS:
                connection.execute(text(row.format("")))
        first.dispose()
    with open_store(postgres_url, tmp_path, init=True) as store:
        assert_it_is_all_there(store, tmp_path)


def test_vectors_of_every_embedder_with_an_index_are_found_by_it(postgres_url: str, tmp_path: Path) -> None:
    other = "openai:it's 100%:3"
    with open_store(postgres_url, tmp_path, init=True) as store:
        assert create_vector_index(store, MEMORY_TABLE_NAMES, other, 3)
        assert create_vector_index(store, MEMORY_TABLE_NAMES, other, 3)
        assert not create_vector_index(store, MEMORY_TABLE_NAMES, "openai:large:3072", 3072)
        sizes = {HashedNgrams.identity: 512, MiniLm.identity: 384, other: 3}
        for number, (embedder, size) in enumerate(sizes.items()):
            vector = [1.0, *[0.0] * (size - 1)]
            row = {"run_id": "r", "event_seq": 0, "key": f"{number}", "created_s": 0.0, "details": {}}
            row |= {"state": "active", "embedder": embedder, "vector": vector, "language": "python"}
            insert_missing(store, "failures", [row])
            assert [
                round(likeness, 5)
                for _, likeness in find_nearest(store, "failures", vector, embedder, limit=2)
            ] == [1]
        with store.read_transaction() as connection:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            for embedder, size in sizes.items():
                literal = embedder.replace("'", "''").replace(":", r"\:")
                ordered = f"(vector::vector({size})) <#> CAST('{[0] * size}' AS vector({size}))"
                query = f"SELECT id FROM failures WHERE embedder = '{literal}' ORDER BY {ordered} LIMIT 2"
                plan = connection.execute(text(f"EXPLAIN {query}"))
                assert "_vectors" in "\n".join(plan.scalars()), embedder


def test_rows_of_other_namespaces_do_not_hide_ones_own(store: Store) -> None:
    words = {"searched": "cart total"}
    row = {"run_id": "r", "event_seq": 0, "created_s": 0.0, "details": {}, "state": "active", **words}
    theirs = Store(engine=store.engine, namespace="theirs", location=store.location)
    insert_missing(store, "failures", [{**row, "key": "mine"}])
    insert_missing(theirs, "failures", [{**row, "key": f"{number}"} for number in range(300)])
    assert len(rank_similar_rows(store, "failures", "total of a cart", limit=5)) == 1
    assert len(rank_similar_rows(theirs, "failures", "total of a cart", limit=5)) == 5


def test_frequent_words_are_left_out_and_one_word_never() -> None:
    assert select_rare_words({"return": 90_000, "cart": 40, "total": 3000, "price": 2000}) == [
        "cart",
        "price",
    ]
    assert select_rare_words({"return": 90_000, "def": 95_000}) == ["return"]
    assert select_rare_words({}) == []
