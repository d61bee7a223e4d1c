"""Rows of the memory tables `failures`, `patterns` and `lessons`, as mappings from column to value.

What a row means is the concern of `suture.storage.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from suture.storage.database.store import Store
from suture.storage.database.tables import METADATA

Row = Mapping[str, Any]
Change = Callable[[Row], Row | None]
"""Returns the new values of a row's columns, or `None` to leave it unchanged."""


def find_stored_keys(store: Store, name: str, keys: Iterable[str]) -> frozenset[str]:
    """Return which of some keys have a row in the table called `name`."""
    table = METADATA.tables[name]
    conditions = (table.c.namespace == store.namespace, table.c.key.in_(list(keys)))
    with store.read_transaction() as connection:
        return frozenset(connection.execute(select(table.c.key).where(*conditions)).scalars())


def insert_missing(store: Store, name: str, rows: Sequence[Row]) -> None:
    """Insert the rows whose keys are missing, all or none; the namespace is added to their columns."""
    insert = postgresql.insert if store.is_postgresql else sqlite.insert
    statement = insert(METADATA.tables[name]).on_conflict_do_nothing()  # another process may insert first
    with store.write_transaction() as connection:
        connection.execute(statement, [{**row, "namespace": store.namespace} for row in rows])


def rows_by_id(store: Store, name: str, ids: Sequence[int]) -> list[Row]:
    """Return rows without their vectors, in any order."""
    table = METADATA.tables[name]
    columns = [column for column in table.c if column.name != "vector"]
    with store.read_transaction() as connection:
        rows = connection.execute(select(*columns).where(table.c.id.in_(ids))).mappings()
        return [dict(row) for row in rows]


def rows_after(
    store: Store, name: str, last_id: int, *, state: str | None = None, run: str = "", limit: int
) -> list[Row]:
    """Return up to `limit` rows with ids beyond `last_id`, in the order of their ids.

    Args:
        store: The database.
        name: The table.
        last_id: The last id of the previous call; 0 at first.
        state: Only rows in this state; all if `None`.
        run: Only rows that this run contributed; all if empty.
        limit: Maximum number of rows.
    """
    table = METADATA.tables[name]
    conditions: list[ColumnElement[bool]] = []
    if state is not None:
        conditions.append(table.c.state == state)
    if run:
        conditions.append(table.c.run_id == run)
    return _select_after(store, table, last_id, conditions, limit)


def rows_to_embed(store: Store, name: str, last_id: int, embedder: str, limit: int) -> list[Row]:
    """Return the next active rows without a vector of this embedder; see `rows_after`."""
    table = METADATA.tables[name]
    conditions = [
        table.c.state == "active",
        table.c.source != "placebo",
        or_(table.c.embedder != embedder, table.c.vector.is_(None)),
    ]
    return _select_after(store, table, last_id, conditions, limit)


def _select_after(
    store: Store, table: Table, last_id: int, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[Row]:
    query = select(table).where(table.c.namespace == store.namespace, table.c.id > last_id, *conditions)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(table.c.id).limit(limit)).mappings()]


def rows_by_key_prefix(store: Store, name: str, prefix: str, limit: int = 3) -> list[Row]:
    """Return rows whose keys start with a prefix."""
    table = METADATA.tables[name]
    conditions = (table.c.namespace == store.namespace, table.c.key.startswith(prefix, autoescape=True))
    with store.read_transaction() as connection:
        rows = connection.execute(select(table).where(*conditions).limit(limit)).mappings()
        return [dict(row) for row in rows]


def change_rows(store: Store, changes: Iterable[tuple[str, str, Change]]) -> frozenset[str]:
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


def update_states(store: Store, keys: Iterable[tuple[str, str]], values: Row) -> int:
    """Give the rows `(table, key)` a new state and further values, and return how many changed.

    Rows that are in this state already are left alone.
    """
    changed = 0
    with store.write_transaction() as connection:
        for name, key in keys:
            table = METADATA.tables[name]
            has_key = (table.c.namespace == store.namespace, table.c.key == key)
            has_other_state = table.c.state != values["state"]
            statement = update(table).where(*has_key, has_other_state).values(**values)
            changed += connection.execute(statement).rowcount
    return changed


def set_vectors(store: Store, name: str, embedder: str, vectors: Mapping[int, Any]) -> None:
    """Store row id -> vector of an embedder; the vector is `None` for a text without words."""
    table = METADATA.tables[name]
    with store.write_transaction() as connection:
        for row_id, vector in vectors.items():
            values = {"embedder": embedder, "vector": vector}
            connection.execute(update(table).where(table.c.id == row_id).values(**values))


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
