"""Queries over many runs: those that match a query, and what they add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, TypeVar, get_args

from sqlalchemy import ColumnElement, Connection, func, select

from suture.core.records import Outcome
from suture.errors import UsageError
from suture.storage.database.full_text_search import match_all_words
from suture.storage.database.store import Store
from suture.storage.database.tables import MEMORY_TABLES, iterations, metrics, tasks
from suture.storage.tuning import MAX_MATCHING_RUNS

Row = dict[str, Any]
N = TypeVar("N", int, float)
OUTCOMES = (*get_args(Outcome), "running", "stopped", "error", "damaged")
RUN_KINDS = ("write", "heal")
DECIDED_OUTCOMES = ("healed", "not_healed", "stuck", "budget_exhausted")
"""Outcomes that say whether a task was solved; interruptions and faults outside the code say nothing."""


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs are requested; an empty field does not restrict them.

    Attributes:
        words: All of them occur in the task, its project, its outcome or its errors.
        kind: `write` or `heal`.
        model: A part of the model's name.
        project: A part of the project's folder.
        error: The kind of an error in the run, such as `KeyError`.
        since_s: The run started at this time or later, in seconds since the epoch.

    Raises:
        UsageError: No run has such an outcome or is of such a kind.
    """

    words: str = ""
    outcome: str = ""
    kind: str = ""
    language: str = ""
    recipe: str = ""
    model: str = ""
    project: str = ""
    error: str = ""
    since_s: float | None = None

    def __post_init__(self) -> None:
        for name, value, choices in (("outcome", self.outcome, OUTCOMES), ("kind", self.kind, RUN_KINDS)):
            if value and value not in choices:
                message = f"no run has the {name} {value!r}"
                raise UsageError(message, remedy=f"one of {', '.join(choices)}")

    @property
    def is_set(self) -> bool:
        """Return whether the query restricts anything."""
        return self != RunQuery()


def query_runs(store: Store, query: RunQuery, limit: int) -> tuple[list[Row], int]:
    """Return `(rows, total)`: the newest rows of `tasks` that match a query, and how many match in all.

    Each row has also the number of tests that failed at first, as `failing`.
    """
    with store.read_transaction() as connection:
        conditions = _make_conditions(connection, query, store.namespace)
        newest = select(tasks).where(*conditions).order_by(tasks.c.started_s.desc(), tasks.c.run_id.desc())
        rows = connection.execute(newest.limit(limit)).mappings().all()
        first_checks = select(iterations.c.run_id, iterations.c.failed).where(
            iterations.c.namespace == store.namespace,
            iterations.c.number == 0,
            iterations.c.run_id.in_([row["run_id"] for row in rows]),
        )
        failing = {run: failed for run, failed in connection.execute(first_checks)}
        total = connection.execute(select(func.count()).select_from(tasks).where(*conditions)).scalar_one()
        return [{**row, "failing": failing.get(row["run_id"], 0)} for row in rows], total


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
    if query.words:
        ids = match_all_words(connection, tasks, query.words, namespace=namespace, limit=MAX_MATCHING_RUNS)
        conditions.append(tasks.c.id.in_(ids))
    return conditions


def summarise_runs(store: Store, query: RunQuery) -> dict[str, Any]:
    """Return what the matching runs add up to, as JSON values: counts, shares, seconds, tokens."""
    with store.read_transaction() as connection:
        conditions = _make_conditions(connection, query, store.namespace)
        columns = (tasks.c.run_id, tasks.c.outcome, tasks.c.started_s, tasks.c.tokens, tasks.c.seconds)
        runs = connection.execute(select(*columns, tasks.c.money).where(*conditions)).mappings().all()
        matching_runs = select(tasks.c.run_id).where(*conditions)
        steps = connection.execute(
            select(iterations.c.move, iterations.c.seconds, iterations.c.tokens).where(
                iterations.c.namespace == store.namespace, iterations.c.run_id.in_(matching_runs)
            )
        ).all()
        sums = connection.execute(
            select(metrics.c.name, metrics.c.phase, func.sum(metrics.c.value), func.count())
            .where(metrics.c.namespace == store.namespace, metrics.c.run_id.in_(matching_runs))
            .group_by(metrics.c.name, metrics.c.phase)
        ).all()
        memory = _memory_uses(connection, store.namespace)
    outcomes = _sort_by_value(Counter(run["outcome"] for run in runs))
    decided = sum(outcomes.get(name, 0) for name in DECIDED_OUTCOMES)
    return {
        "runs": len(runs),
        "outcomes": outcomes,
        "pass_rate": round(outcomes.get("healed", 0) / decided, 4) if decided else None,
        "decided": decided,
        "tokens": sum(run["tokens"] for run in runs),
        "money": round(sum(run["money"] for run in runs), 6),
        "run_seconds": _summarise_seconds([run["seconds"] for run in runs]),
        "iteration_seconds": {
            move: _summarise_seconds([step.seconds for step in steps if step.move == move])
            for move in dict.fromkeys(step.move for step in steps)
        },
        "tokens_by_role": _metric_sums(sums, "tokens_by_role"),
        "tokens_by_move": _metric_sums(sums, "tokens_by_move"),
        "seconds_by_phase": _metric_sums(sums, "seconds"),
        "errors": _metric_sums(sums, "errors"),
        "candidates": _metric_sums(sums, "candidates"),
        "memory": memory,
        "by_day": _count_by_day(runs),
    }


def _sort_by_value(values: Mapping[str, N]) -> dict[str, N]:
    """Return the same entries, the largest first, and equal ones by name."""
    return dict(sorted(values.items(), key=lambda entry: (-entry[1], entry[0])))


def _metric_sums(sums: Sequence[Any], name: str) -> dict[str, float]:
    # `row[2]` is the sum; the query gives it no name.
    return _sort_by_value({row.phase: round(float(row[2]), 3) for row in sums if row.name == name})


def _summarise_seconds(values: Sequence[float]) -> dict[str, float]:
    """Return the number, median and 95th percentile (nearest rank) of some durations in seconds."""
    if not values:
        return {"count": 0, "median": 0.0, "p95": 0.0}
    ordered = sorted(values)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return {"count": len(ordered), "median": round(median(ordered), 3), "p95": round(p95, 3)}


def _memory_uses(connection: Connection, namespace: str) -> dict[str, int]:
    """Return how often memories were shown or withheld, and how often the run was then healed."""
    totals = {"items": 0, "recalled": 0, "withheld": 0, "healed_recalled": 0, "healed_withheld": 0}
    for table in MEMORY_TABLES:
        columns = [func.coalesce(func.sum(table.c[name]), 0) for name in totals if name != "items"]
        row = connection.execute(select(func.count(), *columns).where(table.c.namespace == namespace)).one()
        for name, value in zip(totals, row, strict=True):
            totals[name] += int(value)
    return totals


def _count_by_day(runs: Sequence[Mapping[Any, Any]]) -> dict[str, dict[str, int]]:
    """Return day (UTC) -> number of runs, and how many of them were healed."""
    days: dict[str, dict[str, int]] = {}
    for run in runs:
        if run["started_s"] is None:
            continue
        day = datetime.fromtimestamp(run["started_s"], UTC).date().isoformat()
        day_counts = days.setdefault(day, {"runs": 0, "healed": 0})
        day_counts["runs"] += 1
        day_counts["healed"] += run["outcome"] == "healed"
    return dict(sorted(days.items()))
