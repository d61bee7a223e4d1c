"""Memory items in the database: stored once each, and counted.

Functions take the name of a table: `failures`, `patterns` or `lessons`. A row is a mapping from column to value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Table, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from suture.errors import UsageError
from suture.storage.database.search_words import index_text
from suture.storage.database.tables import METADATA
from suture.storage.memory.fingerprints import embedding_text
from suture.storage.memory.memory_items import (
    MEMORY_TABLE_NAMES,
    MemoryItem,
    MemoryState,
    MemoryTableName,
    sanitise_item,
)
from suture.storage.memory.vectors import VECTOR_METHOD, compute_vectors
from suture.storage.tuning import MAX_COUNTED_RUNS

if TYPE_CHECKING:
    from suture.storage.database.store import Store


BATCH = 256
"""Rows that are read at a time. Chosen by judgement; not measured."""
COLUMNS = tuple(field.name for field in fields(MemoryItem) if field.name != "table")
COUNTERS = ("recalled", "healed_recalled")
Row = Mapping[str, Any]
Change = Callable[[Row], Row | None]
"""Returns the new values of a row's columns, or `None` to leave it unchanged."""


def store_items(store: Store, items: Sequence[MemoryItem]) -> dict[MemoryTableName, int]:
    """Store items that are not there yet; return how many of the given items belong to each table.

    Secrets are removed. Existing items stay unchanged, including their counts.
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
            vectors = compute_vectors(
                [
                    embedding_text(item.error_signature, item.code_shape, item.search_text)
                    for item in new_items
                ]
            )
            rows = [_item_row(item, vector) for item, vector in zip(new_items, vectors, strict=True)]
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


def _item_row(item: MemoryItem, vector: Any) -> Row:
    """Return the columns of an item; a text without words has no vector."""
    has_vector = vector.any()
    return {
        **{name: getattr(item, name) for name in COLUMNS},
        "key": item.key,
        "search_text": index_text(item.search_text),
        # The indexed text is not the original one.
        "details": {**item.details, "found_by": item.search_text},
        "embedder": VECTOR_METHOD if has_vector else "",
        "vector": vector if has_vector else None,
    }


def item_from_row(name: MemoryTableName, row: Row) -> MemoryItem:
    """Return the item that a row of the table called `name` holds."""
    values = {column: row[column] for column in COLUMNS}
    values["details"] = dict(values["details"] or {})
    values["search_text"] = values["details"].pop("found_by", values["search_text"])
    return MemoryItem(table=name, **values)


def items_by_id(store: Store, name: MemoryTableName, ids: Sequence[int]) -> dict[int, MemoryItem]:
    """Return row id -> item."""
    table = METADATA.tables[name]
    columns = [column for column in table.c if column.name != "vector"]
    with store.read_transaction() as connection:
        rows = connection.execute(select(*columns).where(table.c.id.in_(ids))).mappings()
        return {row["id"]: item_from_row(name, dict(row)) for row in rows}


def iter_items(
    store: Store,
    *,
    state: str | None = "active",
    run: str = "",
) -> Iterator[MemoryItem]:
    """Yield items by table, the oldest first.

    `state` selects items in one state, and `None` all. `run` selects the items that one run contributed.
    """
    for name in MEMORY_TABLE_NAMES:
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


def record_use(store: Store, name: MemoryTableName, key: str, run: str, *, healed: bool) -> None:
    """Count one use of an item; a run is counted only once."""

    def count_use(row: Row) -> Row | None:
        runs = item_from_row(name, row).runs
        if run in runs:
            return None
        counts = {"recalled": row["recalled"] + 1, "healed_recalled": row["healed_recalled"] + healed}
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
