"""The cache of signatures finds what a comparison with each row would find, whatever became of the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from suture.storage.database.store import Store, open_store
from suture.storage.database.tables import failures
from suture.storage.memory.memory_store import insert_missing
from suture.storage.memory.signature_cache import SIGNATURE_BYTES, SignatureCache

ROWS = select(failures.c.id, failures.c.signature).where(failures.c.signature.is_not(None))
ZEROS, ONES = bytes(SIGNATURE_BYTES), b"\xff" * SIGNATURE_BYTES


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """An SQLite database without rows."""
    with open_store(f"sqlite:///{tmp_path / 'suture.db'}", tmp_path) as store:
        yield store


def insert_signatures(store: Store, signatures: list[bytes], *, seed: int) -> None:
    rows = [
        {"run_id": "r", "key": f"{seed} {number}", "created_s": 0.0, "signature": signature}
        for number, signature in enumerate(signatures)
    ]
    insert_missing(store, "failures", rows)


def make_signatures(count: int, *, seed: int) -> list[bytes]:
    """Return signatures that differ in few or in many bits; some are equal."""
    lot = random.Random(seed)
    return [
        bytes(lot.choice((0, 0, 0, lot.randrange(256))) for _ in range(SIGNATURE_BYTES)) for _ in range(count)
    ] + [ZEROS, ZEROS]


def search_both_ways(store: Store, cache: SignatureCache, signature: bytes) -> tuple[list[int], list[int]]:
    """Return the ids from the cache, and those from a comparison with each row."""
    with store.read_transaction() as connection:
        rows = connection.execute(ROWS).all()
        cache.update(connection, ROWS)
    number = int.from_bytes(signature, "big")
    ranked = sorted((((number ^ int.from_bytes(other, "big")).bit_count(), row_id) for row_id, other in rows))
    return cache.find_nearest(signature, 100), [row_id for _, row_id in ranked[:100]]


def test_an_empty_cache_finds_nothing(sqlite_store: Store) -> None:
    assert search_both_ways(sqlite_store, SignatureCache(), ZEROS) == ([], [])


def test_the_rows_that_differ_in_fewest_bits_are_found(sqlite_store: Store) -> None:
    cache = SignatureCache()
    for seed in range(3):  # rows are also added after the first search
        insert_signatures(sqlite_store, make_signatures(700, seed=seed), seed=seed)
        for signature in (ZEROS, *make_signatures(5, seed=9)):
            found, expected = search_both_ways(sqlite_store, cache, signature)
            assert found == expected


def test_rows_that_differ_in_all_bits_are_found_in_small_tables(sqlite_store: Store) -> None:
    insert_signatures(sqlite_store, [ONES, ZEROS, ONES], seed=0)
    found, expected = search_both_ways(sqlite_store, SignatureCache(), ZEROS)
    assert set(found) == set(expected) == {1, 2, 3}


def test_other_rows_with_the_same_ids_replace_the_old_ones(sqlite_store: Store) -> None:
    cache = SignatureCache()
    for seed, count in ((0, 300), (1, 400), (2, 200)):
        with sqlite_store.write_transaction() as connection:
            connection.execute(delete(failures))
        insert_signatures(sqlite_store, [*make_signatures(count, seed=seed), bytes([seed]) * 64], seed=seed)
        found, expected = search_both_ways(sqlite_store, cache, ZEROS)
        assert found == expected
