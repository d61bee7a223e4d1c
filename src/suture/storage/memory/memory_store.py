"""Memories in and out of the database: stored once each, counted, embedded anew by another embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from suture.errors import UsageError
from suture.storage.database.full_text_search import searched_words
from suture.storage.database.memory_rows import (
    change_rows,
    insert_missing,
    known_keys,
    rows_after,
    rows_by_id,
    rows_named,
    rows_to_embed,
    set_states,
    set_vectors,
)
from suture.storage.database.vector_search import index_vectors
from suture.storage.memory.fingerprints import meaning_of
from suture.storage.memory.memory_items import MOST_RUNS, TABLES, Item, TableName, bounded
from suture.storage.memory.retention import shows_no_benefit

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder


BATCH = 256
COLUMNS = tuple(one.name for one in fields(Item) if one.name != "table")
COUNTERS = ("recalled", "withheld", "healed_recalled", "healed_withheld")
Row = Mapping[str, Any]


def keep(store: Store, items: Sequence[Item], embedder: Embedder | None) -> dict[TableName, int]:
    """Store what is not there yet; what is there stays as it is, its counts included.

    Args:
        store: The database.
        items: What to store; secrets are taken out.
        embedder: Makes their vectors; without one they are found by their words.

    Returns:
        How many of each table there are among the items.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    each: dict[str, Item] = {}
    for item in map(bounded, items):
        each.setdefault(item.key, item)
    by_table = {name: [item for item in each.values() if item.table == name] for name in TABLES}
    for name, of_table in by_table.items():
        known = known_keys(store, name, [item.key for item in of_table]) if of_table else frozenset()
        fresh = [item for item in of_table if item.key not in known]
        if fresh:
            vectors = embedder.embed([_meaning(item) for item in fresh]) if embedder else [None] * len(fresh)
            made_by = embedder.identity if embedder else ""
            rows = [_row_of(item, vector, made_by) for item, vector in zip(fresh, vectors, strict=True)]
            insert_missing(store, name, rows)
    return {name: len(of_table) for name, of_table in by_table.items()}


def _row_of(item: Item, vector: Any, made_by: str) -> Row:
    """The columns of an item; a text without words has no vector."""
    is_empty = vector is None or not vector.any()
    return {
        **{name: getattr(item, name) for name in COLUMNS},
        "key": item.key,
        "searched": searched_words(item.searched),
        "details": {**item.details, "found_by": item.searched},  # to embed it anew
        "embedder": "" if is_empty else made_by,
        "vector": None if is_empty else vector,
    }


def _meaning(item: Item) -> str:
    return meaning_of(item.error_signature, item.code_shape, item.searched)


def item_of_row(name: TableName, row: Row) -> Item:
    """The item that a row holds."""
    known = {column: row[column] for column in COLUMNS}
    details = dict(known["details"] or {})
    known["searched"] = details.pop("found_by", known["searched"])
    return Item(table=name, **{**known, "details": details})


def rows_of(store: Store, name: TableName, ids: Sequence[int]) -> dict[int, tuple[Item, str]]:
    """Id -> the item, and who made its vector."""
    return {row["id"]: (item_of_row(name, row), row["embedder"]) for row in rows_by_id(store, name, ids)}


def stored_items(
    store: Store, *, tables: Iterable[TableName] = TABLES, state: str | None = "active", run: str = ""
) -> Iterator[Item]:
    """Every item, by table and the oldest first.

    Args:
        store: The database.
        tables: Which.
        state: Only those in it; all where `None`.
        run: Only those that this run taught.
    """
    for name in tables:
        last = 0
        while True:
            rows = rows_after(store, name, last, state=state, run=run, limit=BATCH)
            if not rows:
                break
            last = rows[-1]["id"]
            yield from (item_of_row(name, row) for row in rows)


def named(store: Store, start: str) -> Item:
    """The item whose key begins so.

    Raises:
        UsageError: None does, or several do.
    """
    found = []
    for name in TABLES:
        found += [item_of_row(name, row) for row in rows_named(store, name, start)]
    if len(found) != 1:
        what = "no memory" if not found else "more than one memory"
        raise UsageError(f"{what} has a key that begins with {start!r}", remedy="see `suture memory list`")
    return found[0]


def set_state(store: Store, keys: Sequence[tuple[TableName, str]], state: str) -> int:
    """Set some items active, evicted or forgotten; what is forgotten loses its texts too.

    Returns:
        How many there were.
    """
    emptied = dict.fromkeys(("text", "counterexample", "diagnosis", "patch", "tests", "searched"), "")
    values: dict[str, Any] = {"state": state}
    if state == "forgotten":
        values |= {**emptied, "details": {}, "vector": None, "embedder": ""}
    return set_states(store, keys, values)


def count_use(store: Store, name: TableName, key: str, run: str, *, shown: bool, healed: bool) -> None:
    """Count what came of one use; a run that was counted already is not counted again.

    Args:
        store: The database.
        name: The item's table.
        key: The item's key.
        run: The run.
        shown: Whether it saw the item.
        healed: Whether it ended well.
    """

    def counted(row: Row) -> Row | None:
        runs = item_of_row(name, row).runs
        if run in runs:
            return None
        arm = "recalled" if shown else "withheld"
        counts = {arm: row[arm] + 1}
        if healed:
            counts[f"healed_{arm}"] = row[f"healed_{arm}"] + 1
        return {**counts, "details": {**dict(row["details"] or {}), "runs": [*runs, run][-MOST_RUNS:]}}

    change_rows(store, [(name, key, counted)])


def merge_counts(store: Store, items: Sequence[Item]) -> frozenset[str]:
    """Add what items of another database were good for to those that are known here; answers their keys.

    Uses in runs that both have counted are counted once: where only some are shared, the larger counts hold.
    """
    return change_rows(store, [(item.table, item.key, _merging(item)) for item in items])


def _merging(item: Item) -> Callable[[Row], Row | None]:
    """What becomes of the row of an item that another database knows too."""

    def merged(row: Row) -> Row | None:
        mine = item_of_row(item.table, row)
        theirs = set(item.runs) - set(mine.runs)
        if not theirs or mine.state == "forgotten":
            return None
        apart = theirs == set(item.runs)
        values: dict[str, Any] = {
            name: row[name] + getattr(item, name) if apart else max(row[name], getattr(item, name))
            for name in COUNTERS
        }
        details = {**dict(row["details"]), "runs": [*mine.runs, *sorted(theirs)][-MOST_RUNS:]}
        return {**values, "details": details}

    return merged


def evict_useless(store: Store, keys: Iterable[tuple[TableName, str]]) -> int:
    """Evict those of some items that were used often and show no benefit; answers how many."""
    gone = []
    for name, key in keys:
        for row in rows_named(store, name, key, limit=1):
            judged = row["state"] == "active" and row["source"] != "placebo"
            if judged and shows_no_benefit(item_of_row(name, row)):
                gone.append((name, key))
    return set_state(store, gone, "evicted")


def embed_anew(store: Store, embedder: Embedder, *, most: int | None = None) -> int:
    """Give every item a vector of this embedder that has another's, or none; answers how many.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    done = 0
    for name in TABLES:
        last = 0
        while most is None or done < most:
            rows = rows_to_embed(store, name, last, embedder.identity, BATCH)
            if not rows:
                break
            last = rows[-1]["id"]
            vectors = embedder.embed([_meaning(item_of_row(name, row)) for row in rows])
            made = zip(rows, vectors, strict=True)
            found = {row["id"]: vector if vector.any() else None for row, vector in made}
            set_vectors(store, name, embedder.identity, found)
            done += len(rows)
    return done


def index_embedder(store: Store, embedder: Embedder) -> bool:
    """See that the vectors of an embedder are found by an index, where the database can have one.

    Raises:
        StorageError: The database failed, or does not let this user make an index.
        ModelError: The embedder failed.
    """
    return index_vectors(store, TABLES, embedder.identity, len(embedder.embed(["length"])[0]))
