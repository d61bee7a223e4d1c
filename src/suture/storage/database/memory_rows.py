"""Rows of the memory tables `failures`, `patterns` and `lessons`, as mappings from column to value.

What a row means is the concern of `suture.storage.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from suture.storage.database.store import Store
from suture.storage.database.tables import METADATA

Row = Mapping[str, Any]
Change = Callable[[Row], Row | None]
"""Returns the new values of a row's columns, or `None` to leave it unchanged."""


def get_table(name: str) -> Table:
    """Return the table of this name."""
    return METADATA.tables[name]


def known_keys(store: Store, name: str, keys: Iterable[str]) -> frozenset[str]:
    """Return which of some keys have a row in a table."""
    table = get_table(name)
    wanted = (table.c.namespace == store.namespace, table.c.key.in_(list(keys)))
    with store.read_transaction() as connection:
        return frozenset(connection.execute(select(table.c.key).where(*wanted)).scalars())


def insert_missing(store: Store, name: str, rows: Sequence[Row]) -> None:
    """Insert the rows whose keys are missing, all or none.

    Args:
        store: The database.
        name: The table.
        rows: Columns without the namespace; all rows have the same ones.

    Raises:
        StorageError: The database failed.
    """
    insert = postgresql.insert if store.is_postgresql else sqlite.insert
    statement = insert(get_table(name)).on_conflict_do_nothing()  # another process may insert first
    with store.write_transaction() as connection:
        connection.execute(statement, [{**row, "namespace": store.namespace} for row in rows])


def rows_by_id(store: Store, name: str, ids: Sequence[int]) -> list[Row]:
    """Return rows without their vectors, in any order."""
    table = get_table(name)
    columns = [column for column in table.c if column.name != "vector"]
    with store.read_transaction() as connection:
        found = connection.execute(select(*columns).where(table.c.id.in_(ids))).mappings()
        return [dict(row) for row in found]


def rows_after(
    store: Store, name: str, last: int, *, state: str | None = None, run: str = "", limit: int
) -> list[Row]:
    """Return the next rows in the order of their ids.

    Args:
        store: The database.
        name: The table.
        last: The id after which they start.
        state: Only rows in this state; all if `None`.
        run: Only rows that this run contributed.
        limit: Maximum number of rows.
    """
    table = get_table(name)
    wanted: list[ColumnElement[bool]] = [table.c.state == state] if state is not None else []
    wanted += [table.c.run_id == run] if run else []
    return _rows_after(store, table, last, wanted, limit)


def rows_to_embed(store: Store, name: str, last: int, embedder: str, limit: int) -> list[Row]:
    """Return the next active rows without a vector of this embedder; see `rows_after`."""
    table = get_table(name)
    wanted = [
        table.c.state == "active",
        table.c.source != "placebo",
        or_(table.c.embedder != embedder, table.c.vector.is_(None)),
    ]
    return _rows_after(store, table, last, wanted, limit)


def _rows_after(
    store: Store, table: Table, last: int, wanted: Sequence[ColumnElement[bool]], limit: int
) -> list[Row]:
    query = select(table).where(table.c.namespace == store.namespace, table.c.id > last, *wanted)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(table.c.id).limit(limit)).mappings()]


def rows_by_key_prefix(store: Store, name: str, prefix: str, limit: int = 3) -> list[Row]:
    """Return rows whose keys start with a prefix."""
    table = get_table(name)
    wanted = (table.c.namespace == store.namespace, table.c.key.startswith(prefix, autoescape=True))
    with store.read_transaction() as connection:
        found = connection.execute(select(table).where(*wanted).limit(limit)).mappings()
        return [dict(row) for row in found]


def change_rows(store: Store, changes: Iterable[tuple[str, str, Change]]) -> frozenset[str]:
    """Change rows depending on their content, in one transaction that locks them.

    Returns:
        Keys of the rows that exist.

    Raises:
        StorageError: The database failed.
    """
    known = set()
    with store.write_transaction() as connection:
        for name, key, change in changes:
            table = get_table(name)
            mine = (table.c.namespace == store.namespace, table.c.key == key)
            row = connection.execute(select(table).where(*mine).with_for_update()).mappings().first()
            if row is None:
                continue
            known.add(key)
            values = change(dict(row))
            if values:
                connection.execute(update(table).where(*mine).values(**values))
    return frozenset(known)


def update_states(store: Store, keys: Iterable[tuple[str, str]], values: Row) -> int:
    """Give rows in other states a new state with further values, and return how many changed."""
    done = 0
    with store.write_transaction() as connection:
        for name, key in keys:
            table = get_table(name)
            mine = (table.c.namespace == store.namespace, table.c.key == key)
            others = table.c.state != values["state"]
            done += connection.execute(update(table).where(*mine, others).values(**values)).rowcount
    return done


def set_vectors(store: Store, name: str, embedder: str, vectors: Mapping[int, Any]) -> None:
    """Store vectors of an embedder; `None` for a text without one."""
    table = get_table(name)
    with store.write_transaction() as connection:
        for number, vector in vectors.items():
            values = {"embedder": embedder, "vector": vector}
            connection.execute(update(table).where(table.c.id == number).values(**values))


def count_by_state(store: Store, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return table -> state -> number of rows."""
    with store.read_transaction() as connection:
        return {name: _count_states(connection, get_table(name), store.namespace) for name in names}


def _count_states(connection: Connection, table: Table, namespace: str) -> dict[str, int]:
    counted = select(table.c.state, func.count()).where(table.c.namespace == namespace)
    return {state: count for state, count in connection.execute(counted.group_by(table.c.state))}
