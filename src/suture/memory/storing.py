"""Memories in and out of the database: stored once each, counted, embedded anew by another embedder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, Table, and_, func, insert, or_, select, update

from suture.errors import UsageError
from suture.memory.clues import meaning_of
from suture.memory.items import MOST_RUNS, TABLES, Item, TableName, bounded
from suture.memory.rent import shows_no_benefit
from suture.store.tables import METADATA
from suture.store.words import searched_words

if TYPE_CHECKING:
    from suture.memory.embedding.contract import Embedder
    from suture.store.database import Store

BATCH = 256
COLUMNS = tuple(one.name for one in fields(Item) if one.name != "table")
COUNTERS = ("recalled", "withheld", "healed_recalled", "healed_withheld")


def table_of(name: TableName) -> Table:
    """The table of that name."""
    return METADATA.tables[name]


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
    items = list(each.values())
    counts: dict[TableName, int] = dict.fromkeys(TABLES, 0)
    for item in items:
        counts[item.table] += 1
    with store.reading() as connection:
        fresh = [item for item in items if not _is_there(connection, store, item)]
    vectors = embedder.embed([_meaning(item) for item in fresh]) if embedder and fresh else None
    with store.writing() as connection:
        for number, item in enumerate(fresh):
            if _is_there(connection, store, item):  # another process may have been faster
                continue
            row = {name: getattr(item, name) for name in COLUMNS}
            row |= {"namespace": store.namespace, "key": item.key, "details": dict(item.details)}
            row["searched"] = searched_words(item.searched)
            row["details"]["found_by"] = item.searched  # to embed it anew
            if vectors is not None and embedder is not None and vectors[number].any():
                row |= {"embedder": embedder.identity, "vector": vectors[number]}
            connection.execute(insert(table_of(item.table)).values(**row))
    return counts


def _meaning(item: Item) -> str:
    return meaning_of(item.error_signature, item.code_shape, item.searched)


def _is_there(connection: Connection, store: Store, item: Item) -> bool:
    table = table_of(item.table)
    wanted = and_(table.c.namespace == store.namespace, table.c.key == item.key)
    return connection.execute(select(table.c.id).where(wanted)).first() is not None


def item_of_row(name: TableName, row: RowMapping) -> Item:
    """The item that a row holds."""
    known = {column: row[column] for column in COLUMNS}
    details = dict(known["details"] or {})
    known["searched"] = details.pop("found_by", known["searched"])
    return Item(table=name, **{**known, "details": details})


def rows_of(store: Store, name: TableName, ids: Sequence[int]) -> dict[int, tuple[Item, Any, str]]:
    """Id -> the item, its vector or `None`, and who made that."""
    table = table_of(name)
    with store.reading() as connection:
        rows = connection.execute(select(table).where(table.c.id.in_(ids))).mappings().all()
    return {row["id"]: (item_of_row(name, row), row["vector"], row["embedder"]) for row in rows}


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
        table = table_of(name)
        last = 0
        while True:
            wanted = [table.c.namespace == store.namespace, table.c.id > last]
            wanted += [table.c.state == state] if state is not None else []
            wanted += [table.c.run_id == run] if run else []
            with store.reading() as connection:
                query = select(table).where(*wanted).order_by(table.c.id).limit(BATCH)
                rows = connection.execute(query).mappings().all()
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
        table = table_of(name)
        wanted = and_(table.c.namespace == store.namespace, table.c.key.startswith(start, autoescape=True))
        with store.reading() as connection:
            rows = connection.execute(select(table).where(wanted).limit(3)).mappings().all()
        found += [item_of_row(name, row) for row in rows]
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
    done = 0
    with store.writing() as connection:
        for name, key in keys:
            table = table_of(name)
            wanted = and_(table.c.namespace == store.namespace, table.c.key == key, table.c.state != state)
            done += connection.execute(update(table).where(wanted).values(**values)).rowcount
    return done


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
    table = table_of(name)
    wanted = and_(table.c.namespace == store.namespace, table.c.key == key)
    with store.writing() as connection:
        row = connection.execute(select(table).where(wanted).with_for_update()).mappings().first()
        if row is None:
            return
        item = item_of_row(name, row)
        if run in item.runs:
            return
        arm = "recalled" if shown else "withheld"
        counts = {arm: row[arm] + 1}
        if healed:
            counts[f"healed_{arm}"] = row[f"healed_{arm}"] + 1
        details = {**dict(row["details"] or {}), "runs": [*item.runs, run][-MOST_RUNS:]}
        connection.execute(update(table).where(wanted).values(**counts, details=details))


def merge_counts(store: Store, items: Sequence[Item]) -> frozenset[str]:
    """Add what items of another database were good for to those that are known here; answers their keys.

    Uses in runs that both have counted are counted once: where only some are shared, the larger counts hold.
    """
    known = set()
    with store.writing() as connection:
        for item in items:
            table = table_of(item.table)
            wanted = and_(table.c.namespace == store.namespace, table.c.key == item.key)
            row = connection.execute(select(table).where(wanted).with_for_update()).mappings().first()
            if row is None:
                continue
            known.add(item.key)
            mine = item_of_row(item.table, row)
            theirs = set(item.runs) - set(mine.runs)
            if not theirs or mine.state == "forgotten":
                continue
            apart = theirs == set(item.runs)
            values: dict[str, Any] = {
                name: row[name] + getattr(item, name) if apart else max(row[name], getattr(item, name))
                for name in COUNTERS
            }
            values["details"] = {**dict(row["details"]), "runs": [*mine.runs, *sorted(theirs)][-MOST_RUNS:]}
            connection.execute(update(table).where(wanted).values(**values))
    return frozenset(known)


def evict_useless(store: Store, keys: Iterable[tuple[TableName, str]]) -> int:
    """Evict those of some items that were used often and show no benefit; answers how many."""
    gone = []
    for name, key in keys:
        table = table_of(name)
        wanted = and_(table.c.namespace == store.namespace, table.c.key == key, table.c.state == "active")
        with store.reading() as connection:
            row = connection.execute(select(table).where(wanted)).mappings().first()
        if row is not None and row["source"] != "placebo" and shows_no_benefit(item_of_row(name, row)):
            gone.append((name, key))
    return set_state(store, gone, "evicted")


def embed_anew(store: Store, embedder: Embedder, *, most: int | None = None) -> int:
    """Give every item a vector of this embedder that has another's, or none; answers how many.

    Args:
        store: The database.
        embedder: Whose vectors they get.
        most: After how many to stop; `None` does all.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    done = 0
    for name in TABLES:
        table = table_of(name)
        last = 0
        while most is None or done < most:
            with store.reading() as connection:
                query = (
                    select(table)
                    .where(
                        table.c.namespace == store.namespace,
                        table.c.state == "active",
                        table.c.source != "placebo",
                        table.c.id > last,
                        or_(table.c.embedder != embedder.identity, table.c.vector.is_(None)),
                    )
                    .order_by(table.c.id)
                    .limit(BATCH)
                )
                rows = connection.execute(query).mappings().all()
            if not rows:
                break
            last = rows[-1]["id"]
            vectors = embedder.embed([_meaning(item_of_row(name, row)) for row in rows])
            with store.writing() as connection:
                for row, vector in zip(rows, vectors, strict=True):
                    values = {"embedder": embedder.identity, "vector": vector if vector.any() else None}
                    connection.execute(update(table).where(table.c.id == row["id"]).values(**values))
            done += len(rows)
    return done


def counts_by_state(store: Store) -> dict[TableName, dict[str, int]]:
    """Table -> state -> how many."""
    found: dict[TableName, dict[str, int]] = {}
    with store.reading() as connection:
        for name in TABLES:
            table = table_of(name)
            query = (
                select(table.c.state, func.count())
                .where(table.c.namespace == store.namespace)
                .group_by(table.c.state)
            )
            found[name] = {state: count for state, count in connection.execute(query)}
    return found
