"""Vector search in both engines."""

from __future__ import annotations

import psycopg

from suture.storage.database.store import Store
from suture.storage.memory.memory_store import forget_items, insert_missing, vector_columns
from suture.storage.memory.recall import find_nearest
from suture.storage.tuning import COMPARED_VECTORS, VECTOR_DIMENSIONS


def make_vector(*starts: float) -> list[float]:
    """Return a vector of the usual length that begins with some numbers."""
    return [*starts, *[0.0] * (VECTOR_DIMENSIONS - len(starts))]


def make_row(key: str, vector: list[float], **columns: str) -> dict[str, object]:
    """Return the row of a memory."""
    return {
        "run_id": "r",
        "key": key,
        "created_s": 0.0,
        "state": "active",
        "language": "python",
        **vector_columns(vector),
        **columns,
    }


def test_the_nearest_active_vectors_of_a_language_come_first(store: Store) -> None:
    rows = [
        make_row("far", make_vector(0.6, 0.8)),
        make_row("near", make_vector(1.0)),
        make_row("forgotten", make_vector(1.0), state="forgotten"),
        make_row("go", make_vector(1.0), language="go"),
    ]
    insert_missing(store, "failures", rows)

    found = find_nearest(store, "failures", make_vector(1.0), language="python", limit=5)
    assert {row_id: round(similarity, 5) for row_id, similarity in found.items()} == {2: 1.0, 1: 0.6}
    assert list(find_nearest(store, "failures", make_vector(1.0), limit=1)) == [2]


def test_rows_of_other_namespaces_do_not_displace_own_rows(store: Store) -> None:
    other_store = Store(engine=store.engine, namespace="theirs", location=store.location)
    insert_missing(store, "failures", [make_row("mine", make_vector(0.6, 0.8))])
    insert_missing(other_store, "failures", [make_row(f"{n}", make_vector(1.0)) for n in range(300)])

    assert len(find_nearest(store, "failures", make_vector(1.0), limit=5)) == 1
    assert len(find_nearest(other_store, "failures", make_vector(1.0), limit=5)) == 5


def test_among_many_rows_only_those_with_near_signatures_are_compared(store: Store) -> None:
    others = [make_row(f"{n}", make_vector(-0.6, 0.8)) for n in range(COMPARED_VECTORS)]
    insert_missing(store, "failures", [*others, make_row("near", make_vector(0.8, 0.6))])

    found = find_nearest(store, "failures", make_vector(0.6, 0.8), limit=1)
    assert {row_id: round(similarity, 5) for row_id, similarity in found.items()} == {
        COMPARED_VECTORS + 1: 0.96
    }
    assert len(find_nearest(store, "failures", make_vector(0.6, 0.8), limit=1000)) == COMPARED_VECTORS


def test_a_later_search_finds_new_rows_and_no_forgotten_ones(store: Store) -> None:
    keys = [f"{n}" for n in range(COMPARED_VECTORS)]
    insert_missing(store, "failures", [make_row("far", make_vector(0.6, 0.8))])
    insert_missing(store, "failures", [make_row(key, make_vector(1.0)) for key in keys])
    query = make_vector(1.0)
    assert 1 not in find_nearest(store, "failures", query, limit=COMPARED_VECTORS)

    assert forget_items(store, [("failures", key) for key in keys]) == COMPARED_VECTORS
    assert list(find_nearest(store, "failures", query, limit=5)) == [1]
    insert_missing(store, "failures", [make_row("new", make_vector(1.0))])
    assert list(find_nearest(store, "failures", query, limit=5)) == [COMPARED_VECTORS + 2, 1]


def test_postgresql_has_an_index_of_near_signatures(postgres_with_tables: str) -> None:
    query = f"SELECT id FROM suture.failures ORDER BY signature <~> B'{0:0{VECTOR_DIMENSIONS}b}' LIMIT 1"
    with psycopg.connect(postgres_with_tables) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(f"EXPLAIN {query}".encode()).fetchall()
    assert any("ix_failures_near_signatures" in line for (line,) in plan)
