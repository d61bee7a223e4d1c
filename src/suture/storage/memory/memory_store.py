"""Memory items in the database: stored once each, counted, and re-embedded for another embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from suture.errors import UsageError
from suture.storage.database.full_text_search import index_text
from suture.storage.database.memory_rows import (
    change_rows,
    insert_missing,
    known_keys,
    rows_after,
    rows_by_id,
    rows_by_key_prefix,
    rows_to_embed,
    set_vectors,
    update_states,
)
from suture.storage.database.vector_search import create_vector_index
from suture.storage.memory.fingerprints import embedding_text
from suture.storage.memory.memory_items import (
    MEMORY_TABLE_NAMES,
    MemoryItem,
    MemoryState,
    MemoryTableName,
    sanitise_item,
)
from suture.storage.memory.retention import shows_no_benefit
from suture.storage.tuning import MAX_COUNTED_RUNS

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder


BATCH = 256
COLUMNS = tuple(one.name for one in fields(MemoryItem) if one.name != "table")
COUNTERS = ("recalled", "withheld", "healed_recalled", "healed_withheld")
Row = Mapping[str, Any]


def store_items(
    store: Store, items: Sequence[MemoryItem], embedder: Embedder | None
) -> dict[MemoryTableName, int]:
    """Store items that are not there yet; existing ones stay unchanged, including their counts.

    Args:
        store: The database.
        items: The items; secrets are removed.
        embedder: Computes their vectors; without one they are found by their words.

    Returns:
        How many of the given items belong to each table.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    each: dict[str, MemoryItem] = {}
    for item in map(sanitise_item, items):
        each.setdefault(item.key, item)
    by_table = {name: [item for item in each.values() if item.table == name] for name in MEMORY_TABLE_NAMES}
    for name, of_table in by_table.items():
        known = known_keys(store, name, [item.key for item in of_table]) if of_table else frozenset()
        fresh = [item for item in of_table if item.key not in known]
        if fresh:
            vectors = embedder.embed([_meaning(item) for item in fresh]) if embedder else [None] * len(fresh)
            made_by = embedder.identity if embedder else ""
            rows = [_row_of(item, vector, made_by) for item, vector in zip(fresh, vectors, strict=True)]
            insert_missing(store, name, rows)
    return {name: len(of_table) for name, of_table in by_table.items()}


def _row_of(item: MemoryItem, vector: Any, made_by: str) -> Row:
    """Return the columns of an item; a text without words has no vector."""
    is_empty = vector is None or not vector.any()
    return {
        **{name: getattr(item, name) for name in COLUMNS},
        "key": item.key,
        "search_text": index_text(item.search_text),
        "details": {**item.details, "found_by": item.search_text},  # needed to embed it again
        "embedder": "" if is_empty else made_by,
        "vector": None if is_empty else vector,
    }


def _meaning(item: MemoryItem) -> str:
    return embedding_text(item.error_signature, item.code_shape, item.search_text)


def item_from_row(name: MemoryTableName, row: Row) -> MemoryItem:
    """Return the item that a row holds."""
    known = {column: row[column] for column in COLUMNS}
    details = dict(known["details"] or {})
    known["search_text"] = details.pop("found_by", known["search_text"])
    return MemoryItem(table=name, **{**known, "details": details})


def items_by_id(store: Store, name: MemoryTableName, ids: Sequence[int]) -> dict[int, tuple[MemoryItem, str]]:
    """Return id -> the item, and the identity of its vector's embedder."""
    return {row["id"]: (item_from_row(name, row), row["embedder"]) for row in rows_by_id(store, name, ids)}


def iter_items(
    store: Store,
    *,
    tables: Iterable[MemoryTableName] = MEMORY_TABLE_NAMES,
    state: str | None = "active",
    run: str = "",
) -> Iterator[MemoryItem]:
    """Yield items by table, the oldest first.

    Args:
        store: The database.
        tables: The tables.
        state: Only items in this state; all if `None`.
        run: Only items that this run contributed.
    """
    for name in tables:
        last = 0
        while True:
            rows = rows_after(store, name, last, state=state, run=run, limit=BATCH)
            if not rows:
                break
            last = rows[-1]["id"]
            yield from (item_from_row(name, row) for row in rows)


def find_item(store: Store, start: str) -> MemoryItem:
    """Return the item whose key starts with a prefix.

    Raises:
        UsageError: There is none, or several.
    """
    found = []
    for name in MEMORY_TABLE_NAMES:
        found += [item_from_row(name, row) for row in rows_by_key_prefix(store, name, start)]
    if len(found) != 1:
        what = "no memory" if not found else "more than one memory"
        raise UsageError(f"{what} has a key that begins with {start!r}", remedy="see `suture memory list`")
    return found[0]


def set_state(store: Store, keys: Sequence[tuple[MemoryTableName, str]], state: MemoryState) -> int:
    """Set the state of some items; forgotten ones lose their texts too.

    Returns:
        How many items changed.
    """
    emptied = dict.fromkeys(("text", "counterexample", "diagnosis", "patch", "tests", "search_text"), "")
    values: dict[str, Any] = {"state": state}
    if state == "forgotten":
        values |= {**emptied, "details": {}, "vector": None, "embedder": ""}
    return update_states(store, keys, values)


def record_use(store: Store, name: MemoryTableName, key: str, run: str, *, shown: bool, healed: bool) -> None:
    """Count one use of an item; a run is counted only once.

    Args:
        store: The database.
        name: The item's table.
        key: The item's key.
        run: The run's id.
        shown: Whether the run saw the item.
        healed: Whether the run was healed.
    """

    def counted(row: Row) -> Row | None:
        runs = item_from_row(name, row).runs
        if run in runs:
            return None
        arm = "recalled" if shown else "withheld"
        counts = {arm: row[arm] + 1}
        if healed:
            counts[f"healed_{arm}"] = row[f"healed_{arm}"] + 1
        return {**counts, "details": {**dict(row["details"] or {}), "runs": [*runs, run][-MAX_COUNTED_RUNS:]}}

    change_rows(store, [(name, key, counted)])


def merge_counts(store: Store, items: Sequence[MemoryItem]) -> frozenset[str]:
    """Add the uses of items from another database to the items that are known here; return their keys.

    A use in a run that both have counted is counted once: if only some runs are shared, the larger counts
    apply.
    """
    return change_rows(store, [(item.table, item.key, _merge_into(item)) for item in items])


def _merge_into(item: MemoryItem) -> Callable[[Row], Row | None]:
    """Return the change that merges an item of another database into its row."""

    def merged(row: Row) -> Row | None:
        mine = item_from_row(item.table, row)
        theirs = set(item.runs) - set(mine.runs)
        if not theirs or mine.state == "forgotten":
            return None
        disjoint = theirs == set(item.runs)
        values: dict[str, Any] = {
            name: row[name] + getattr(item, name) if disjoint else max(row[name], getattr(item, name))
            for name in COUNTERS
        }
        details = {**dict(row["details"]), "runs": [*mine.runs, *sorted(theirs)][-MAX_COUNTED_RUNS:]}
        return {**values, "details": details}

    return merged


def evict_useless(store: Store, keys: Iterable[tuple[MemoryTableName, str]]) -> int:
    """Evict those of some items that were used often and show no benefit; return how many."""
    gone = []
    for name, key in keys:
        for row in rows_by_key_prefix(store, name, key, limit=1):
            judged = row["state"] == "active" and row["source"] != "placebo"
            if judged and shows_no_benefit(item_from_row(name, row)):
                gone.append((name, key))
    return set_state(store, gone, "evicted")


def reembed_items(store: Store, embedder: Embedder, *, limit: int | None = None) -> int:
    """Compute vectors with this embedder for items that lack one; return how many.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    done = 0
    for name in MEMORY_TABLE_NAMES:
        last = 0
        while limit is None or done < limit:
            rows = rows_to_embed(store, name, last, embedder.identity, BATCH)
            if not rows:
                break
            last = rows[-1]["id"]
            vectors = embedder.embed([_meaning(item_from_row(name, row)) for row in rows])
            made = zip(rows, vectors, strict=True)
            found = {row["id"]: vector if vector.any() else None for row, vector in made}
            set_vectors(store, name, embedder.identity, found)
            done += len(rows)
    return done


def index_embedder(store: Store, embedder: Embedder) -> bool:
    """Create an index of an embedder's vectors if the database supports it; return whether it does.

    Raises:
        StorageError: The database failed, or this user may not create an index.
        ModelError: The embedder failed.
    """
    return create_vector_index(
        store, MEMORY_TABLE_NAMES, embedder.identity, len(embedder.embed(["length"])[0])
    )
