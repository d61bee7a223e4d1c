"""Rows of what is remembered across runs, in and out of the tables `failures`, `patterns` and `lessons`.

What a row means is no matter of this module: it takes and gives rows as mappings, column -> value.
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
"""Answers what a row's columns become; nothing, where it stays as it is."""


def table_of(name: str) -> Table:
    """The table of that name."""
    return METADATA.tables[name]


def known_keys(store: Store, name: str, keys: Iterable[str]) -> frozenset[str]:
    """Which of some keys have a row in a table."""
    table = table_of(name)
    wanted = (table.c.namespace == store.namespace, table.c.key.in_(list(keys)))
    with store.reading() as connection:
        return frozenset(connection.execute(select(table.c.key).where(*wanted)).scalars())


def insert_missing(store: Store, name: str, rows: Sequence[Row]) -> None:
    """Insert rows whose keys are not there yet, all or none.

    Args:
        store: The database.
        name: The table.
        rows: Their columns without the namespace, each with the same ones.

    Raises:
        StorageError: The database failed.
    """
    insert = postgresql.insert if store.is_postgresql else sqlite.insert
    made = insert(table_of(name)).on_conflict_do_nothing()  # another process may be faster
    with store.writing() as connection:
        connection.execute(made, [{**row, "namespace": store.namespace} for row in rows])


def rows_by_id(store: Store, name: str, ids: Sequence[int]) -> list[Row]:
    """Rows without their vectors, in no order."""
    table = table_of(name)
    columns = [column for column in table.c if column.name != "vector"]
    with store.reading() as connection:
        found = connection.execute(select(*columns).where(table.c.id.in_(ids))).mappings()
        return [dict(row) for row in found]


def rows_after(
    store: Store, name: str, last: int, *, state: str | None = None, run: str = "", limit: int
) -> list[Row]:
    """The next rows in the order of their ids.

    Args:
        store: The database.
        name: The table.
        last: The id after which they begin.
        state: Only those in it; all where `None`.
        run: Only those that this run taught.
        limit: The most.
    """
    table = table_of(name)
    wanted: list[ColumnElement[bool]] = [table.c.state == state] if state is not None else []
    wanted += [table.c.run_id == run] if run else []
    return _next(store, table, last, wanted, limit)


def rows_to_embed(store: Store, name: str, last: int, embedder: str, limit: int) -> list[Row]:
    """The next active rows that have no vector of an embedder; see `rows_after`."""
    table = table_of(name)
    wanted = [
        table.c.state == "active",
        table.c.source != "placebo",
        or_(table.c.embedder != embedder, table.c.vector.is_(None)),
    ]
    return _next(store, table, last, wanted, limit)


def _next(
    store: Store, table: Table, last: int, wanted: Sequence[ColumnElement[bool]], limit: int
) -> list[Row]:
    query = select(table).where(table.c.namespace == store.namespace, table.c.id > last, *wanted)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query.order_by(table.c.id).limit(limit)).mappings()]


def rows_named(store: Store, name: str, start: str, limit: int = 3) -> list[Row]:
    """Rows whose keys begin so."""
    table = table_of(name)
    wanted = (table.c.namespace == store.namespace, table.c.key.startswith(start, autoescape=True))
    with store.reading() as connection:
        found = connection.execute(select(table).where(*wanted).limit(limit)).mappings()
        return [dict(row) for row in found]


def change_rows(store: Store, changes: Iterable[tuple[str, str, Change]]) -> frozenset[str]:
    """Change rows by what they hold, all or none: nobody else changes them in between.

    Returns:
        Keys of the rows that there are.

    Raises:
        StorageError: The database failed.
    """
    known = set()
    with store.writing() as connection:
        for name, key, change in changes:
            table = table_of(name)
            mine = (table.c.namespace == store.namespace, table.c.key == key)
            row = connection.execute(select(table).where(*mine).with_for_update()).mappings().first()
            if row is None:
                continue
            known.add(key)
            values = change(dict(row))
            if values:
                connection.execute(update(table).where(*mine).values(**values))
    return frozenset(known)


def set_states(store: Store, keys: Iterable[tuple[str, str]], values: Row) -> int:
    """Give rows of other states a state, and other values with it; answers how many there were."""
    done = 0
    with store.writing() as connection:
        for name, key in keys:
            table = table_of(name)
            mine = (table.c.namespace == store.namespace, table.c.key == key)
            others = table.c.state != values["state"]
            done += connection.execute(update(table).where(*mine, others).values(**values)).rowcount
    return done


def set_vectors(store: Store, name: str, embedder: str, vectors: Mapping[int, Any]) -> None:
    """Give rows vectors of an embedder; `None` for a text that has none."""
    table = table_of(name)
    with store.writing() as connection:
        for number, vector in vectors.items():
            values = {"embedder": embedder, "vector": vector}
            connection.execute(update(table).where(table.c.id == number).values(**values))


def counts_by_state(store: Store, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Table -> state -> how many."""
    with store.reading() as connection:
        return {name: _counted(connection, table_of(name), store.namespace) for name in names}


def _counted(connection: Connection, table: Table, namespace: str) -> dict[str, int]:
    counted = select(table.c.state, func.count()).where(table.c.namespace == namespace)
    return {state: count for state, count in connection.execute(counted.group_by(table.c.state))}
