"""Memory items in the database, stored once each.

Functions take the name of a table: `failures`, `patterns` or `lessons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from suture.errors import UsageError
from suture.storage.database.tables import METADATA
from suture.storage.memory.fingerprints import embedding_text
from suture.storage.memory.memory_items import (
    MEMORY_TABLE_NAMES,
    MemoryItem,
    MemoryTableName,
    sanitise_item,
)
from suture.storage.memory.vectors import compute_signature, compute_vector

if TYPE_CHECKING:
    from suture.storage.database.store import Store


BATCH = 256
"""Rows that are read at a time. Chosen by judgement; not measured."""
COLUMNS = tuple(field.name for field in fields(MemoryItem) if field.name != "table")
VECTOR_COLUMNS = ("vector", "signature")
FORGOTTEN_VALUES = {
    "state": "forgotten",
    **dict.fromkeys(("text", "counterexample", "diagnosis", "patch", "tests", "search_text"), ""),
    **dict.fromkeys(VECTOR_COLUMNS),
}
"""Column -> its value in the row of a forgotten item, whose key stays so that it is not learned again."""
Row = Mapping[str, Any]


def store_items(store: Store, items: Sequence[MemoryItem]) -> dict[MemoryTableName, int]:
    """Store items that are not there yet; return how many of the given items belong to each table.

    Secrets are removed. Existing items stay unchanged.
    """
    items_by_key: dict[str, MemoryItem] = {}
    for item in map(sanitise_item, items):
        items_by_key.setdefault(item.key, item)
    counts: dict[MemoryTableName, int] = {}
    for name in MEMORY_TABLE_NAMES:
        table_items = [item for item in items_by_key.values() if item.table == name]
        counts[name] = len(table_items)
        if table_items:
            insert_missing(store, name, list(map(_item_row, table_items)))
    return counts


def insert_missing(store: Store, name: str, rows: Sequence[Row]) -> None:
    """Insert the rows whose keys are missing, all or none; the namespace is added to their columns."""
    insert = postgresql.insert if store.is_postgresql else sqlite.insert
    statement = insert(METADATA.tables[name]).on_conflict_do_nothing()
    with store.write_transaction() as connection:
        connection.execute(statement, [{**row, "namespace": store.namespace} for row in rows])


def _item_row(item: MemoryItem) -> Row:
    """Return the columns of an item; a string without words has no vector."""
    columns = {name: getattr(item, name) for name in COLUMNS}
    text = embedding_text(item.error_signature, item.code_shape, item.search_text)
    return {**columns, "key": item.key, **vector_columns(compute_vector(text))}


def vector_columns(vector: Sequence[float] | None) -> Row:
    """Return the columns by which an item with this vector is found."""
    return {"vector": vector, "signature": None if vector is None else compute_signature(vector)}


def item_from_row(name: MemoryTableName, row: Row) -> MemoryItem:
    """Return the item that a row of the table called `name` holds."""
    return MemoryItem(table=name, **{column: row[column] for column in COLUMNS})


def items_by_id(store: Store, name: MemoryTableName, ids: Iterable[int]) -> dict[int, MemoryItem]:
    """Return row id -> item, for ids that a search in the store's namespace found."""
    # With a condition on the namespace, SQLite would read all of its rows by their index.
    rows = _select_rows(store, name, METADATA.tables[name].c.id.in_(ids))
    return {row["id"]: item_from_row(name, row) for row in rows}


def iter_items(store: Store, *, state: str | None = "active", run: str = "") -> Iterator[MemoryItem]:
    """Yield items by table, the oldest first.

    `state` selects items in one state, and `None` all. `run` selects the items that one run contributed.
    """
    for name in MEMORY_TABLE_NAMES:
        table = METADATA.tables[name]
        conditions = [table.c.namespace == store.namespace]
        conditions += [table.c.state == state] if state is not None else []
        conditions += [table.c.run_id == run] if run else []
        last_id = 0
        while rows := _select_rows(store, name, table.c.id > last_id, *conditions, limit=BATCH):
            last_id = rows[-1]["id"]
            yield from (item_from_row(name, row) for row in rows)


def find_with_words(store: Store, words: Sequence[str]) -> Iterator[MemoryItem]:
    """Yield the active items that contain all of the words, ignoring case."""
    for item in iter_items(store):
        content = "\n".join((item.text, item.error_signature, item.patch, item.search_text)).lower()
        if all(word.lower() in content for word in words):
            yield item


def _select_rows(
    store: Store, name: str, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[Row]:
    """Return rows without their vectors, in the order of their ids."""
    table = METADATA.tables[name]
    columns = [column for column in table.c if column.name not in VECTOR_COLUMNS]
    query = select(*columns).where(*conditions)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(table.c.id).limit(limit)).mappings()]


def find_item(store: Store, key_prefix: str) -> MemoryItem:
    """Return the only item whose key starts with a prefix; raise `UsageError` if there is none, or several."""
    items = []
    for name in MEMORY_TABLE_NAMES:
        table = METADATA.tables[name]
        is_own = table.c.namespace == store.namespace
        has_prefix = table.c.key.startswith(key_prefix, autoescape=True)
        items += [item_from_row(name, row) for row in _select_rows(store, name, is_own, has_prefix, limit=2)]
    if len(items) != 1:
        subject = "more than one memory" if items else "no memory"
        raise UsageError(
            f"{subject} has a key that begins with {key_prefix!r}", remedy="see `suture memory list`"
        )
    return items[0]


def forget_items(store: Store, keys: Sequence[tuple[MemoryTableName, str]]) -> int:
    """Delete the texts of the items `(table, key)`, and return how many were not forgotten before."""
    changed = 0
    with store.write_transaction() as connection:
        for name, key in keys:
            table = METADATA.tables[name]
            has_key = (table.c.namespace == store.namespace, table.c.key == key)
            statement = update(table).where(*has_key, table.c.state == "active").values(**FORGOTTEN_VALUES)
            changed += connection.execute(statement).rowcount
    return changed


def count_by_state(store: Store) -> dict[str, dict[str, int]]:
    """Return table -> state -> number of memories."""
    counts: dict[str, dict[str, int]] = {}
    with store.read_transaction() as connection:
        for name in MEMORY_TABLE_NAMES:
            table = METADATA.tables[name]
            query = select(table.c.state, func.count()).where(table.c.namespace == store.namespace)
            rows = connection.execute(query.group_by(table.c.state))
            counts[name] = {state: count for state, count in rows}
    return counts
