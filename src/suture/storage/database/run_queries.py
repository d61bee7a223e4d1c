"""Queries over many runs: those that match a query, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from suture.storage.database.run_index import RunIndex
from suture.storage.database.run_query import RunQuery
from suture.storage.database.search_words import split_words
from suture.storage.tuning import MAX_INDEXED_WORDS

Row = dict[str, Any]
SECONDS_PER_DAY = 86_400
N = TypeVar("N", int, float)
DECIDED_OUTCOMES = ("healed", "not_healed", "stuck", "budget_exhausted")
"""Outcomes that say whether a task was solved; interruptions and faults outside the code say nothing."""
LISTED_COLUMNS = (
    "run_id",
    "kind",
    "statement",
    "recipe",
    "model",
    "project",
    "outcome",
    "delivery",
    "confidence",
    "failing",
    "failing_test",
    "attempts",
    "tokens",
    "model_calls",
    "money",
    "seconds",
    "started_s",
    "fork_of",
    "fork_at",
    "replay_of",
    "ledger_bytes",
    "ledger_mtime_ns",
)
MEMORY_TABLES = ("failures", "patterns", "lessons")


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition on the rows of `tasks` in SQL, and its parameters."""

    sql: str
    parameters: Mapping[str, Any]
    is_narrow: bool


def query_runs(index: RunIndex, query: RunQuery, limit: int) -> tuple[list[Row], int]:
    """Return `(rows, total)`: the newest rows of `tasks` that match a query, and how many match in all.

    Each row also has the run's `doubt`, which is empty if there is none.
    """
    condition = _make_condition(index, query)
    newest = f"SELECT * FROM tasks WHERE {condition.sql} ORDER BY started_s DESC, run_id DESC LIMIT :limit"
    names = ", ".join(f"newest.{name}" for name in LISTED_COLUMNS)
    with index.snapshot():
        found = index.execute(
            f"SELECT {names}, coalesce(metrics.phase, '') FROM ({newest}) AS newest LEFT JOIN metrics "
            "ON metrics.namespace = :namespace AND metrics.run_id = newest.run_id AND metrics.name = 'doubts' "
            "ORDER BY newest.started_s DESC, newest.run_id DESC",
            {**condition.parameters, "limit": limit},
        )
        ((total,),) = index.execute(f"SELECT count(*) FROM tasks WHERE {condition.sql}", condition.parameters)
    rows = [dict(zip((*LISTED_COLUMNS, "doubt"), row, strict=True)) for row in found]
    return rows, total


def _make_condition(index: RunIndex, query: RunQuery) -> Condition:
    parts = ["tasks.namespace = :namespace"]
    parameters: dict[str, Any] = {"namespace": index.namespace}
    for name in ("outcome", "kind", "language", "recipe"):
        if value := getattr(query, name):
            parts.append(f"tasks.{name} = :{name}")
            parameters[name] = value
    for name in ("model", "project"):
        if value := getattr(query, name):
            parts.append(f"tasks.{name} LIKE :{name} ESCAPE '/'")
            escaped = value.replace("/", "//").replace("%", "/%").replace("_", "/_")
            parameters[name] = f"%{escaped}%"
    if query.since_s is not None:
        parts.append("tasks.started_s >= :since_s")
        parameters["since_s"] = query.since_s
    if query.error:
        parts.append(
            "tasks.run_id IN (SELECT run_id FROM iterations "
            "WHERE namespace = :namespace AND lower(error_kind) = :error)"
        )
        parameters["error"] = query.error.lower()
    if query.search:
        # SQLite (FTS5) and PostgreSQL (`tsvector`) tokenise in their own ways, so they are given words that are already
        # split. Punctuation is ignored; without a word no row matches.
        words = list(dict.fromkeys(split_words(query.search)))[:MAX_INDEXED_WORDS]
        if not words:
            parts.append("1 = 0")
        elif index.is_postgresql:
            parts.append("tasks.words @@ to_tsquery('simple', :words)")
            parameters["words"] = " & ".join(f"'{word}'" for word in words)
        else:
            parts.append("tasks.id IN (SELECT rowid FROM tasks_words WHERE tasks_words MATCH :words)")
            parameters["words"] = " ".join(f'"{word}"' for word in words)
    return Condition(sql=" AND ".join(parts), parameters=parameters, is_narrow=len(parts) > 1)


def summarise_runs(index: RunIndex, query: RunQuery) -> dict[str, Any]:
    """Return what the matching runs add up to, as JSON values: counts, shares, seconds, tokens."""
    condition = _make_condition(index, query)
    with index.snapshot():
        totals = index.execute(
            "SELECT outcome, count(*), sum(tokens), sum(money) FROM tasks "
            f"WHERE {condition.sql} GROUP BY outcome",
            condition.parameters,
        )
        metric_sums = index.execute(
            "SELECT name, phase, sum(value) FROM metrics "
            f"WHERE {_belongs_to_runs(condition)} GROUP BY name, phase",
            condition.parameters,
        )
        parameters = condition.parameters
        ended = f"{condition.sql} AND tasks.outcome <> 'running'"
        run_seconds = _summarise_seconds(index, "tasks", "tasks.namespace", ended, parameters)
        steps = _belongs_to_runs(condition)
        iteration_seconds = _summarise_seconds(index, "iterations", "move", steps, parameters)
        memories = _count_memories(index)
        by_day = _count_by_day(index, condition)
    outcomes = _sort_by_value({outcome: count for outcome, count, *_ in totals})
    decided = sum(outcomes.get(name, 0) for name in DECIDED_OUTCOMES)
    return {
        "runs": sum(outcomes.values()),
        "outcomes": outcomes,
        "pass_rate": round(outcomes.get("healed", 0) / decided, 4) if decided else None,
        "decided": decided,
        "tokens": sum(int(tokens) for _, _, tokens, _ in totals),
        "money": round(sum(money for *_, money in totals), 6),
        "run_seconds": run_seconds.get(index.namespace, {"count": 0, "median": 0.0, "p95": 0.0}),
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


def _belongs_to_runs(condition: Condition) -> str:
    """Return the condition that a row of another table belongs to a run that meets a condition."""
    if not condition.is_narrow:  # every run of the namespace meets it
        return "namespace = :namespace"
    return f"namespace = :namespace AND run_id IN (SELECT tasks.run_id FROM tasks WHERE {condition.sql})"


def _sort_by_value(values: Mapping[str, N]) -> dict[str, N]:
    """Return the entries sorted, the largest first, and equal ones by name."""
    return dict(sorted(values.items(), key=lambda entry: (-entry[1], entry[0])))


def _sums_by_phase(sums: Sequence[Any], name: str) -> dict[str, float]:
    return _sort_by_value({phase: round(float(value), 3) for key, phase, value in sums if key == name})


def _summarise_seconds(
    index: RunIndex, table: str, group: str, where: str, parameters: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Return group -> number, median and 95th percentile (nearest rank) of the durations in a table, in seconds."""
    counts = index.execute(
        f"SELECT {group} AS name, count(*) FROM {table} WHERE {where} GROUP BY {group} ORDER BY {group}",
        parameters,
    )
    # Two values at known places of an index take a tenth of the time of a window function.
    select = f"SELECT seconds FROM {table} WHERE {where} AND {group} = :group"
    summaries = {}
    for name, count in counts:
        middle = index.execute(
            f"{select} ORDER BY seconds LIMIT :middle OFFSET :before",
            {**parameters, "group": name, "middle": 2 - count % 2, "before": (count - 1) // 2},
        )
        ((p95,),) = index.execute(
            f"{select} ORDER BY seconds DESC LIMIT 1 OFFSET :above",
            {**parameters, "group": name, "above": count - (95 * count + 99) // 100},
        )
        median = sum(seconds for (seconds,) in middle) / len(middle)
        summaries[name] = {"count": count, "median": round(median, 3), "p95": round(p95, 3)}
    return summaries


def _count_memories(index: RunIndex) -> int:
    counts = " + ".join(
        f"(SELECT count(*) FROM {table} WHERE namespace = :namespace)" for table in MEMORY_TABLES
    )
    ((count,),) = index.execute(f"SELECT {counts}", {"namespace": index.namespace})
    return int(count)


def _count_by_day(index: RunIndex, condition: Condition) -> dict[str, dict[str, int]]:
    """Return day (UTC) -> number of runs, and how many of them were healed."""
    # PostgreSQL's cast rounds; SQLite's truncates, and it may lack `floor`.
    day = f"tasks.started_s / {SECONDS_PER_DAY}.0"
    day = f"CAST({f'floor({day})' if index.is_postgresql else day} AS INTEGER)"
    rows = index.execute(
        f"SELECT {day} AS day, count(*), sum(CASE WHEN outcome = 'healed' THEN 1 ELSE 0 END) FROM tasks "
        f"WHERE {condition.sql} AND tasks.started_s IS NOT NULL GROUP BY {day} ORDER BY {day}",
        condition.parameters,
    )
    return {
        datetime.fromtimestamp(number * SECONDS_PER_DAY, UTC).date().isoformat(): {
            "runs": runs,
            "healed": healed,
        }
        for number, runs, healed in rows
    }
