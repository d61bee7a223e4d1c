"""Queries over many runs: those that match a query, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Table,
    case,
    cast,
    false,
    func,
    literal,
    select,
    text,
)

from suture.storage.database.run_query import RunQuery
from suture.storage.database.search_words import split_words
from suture.storage.database.store import Store
from suture.storage.database.tables import MEMORY_TABLES, iterations, metrics, tasks
from suture.storage.tuning import MAX_INDEXED_WORDS

Row = dict[str, Any]
SECONDS_PER_DAY = 86_400
N = TypeVar("N", int, float)
DECIDED_OUTCOMES = ("healed", "not_healed", "stuck", "budget_exhausted")
"""Outcomes that say whether a task was solved; interruptions and faults outside the code say nothing."""


def query_runs(store: Store, query: RunQuery, limit: int) -> tuple[list[Row], int]:
    """Return `(rows, total)`: the newest rows of `tasks` that match a query, and how many match in all.

    Each row also has the run's `doubt`, which is empty if there is none.
    """
    with store.read_transaction() as connection:
        conditions = _make_conditions(connection, query, store.namespace)
        newest = (
            select(tasks)
            .where(*conditions)
            .order_by(tasks.c.started_s.desc(), tasks.c.run_id.desc())
            .limit(limit)
        )
        rows = [dict(row) for row in connection.execute(newest).mappings()]
        doubted = select(metrics.c.run_id, metrics.c.phase).where(
            metrics.c.namespace == store.namespace,
            metrics.c.name == "doubts",
            metrics.c.run_id.in_([row["run_id"] for row in rows]),
        )
        doubts = {run: doubt for run, doubt in connection.execute(doubted)}
        rows = [{**row, "doubt": doubts.get(row["run_id"], "")} for row in rows]
        total = connection.execute(select(func.count()).select_from(tasks).where(*conditions)).scalar_one()
        return rows, total


def _make_conditions(connection: Connection, query: RunQuery, namespace: str) -> list[ColumnElement[bool]]:
    conditions = [tasks.c.namespace == namespace]
    for name in ("outcome", "kind", "language", "recipe"):
        if value := getattr(query, name):
            conditions.append(tasks.c[name] == value)
    for name in ("model", "project"):
        if value := getattr(query, name):
            conditions.append(tasks.c[name].contains(value, autoescape=True))
    if query.since_s is not None:
        conditions.append(tasks.c.started_s >= query.since_s)
    if query.error:
        runs_with_error = select(iterations.c.run_id).where(
            iterations.c.namespace == namespace,
            func.lower(iterations.c.error_kind) == query.error.lower(),
        )
        conditions.append(tasks.c.run_id.in_(runs_with_error))
    if query.search:
        conditions.append(contains_all_words(connection, tasks, query.search))
    return conditions


def contains_all_words(connection: Connection, table: Table, query: str) -> ColumnElement[bool]:
    """Return the condition that a row contains all words of a query.

    The table is one of `tables.SEARCHED_TABLES`. SQLite (FTS5) and PostgreSQL (`tsvector`) tokenise in their own ways,
    so they are given words that are already split. Punctuation is ignored; without a word no row matches.
    """
    words = list(dict.fromkeys(split_words(query)))[:MAX_INDEXED_WORDS]
    if not words:
        return false()
    if connection.dialect.name == "postgresql":
        all_words = " & ".join(f"'{word}'" for word in words)
        matching = text("words @@ to_tsquery('simple', :all_words)").bindparams(all_words=all_words)
        return table.c.id.in_(select(table.c.id).where(matching))
    index = f"{table.name}_words"
    matching_rows = text(f"SELECT rowid FROM {index} WHERE {index} MATCH :all_words")
    all_words = " ".join(f'"{word}"' for word in words)
    return table.c.id.in_(matching_rows.bindparams(all_words=all_words).columns(table.c.id))


def summarise_runs(store: Store, query: RunQuery) -> dict[str, Any]:
    """Return what the matching runs add up to, as JSON values: counts, shares, seconds, tokens."""
    with store.read_transaction() as connection:
        conditions = _make_conditions(connection, query, store.namespace)
        totals = connection.execute(
            select(tasks.c.outcome, func.count(), func.sum(tasks.c.tokens), func.sum(tasks.c.money))
            .where(*conditions)
            .group_by(tasks.c.outcome)
        ).all()
        metric_sums = connection.execute(
            select(metrics.c.name, metrics.c.phase, func.sum(metrics.c.value))
            .where(*_belong_to_runs(metrics, store.namespace, conditions))
            .group_by(metrics.c.name, metrics.c.phase)
        ).all()
        ended = [*conditions, tasks.c.outcome != "running"]
        run_seconds = _summarise_seconds(connection, tasks, literal("run"), ended)
        steps = _belong_to_runs(iterations, store.namespace, conditions)
        iteration_seconds = _summarise_seconds(connection, iterations, iterations.c.move, steps)
        by_day = _count_by_day(connection, conditions)
        memories = _count_memories(connection, store.namespace)
    outcomes = _sort_by_value({outcome: count for outcome, count, *_ in totals})
    decided = sum(outcomes.get(name, 0) for name in DECIDED_OUTCOMES)
    return {
        "runs": sum(outcomes.values()),
        "outcomes": outcomes,
        "pass_rate": round(outcomes.get("healed", 0) / decided, 4) if decided else None,
        "decided": decided,
        "tokens": sum(int(tokens) for _, _, tokens, _ in totals),
        "money": round(sum(money for *_, money in totals), 6),
        "run_seconds": run_seconds.get("run", {"count": 0, "median": 0.0, "p95": 0.0}),
        "iteration_seconds": iteration_seconds,
        "tokens_by_role": _sums_by_phase(metric_sums, "tokens_by_role"),
        "tokens_by_move": _sums_by_phase(metric_sums, "tokens_by_move"),
        "seconds_by_phase": _sums_by_phase(metric_sums, "seconds"),
        "errors": _sums_by_phase(metric_sums, "errors"),
        "doubts": _sums_by_phase(metric_sums, "doubts"),
        "candidates": _sums_by_phase(metric_sums, "candidates"),
        "memories": memories,
        "by_day": by_day,
    }


def _belong_to_runs(
    table: Table, namespace: str, conditions: Sequence[ColumnElement[bool]]
) -> list[ColumnElement[bool]]:
    """Return the conditions that a table's row belongs to a run that meets the conditions on `tasks`."""
    in_namespace = table.c.namespace == namespace
    if len(conditions) == 1:  # every run of the namespace meets them
        return [in_namespace]
    return [in_namespace, table.c.run_id.in_(select(tasks.c.run_id).where(*conditions))]


def _sort_by_value(values: Mapping[str, N]) -> dict[str, N]:
    """Return the entries sorted, the largest first, and equal ones by name."""
    return dict(sorted(values.items(), key=lambda entry: (-entry[1], entry[0])))


def _sums_by_phase(sums: Sequence[Any], name: str) -> dict[str, float]:
    return _sort_by_value({phase: round(float(value), 3) for key, phase, value in sums if key == name})


def _summarise_seconds(
    connection: Connection, table: Table, group: ColumnElement[Any], conditions: Sequence[ColumnElement[bool]]
) -> dict[str, dict[str, float]]:
    """Return group -> number, median and 95th percentile (nearest rank) of the durations in a table, in seconds."""
    rank = func.row_number().over(partition_by=group, order_by=table.c.seconds)
    count = func.count().over(partition_by=group)
    ranked = (
        select(group.label("name"), table.c.seconds, rank.label("rank"), count.label("count"))
        .where(*conditions)
        .subquery()
    )
    n = ranked.c.count
    middle, above_middle, p95 = (n + 1) // 2, n // 2 + 1, (95 * n + 99) // 100
    is_needed = ranked.c.rank.in_((middle, above_middle, p95))
    seconds: dict[str, dict[int, float]] = {}
    counts: dict[str, int] = {}
    for name, value, place, total in connection.execute(
        select(ranked).where(is_needed).order_by(ranked.c.name)
    ):
        seconds.setdefault(name, {})[place] = value
        counts[name] = total
    return {
        name: {
            "count": count,
            "median": round((seconds[name][(count + 1) // 2] + seconds[name][count // 2 + 1]) / 2, 3),
            "p95": round(seconds[name][(95 * count + 99) // 100], 3),
        }
        for name, count in counts.items()
    }


def _count_memories(connection: Connection, namespace: str) -> int:
    counts = (select(func.count()).where(table.c.namespace == namespace) for table in MEMORY_TABLES)
    return sum(connection.execute(count).scalar_one() for count in counts)


def _count_by_day(
    connection: Connection, conditions: Sequence[ColumnElement[bool]]
) -> dict[str, dict[str, int]]:
    """Return day (UTC) -> number of runs, and how many of them were healed."""
    day_number = tasks.c.started_s / SECONDS_PER_DAY
    if (
        connection.dialect.name == "postgresql"
    ):  # its cast rounds; SQLite's truncates, and it may lack `floor`
        day_number = func.floor(day_number)
    day = cast(day_number, Integer)
    is_healed = case((tasks.c.outcome == "healed", 1), else_=0)
    rows = connection.execute(
        select(day, func.count(), func.sum(is_healed))
        .where(*conditions, tasks.c.started_s.is_not(None))
        .group_by(day)
        .order_by(day)
    )
    return {
        datetime.fromtimestamp(number * SECONDS_PER_DAY, UTC).date().isoformat(): {
            "runs": runs,
            "healed": healed,
        }
        for number, runs, healed in rows
    }
