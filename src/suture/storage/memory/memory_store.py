"""Memory items in the database: stored once each, counted, and re-embedded for another embedder.

Functions take the name of a table: `failures`, `patterns` or `lessons`. A row is a mapping from column to value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Table, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from suture.errors import UsageError
from suture.storage.database.search_words import index_text
from suture.storage.database.tables import METADATA
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
"""Rows that are read or embedded at a time. Chosen by judgement; not measured."""
COLUMNS = tuple(field.name for field in fields(MemoryItem) if field.name != "table")
COUNTERS = ("recalled", "withheld", "healed_recalled", "healed_withheld")
Row = Mapping[str, Any]
Change = Callable[[Row], Row | None]
"""Returns the new values of a row's columns, or `None` to leave it unchanged."""


def store_items(
    store: Store, items: Sequence[MemoryItem], embedder: Embedder | None
) -> dict[MemoryTableName, int]:
    """Store items that are not there yet; return how many of the given items belong to each table.

    Secrets are removed. Existing items stay unchanged, including their counts. Without an embedder, items have no
    vector and are found by their words.
    """
    items_by_key: dict[str, MemoryItem] = {}
    for item in map(sanitise_item, items):
        items_by_key.setdefault(item.key, item)
    counts: dict[MemoryTableName, int] = {}
    for name in MEMORY_TABLE_NAMES:
        keys = [key for key, item in items_by_key.items() if item.table == name]
        counts[name] = len(keys)
        stored_keys = _find_stored_keys(store, name, keys) if keys else frozenset()
        new_items = [items_by_key[key] for key in keys if key not in stored_keys]
        if new_items:
            vectors: Iterable[Any] = [None] * len(new_items)
            if embedder:
                vectors = embedder.embed([_item_embedding_text(item) for item in new_items])
            identity = embedder.identity if embedder else ""
            rows = [
                _item_row(item, vector, identity) for item, vector in zip(new_items, vectors, strict=True)
            ]
            insert_missing(store, name, rows)
    return counts


def _find_stored_keys(store: Store, name: str, keys: Sequence[str]) -> frozenset[str]:
    table = METADATA.tables[name]
    query = select(table.c.key).where(table.c.namespace == store.namespace, table.c.key.in_(keys))
    with store.read_transaction() as connection:
        return frozenset(connection.execute(query).scalars())


def insert_missing(store: Store, name: str, rows: Sequence[Row]) -> None:
    """Insert the rows whose keys are missing, all or none; the namespace is added to their columns."""
    insert = postgresql.insert if store.is_postgresql else sqlite.insert
    statement = insert(METADATA.tables[name]).on_conflict_do_nothing()  # another process may insert first
    with store.write_transaction() as connection:
        connection.execute(statement, [{**row, "namespace": store.namespace} for row in rows])


def _item_row(item: MemoryItem, vector: Any, embedder_identity: str) -> Row:
    """Return the columns of an item; a text without words has no vector."""
    has_vector = vector is not None and vector.any()
    return {
        **{name: getattr(item, name) for name in COLUMNS},
        "key": item.key,
        "search_text": index_text(item.search_text),
        # The indexed text is not the original one, which is needed to compute the vector again.
        "details": {**item.details, "found_by": item.search_text},
        "embedder": embedder_identity if has_vector else "",
        "vector": vector if has_vector else None,
    }


def _item_embedding_text(item: MemoryItem) -> str:
    return embedding_text(item.error_signature, item.code_shape, item.search_text)


def item_from_row(name: MemoryTableName, row: Row) -> MemoryItem:
    """Return the item that a row of the table called `name` holds."""
    values = {column: row[column] for column in COLUMNS}
    values["details"] = dict(values["details"] or {})
    values["search_text"] = values["details"].pop("found_by", values["search_text"])
    return MemoryItem(table=name, **values)


def items_by_id(store: Store, name: MemoryTableName, ids: Sequence[int]) -> dict[int, tuple[MemoryItem, str]]:
    """Return row id -> `(item, identity of its vector's embedder)`."""
    table = METADATA.tables[name]
    columns = [column for column in table.c if column.name != "vector"]
    with store.read_transaction() as connection:
        rows = connection.execute(select(*columns).where(table.c.id.in_(ids))).mappings()
        return {row["id"]: (item_from_row(name, dict(row)), row["embedder"]) for row in rows}


def iter_items(
    store: Store,
    *,
    tables: Iterable[MemoryTableName] = MEMORY_TABLE_NAMES,
    state: str | None = "active",
    run: str = "",
) -> Iterator[MemoryItem]:
    """Yield items by table, the oldest first.

    `state` selects items in one state, and `None` all. `run` selects the items that one run contributed.
    """
    for name in tables:
        last_id = 0
        while rows := rows_after(store, name, last_id, state=state, run=run, limit=BATCH):
            last_id = rows[-1]["id"]
            yield from (item_from_row(name, row) for row in rows)


def rows_after(
    store: Store, name: str, last_id: int, *, state: str | None = None, run: str = "", limit: int
) -> list[Row]:
    """Return up to `limit` rows with ids beyond `last_id`, in the order of their ids; see `iter_items`."""
    table = METADATA.tables[name]
    conditions: list[ColumnElement[bool]] = []
    if state is not None:
        conditions.append(table.c.state == state)
    if run:
        conditions.append(table.c.run_id == run)
    return _select_after(store, table, last_id, conditions, limit)


def _select_after(
    store: Store, table: Table, last_id: int, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[Row]:
    query = select(table).where(table.c.namespace == store.namespace, table.c.id > last_id, *conditions)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(table.c.id).limit(limit)).mappings()]


def find_item(store: Store, key_prefix: str) -> MemoryItem:
    """Return the only item whose key starts with a prefix; raise `UsageError` if there is none, or several."""
    items = []
    for name in MEMORY_TABLE_NAMES:
        items += [item_from_row(name, row) for row in _find_rows(store, name, key_prefix, limit=2)]
    if len(items) != 1:
        subject = "more than one memory" if items else "no memory"
        raise UsageError(
            f"{subject} has a key that begins with {key_prefix!r}", remedy="see `suture memory list`"
        )
    return items[0]


def _find_rows(store: Store, name: str, key_prefix: str, limit: int) -> list[Row]:
    table = METADATA.tables[name]
    has_prefix = table.c.key.startswith(key_prefix, autoescape=True)
    query = select(table).where(table.c.namespace == store.namespace, has_prefix).limit(limit)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def set_state(store: Store, keys: Sequence[tuple[MemoryTableName, str]], state: MemoryState) -> int:
    """Set the state of the items `(table, key)` and return how many changed; forgotten ones lose their texts."""
    values: dict[str, Any] = {"state": state}
    if state == "forgotten":
        values |= dict.fromkeys(("text", "counterexample", "diagnosis", "patch", "tests", "search_text"), "")
        values |= {"details": {}, "vector": None, "embedder": ""}
    changed = 0
    with store.write_transaction() as connection:
        for name, key in keys:
            table = METADATA.tables[name]
            has_key = (table.c.namespace == store.namespace, table.c.key == key)
            statement = update(table).where(*has_key, table.c.state != state).values(**values)
            changed += connection.execute(statement).rowcount
    return changed


def record_use(store: Store, name: MemoryTableName, key: str, run: str, *, shown: bool, healed: bool) -> None:
    """Count one use of an item; a run is counted only once.

    `shown` says whether the run saw the item; otherwise the item was withheld.
    """

    def count_use(row: Row) -> Row | None:
        runs = item_from_row(name, row).runs
        if run in runs:
            return None
        arm = "recalled" if shown else "withheld"
        counts = {arm: row[arm] + 1}
        if healed:
            counts[f"healed_{arm}"] = row[f"healed_{arm}"] + 1
        return {**counts, "details": {**dict(row["details"] or {}), "runs": [*runs, run][-MAX_COUNTED_RUNS:]}}

    _change_rows(store, [(name, key, count_use)])


def _change_rows(store: Store, changes: Iterable[tuple[str, str, Change]]) -> frozenset[str]:
    """Apply changes `(table, key, change)` in one transaction that locks the rows; return the keys that have one."""
    stored_keys = set()
    with store.write_transaction() as connection:
        for name, key, change in changes:
            table = METADATA.tables[name]
            has_key = (table.c.namespace == store.namespace, table.c.key == key)
            row = connection.execute(select(table).where(*has_key).with_for_update()).mappings().first()
            if row is None:
                continue
            stored_keys.add(key)
            values = change(dict(row))
            if values:
                connection.execute(update(table).where(*has_key).values(**values))
    return frozenset(stored_keys)


def merge_counts(store: Store, items: Sequence[MemoryItem]) -> frozenset[str]:
    """Add the uses of items from another database to the same items of this one; return their keys.

    A use in a run that both databases have counted is counted once. The counts of the two are added if they share
    no run. Otherwise the larger count applies, because the counts of single runs are not known.
    """
    return _change_rows(store, [(item.table, item.key, partial(_merge_item, item)) for item in items])


def _merge_item(imported: MemoryItem, row: Row) -> Row | None:
    """Return the changes that add the uses of an imported item to its row, or `None` if it has no new ones."""
    stored = item_from_row(imported.table, row)
    new_runs = set(imported.runs) - set(stored.runs)
    if not new_runs or stored.state == "forgotten":
        return None
    share_no_run = new_runs == set(imported.runs)
    values: dict[str, Any] = {}
    for name in COUNTERS:
        counts = (row[name], getattr(imported, name))
        values[name] = sum(counts) if share_no_run else max(counts)
    runs = [*stored.runs, *sorted(new_runs)][-MAX_COUNTED_RUNS:]
    return {**values, "details": {**dict(row["details"]), "runs": runs}}


def evict_useless(store: Store, keys: Iterable[tuple[MemoryTableName, str]]) -> int:
    """Evict those of the items `(table, key)` that show no benefit after many uses; return how many."""
    useless = []
    for name, key in keys:
        for row in _find_rows(store, name, key, limit=1):
            # A placebo is what other items are compared with, so it has no benefit of its own to show.
            is_judged = row["state"] == "active" and row["source"] != "placebo"
            if is_judged and shows_no_benefit(item_from_row(name, row)):
                useless.append((name, key))
    return set_state(store, useless, "evicted")


def reembed_items(store: Store, embedder: Embedder, *, limit: int | None = None) -> int:
    """Compute vectors with this embedder for about `limit` items that lack one; return how many."""
    count = 0
    for name in MEMORY_TABLE_NAMES:
        table = METADATA.tables[name]
        conditions = [
            table.c.state == "active",
            table.c.source != "placebo",  # a placebo is never recalled, so it needs no vector
            or_(table.c.embedder != embedder.identity, table.c.vector.is_(None)),
        ]
        last_id = 0
        while limit is None or count < limit:
            rows = _select_after(store, table, last_id, conditions, BATCH)
            if not rows:
                break
            last_id = rows[-1]["id"]
            vectors = embedder.embed([_item_embedding_text(item_from_row(name, row)) for row in rows])
            with store.write_transaction() as connection:
                for row, vector in zip(rows, vectors, strict=True):
                    values = {"embedder": embedder.identity, "vector": vector if vector.any() else None}
                    connection.execute(update(table).where(table.c.id == row["id"]).values(**values))
            count += len(rows)
    return count


def count_by_state(store: Store, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return table -> state -> number of rows."""
    counts: dict[str, dict[str, int]] = {}
    with store.read_transaction() as connection:
        for name in names:
            table = METADATA.tables[name]
            query = select(table.c.state, func.count()).where(table.c.namespace == store.namespace)
            rows = connection.execute(query.group_by(table.c.state))
            counts[name] = {state: count for state, count in rows}
    return counts


def index_embedder(store: Store, embedder: Embedder) -> bool:
    """Create an index of an embedder's vectors if the database supports it; return whether it does."""
    size = len(embedder.embed(["length"])[0])
    return create_vector_index(store, MEMORY_TABLE_NAMES, embedder.identity, size)
