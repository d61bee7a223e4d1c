"""What the database says of many runs: those that a question finds, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from suture.storage.database.full_text_search import matching
from suture.storage.database.store import Store
from suture.storage.database.tables import REMEMBERED, iterations, metrics, tasks

MOST_FOUND = 10_000
Row = dict[str, Any]
DECIDED = ("healed", "not_healed", "stuck", "budget_exhausted")
"""Outcomes that say whether a task was solved; what was no fault of the code, or was cut off, does not."""


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs are asked for; what is empty asks for nothing.

    Attributes:
        words: All of them stand in the task, its project, its outcome or its errors.
        outcome: How it ended, or stands.
        kind: `write` or `heal`.
        language: Of the code.
        recipe: The recipe's name.
        model: A part of the model's name.
        project: A part of the project's folder.
        error: The kind of an error in it, such as `KeyError`.
        since_s: It began at this time or later, in seconds since the epoch.
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

    @property
    def asks(self) -> bool:
        """Whether anything is asked for."""
        return self != RunFilter()


def runs_found(store: Store, question: RunFilter, limit: int) -> tuple[list[Row], int]:
    """The rows of `tasks` that a question finds, the newest first, and how many there are in all.

    Raises:
        StorageError: The database failed.
    """
    with store.reading() as connection:
        wanted = _conditions(connection, question, store.namespace)
        newest = select(tasks).where(*wanted).order_by(tasks.c.started_s.desc(), tasks.c.run_id.desc())
        rows = connection.execute(newest.limit(limit)).mappings()
        total = connection.execute(select(func.count()).select_from(tasks).where(*wanted)).scalar_one()
        return [dict(row) for row in rows], total


def _conditions(connection: Connection, question: RunFilter, namespace: str) -> list[ColumnElement[bool]]:
    wanted = [tasks.c.namespace == namespace]
    for name in ("outcome", "kind", "language", "recipe"):
        if value := getattr(question, name):
            wanted.append(tasks.c[name] == value)
    for name in ("model", "project"):
        if value := getattr(question, name):
            wanted.append(tasks.c[name].contains(value, autoescape=True))
    if question.since_s is not None:
        wanted.append(tasks.c.started_s >= question.since_s)
    if question.error:
        kinds = select(iterations.c.run_id).where(
            iterations.c.namespace == namespace,
            func.lower(iterations.c.error_kind) == question.error.lower(),
        )
        wanted.append(tasks.c.run_id.in_(kinds))
    if question.words:
        found = matching(connection, tasks, question.words, namespace=namespace, limit=MOST_FOUND)
        wanted.append(tasks.c.id.in_(found))
    return wanted


def summary_of(store: Store, question: RunFilter) -> dict[str, Any]:
    """What the runs of a question add up to, as JSON values: counts, shares, seconds, tokens.

    Raises:
        StorageError: The database failed.
    """
    with store.reading() as connection:
        wanted = _conditions(connection, question, store.namespace)
        columns = (tasks.c.run_id, tasks.c.outcome, tasks.c.started_s, tasks.c.tokens, tasks.c.seconds)
        runs = connection.execute(select(*columns, tasks.c.money).where(*wanted)).mappings().all()
        of_these = select(tasks.c.run_id).where(*wanted)
        steps = connection.execute(
            select(iterations.c.move, iterations.c.seconds, iterations.c.tokens).where(
                iterations.c.namespace == store.namespace, iterations.c.run_id.in_(of_these)
            )
        ).all()
        sums = connection.execute(
            select(metrics.c.name, metrics.c.phase, func.sum(metrics.c.value), func.count())
            .where(metrics.c.namespace == store.namespace, metrics.c.run_id.in_(of_these))
            .group_by(metrics.c.name, metrics.c.phase)
        ).all()
        memory = _memory(connection, store.namespace)
    outcomes = _counts(run["outcome"] for run in runs)
    decided = sum(outcomes.get(name, 0) for name in DECIDED)
    return {
        "runs": len(runs),
        "outcomes": outcomes,
        "pass_rate": round(outcomes.get("healed", 0) / decided, 4) if decided else None,
        "decided": decided,
        "tokens": sum(run["tokens"] for run in runs),
        "money": round(sum(run["money"] for run in runs), 6),
        "run_seconds": _spread([run["seconds"] for run in runs]),
        "iteration_seconds": {
            move: _spread([step.seconds for step in steps if step.move == move])
            for move in dict.fromkeys(step.move for step in steps)
        },
        "tokens_by_role": _of(sums, "tokens by role"),
        "tokens_by_move": _of(sums, "tokens by move"),
        "seconds_by_phase": _of(sums, "seconds"),
        "errors": _of(sums, "errors"),
        "candidates": _of(sums, "candidates"),
        "memory": memory,
        "by_day": _by_day(runs),
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _of(sums: Sequence[Any], name: str) -> dict[str, float]:
    found = {row.phase: round(float(row[2]), 3) for row in sums if row.name == name}
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Number, median and 95th percentile (nearest rank) of some seconds."""
    if not values:
        return {"count": 0, "median": 0.0, "p95": 0.0}
    ordered = sorted(values)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return {"count": len(ordered), "median": round(median(ordered), 3), "p95": round(p95, 3)}


def _memory(connection: Connection, namespace: str) -> dict[str, int]:
    """How often memories were shown or held back, and how often the run was healed then."""
    total = {"items": 0, "recalled": 0, "withheld": 0, "healed_recalled": 0, "healed_withheld": 0}
    for table in REMEMBERED:
        columns = [func.coalesce(func.sum(table.c[name]), 0) for name in total if name != "items"]
        row = connection.execute(select(func.count(), *columns).where(table.c.namespace == namespace)).one()
        for name, value in zip(total, row, strict=True):
            total[name] += int(value)
    return total


def _by_day(runs: Sequence[Mapping[Any, Any]]) -> dict[str, dict[str, int]]:
    """Day (UTC) -> runs, and how many of them were healed."""
    from datetime import UTC, datetime

    days: dict[str, dict[str, int]] = {}
    for run in runs:
        if run["started_s"] is None:
            continue
        day = datetime.fromtimestamp(run["started_s"], UTC).date().isoformat()
        of_day = days.setdefault(day, {"runs": 0, "healed": 0})
        of_day["runs"] += 1
        of_day["healed"] += run["outcome"] == "healed"
    return dict(sorted(days.items()))
