"""Measure whether memory finds the right entry, and how fast it is.

    python benchmarks/memory.py pairs
    python benchmarks/memory.py speed [--url postgresql://...] [--count 100000]
    python benchmarks/memory.py nearest [--url postgresql://...] [--count 100000]

`pairs` stores the first bug of each pair of `memory_pairs.py` as a repaired failure, and queries with the second.
It reports whether the first bug of the same pair is recalled first, or among the first three.

`speed` fills a database with generated memories, unless it holds some, and measures recalls. `nearest` compares the 40
nearest memories that a search finds with the exact ones.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter, mul
from pathlib import Path
from typing import Any

from memory_pairs import PAIRS, Side
from sqlalchemy import ColumnElement, LargeBinary, Text, cast, select, type_coerce

from suture.core.records import CheckOutcome, Counterexample, Task, Verdict
from suture.project.workspace import unified_diff
from suture.storage.database.search_words import index_text
from suture.storage.database.store import Store, open_store
from suture.storage.database.tables import METADATA
from suture.storage.memory.extraction import render_failure
from suture.storage.memory.fingerprints import (
    FailureFingerprint,
    embedding_text,
    error_class,
    fingerprint_failures,
)
from suture.storage.memory.memory_items import MemoryItem
from suture.storage.memory.memory_store import count_by_state, insert_missing, store_items, vector_columns
from suture.storage.memory.recall import MemoryMatch, find_nearest, recall_memories
from suture.storage.memory.vectors import compute_vector
from suture.storage.tuning import SEARCH_DEPTH

PATH = "code.py"
ASKED = 40
"""Number of recalls that are timed."""
PLACEBO = "A change is easier to read where each line does one thing and functions stay short. "


def create_clue(side: Side) -> FailureFingerprint:
    """Return the query for a bug, as a run would make it."""
    fact = Counterexample(check_id="t", call=side.call, expected=repr(_value(side.right, side.call)))
    try:
        got = _value(side.wrong, side.call)
        fact = Counterexample(check_id="t", call=side.call, expected=fact.expected, actual=repr(got))
    except Exception as fault:
        line = _line_of(fault)
        said = f"{type(fault).__name__}: {fault}"
        fact = Counterexample(
            check_id="t", call=side.call, expected=fact.expected, exception=said, file=PATH, line=line
        )
    outcome = CheckOutcome(check_id="t", status="failed", counterexample=fact)
    verdict = Verdict(candidate="", outcomes=(outcome,), evidence="split")
    return fingerprint_failures(verdict, {PATH: side.wrong.encode()}, Task(statement=""))[0]


def _value(source: str, call: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, PATH, "exec"), names)  # functions of our own
    return eval(call, names)


def _line_of(fault: BaseException) -> int | None:
    line, trace = None, fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PATH:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def store_first_bugs(store: Store, *, is_placebo: bool = False) -> None:
    """Store the first bug of each pair as a repaired failure, as a run would have left it.

    Args:
        store: An empty database.
        is_placebo: Whether the texts of the memories are meaningless, and as long as the real ones.
    """
    items = []
    for name, (first, _) in PAIRS.items():
        clue = create_clue(first)
        patch = unified_diff({PATH: first.wrong.encode()}, {PATH: first.right.encode()})
        text = render_failure(clue, patch)
        items.append(
            MemoryItem(
                table="failures",
                run_id=name,
                kind=error_class(clue.signature),
                text=(PLACEBO * 40)[: len(text)] if is_placebo else text,
                error_signature=clue.signature,
                patch=patch,
                code_shape=clue.shape,
                repaired=True,
                search_text=clue.search_text,
            )
        )
    store_items(store, items)


def measure_pairs() -> dict[str, Any]:
    """Measure how often the right memory is recalled."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:///{folder}/memory.db", Path(folder)) as store,
    ):
        store_first_bugs(store)
        asked = {pair: create_clue(second) for pair, (_, second) in PAIRS.items()}
        found = {pair: recall_memories(store, clue, limit=3) for pair, clue in asked.items()}
    return {"pairs": len(PAIRS), "recall": _hits(found)}


def _hits(found: Mapping[str, Sequence[MemoryMatch]]) -> dict[str, float]:
    firsts = [one[0].item.run_id == pair for pair, one in found.items() if one]
    threes = [pair in [each.item.run_id for each in one[:3]] for pair, one in found.items()]
    return {"at 1": round(sum(firsts) / len(found), 3), "at 3": round(sum(threes) / len(found), 3)}


@contextlib.contextmanager
def open_filled_store(url: str | None, count: int) -> Iterator[Store]:
    """Open a database with generated memories, which is filled if it is empty; without a URL it is a temporary file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(url or f"sqlite:///{folder}/suture.db", Path(folder), init=True) as store,
    ):
        if not count_by_state(store)["failures"]:
            _fill_with(store, count)
            if store.is_postgresql:  # as it does by itself within a minute
                with store.write_transaction() as connection:
                    connection.exec_driver_sql("ANALYZE failures")
        yield store


def measure_speed(url: str | None, count: int) -> dict[str, Any]:
    """Measure the milliseconds of the first recall and of later ones."""
    sides = [side for pair in PAIRS.values() for side in pair]
    asked = [create_clue(sides[number % len(sides)]) for number in range(ASKED + 1)]
    with open_filled_store(url, count) as store:
        store.close()  # the first recall opens a connection
        times = [_timed_ms(store, clue) for clue in asked]
        memories = count_by_state(store)["failures"]["active"]
    ordered = sorted(wall for wall, _ in times[1:])
    return {
        "database": store.engine.dialect.name,
        "memories": memories,
        "first recall ms": round(times[0][0], 1),
        "p50 ms": round(statistics.median(ordered), 1),
        "p95 ms": round(ordered[int(0.95 * len(ordered))], 1),
        "first recall, this process's CPU ms": round(times[0][1], 1),
        "p50 of this process's CPU ms": round(statistics.median(cpu for _, cpu in times[1:]), 1),
    }


def measure_nearest(url: str | None, count: int) -> dict[str, Any]:
    """Measure how many of the nearest memories a search finds."""
    texts = [create_clue(side).embedding_text for pair in PAIRS.values() for side in pair]
    vectors = [vector for vector in map(compute_vector, texts) if vector]
    with open_filled_store(url, count) as store:
        found = [
            list(find_nearest(store, "failures", vector, limit=SEARCH_DEPTH).values()) for vector in vectors
        ]
        # Most numbers of a query are zero, so only the others are multiplied.
        positions = [[place for place, number in enumerate(vector) if number] for vector in vectors]
        queries = [
            (itemgetter(*places), list(filter(None, vector)))
            for places, vector in zip(positions, vectors, strict=True)
        ]
        similarities: list[list[float]] = [[] for _ in vectors]
        for numbers in _stored_vectors(store):
            for (pick, vector), values in zip(queries, similarities, strict=True):
                values.append(sum(map(mul, vector, pick(numbers))))
    shares = []
    for values, nearest in zip(similarities, found, strict=True):
        farthest = heapq.nlargest(SEARCH_DEPTH, values)[-1] - 1e-6  # PostgreSQL computes with fewer digits
        shares.append(sum(similarity >= farthest for similarity in nearest) / SEARCH_DEPTH)
    return {
        "memories": len(similarities[0]),
        "queries": len(shares),
        "with all of the nearest": shares.count(1),
        "share of the nearest that are found": round(statistics.mean(shares), 4),
    }


def _stored_vectors(store: Store) -> Iterator[Sequence[float]]:
    column = METADATA.tables["failures"].c.vector
    content: ColumnElement[Any] = (
        cast(column, Text) if store.is_postgresql else type_coerce(column, LargeBinary)
    )
    with store.read_transaction() as connection:
        for (stored,) in connection.execute(select(content).execution_options(yield_per=1000)):
            is_text = isinstance(stored, str)
            yield json.loads(stored) if is_text else struct.unpack(f"<{len(stored) // 4}f", stored)


def _timed_ms(store: Store, clue: FailureFingerprint) -> tuple[float, float]:
    """Return wall-clock and CPU milliseconds of a recall."""
    began, cpu = time.perf_counter(), time.process_time()
    found = recall_memories(store, clue, tables=("failures",), language="python", limit=5)
    assert found
    return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)


def _fill_with(store: Store, count: int) -> None:
    """Fill a database with memories made of parts of those of the pairs, and of many rarer words.

    Signatures and kinds of syntax are those of a pair, with some left out and some of another pair's, so that their
    vectors are as unevenly distributed as real ones.
    """
    lot = random.Random(0)
    clues = [create_clue(side) for pair in PAIRS.values() for side in pair]
    common = index_text(*(side.wrong for pair in PAIRS.values() for side in pair)).split()
    rare = [f"name{number}" for number in range(20_000)]
    for start in range(0, count, 2000):
        rows = []
        for number in range(start, min(count, start + 2000)):
            sign = lot.choice(clues).signature + (f" {lot.choice(rare)}" if lot.random() < 0.5 else "")
            kinds = [kind for kind in lot.choice(clues).shape.split() if lot.random() < 0.8]
            shape = " ".join([*kinds, *lot.choice(clues).shape.split()[: lot.randrange(6)]])
            words = " ".join([*lot.choices(common, k=20), *lot.choices(rare, k=20)])
            rows.append(
                {
                    "run_id": str(number),
                    "key": f"{number:064x}",
                    "state": "active",
                    "language": "python",
                    "text": f"memory {number}",
                    "patch": f"+{number}",
                    "error_signature": sign,
                    "code_shape": shape,
                    "repaired": True,
                    "created_s": 0.0,
                    "search_text": words,
                }
            )
        for row in rows:
            made = embedding_text(str(row["error_signature"]), str(row["code_shape"]), "")
            row.update(vector_columns(compute_vector(made)))
        insert_missing(store, "failures", rows)


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("pairs", "speed", "nearest"))
    parser.add_argument("--url", help="an empty database, or one that was filled before")
    parser.add_argument("--count", type=int, default=100_000)
    given = parser.parse_args()
    if given.what == "pairs":
        result = measure_pairs()
    else:
        measure = measure_speed if given.what == "speed" else measure_nearest
        result = measure(given.url, given.count)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
