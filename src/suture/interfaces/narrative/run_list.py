"""The list of runs, newest first: all of them, or those that a filter selects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from suture.interfaces.narrative.plain_text import format_count

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.run_query import RunQuery


def list_matching_runs(
    settings: Settings, run_filter: RunQuery, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the newest runs that a filter selects as JSON values, and how many match in total."""
    if settings.store.url or run_filter.is_set:
        from suture.storage.database.projection_updates import open_current_store
        from suture.storage.database.run_queries import query_runs

        with open_current_store(settings) as store:
            rows, total = query_runs(store, run_filter, limit)
    else:  # reading the last few ledgers is faster than opening the database
        from suture.core.ledger import RunFolder, stamp_ledgers
        from suture.storage.database.projections import project_run

        runs = list(stamp_ledgers(settings.paths.home))
        newest = [RunFolder(settings.paths.home / "runs" / run) for run in reversed(runs[-limit:])]
        rows = [
            {**projected.task, "run_id": projected.run_id, "failing": projected.first_failures}
            for projected in map(project_run, newest)
        ]
        total = len(runs)
    return [_row_as_json(row) for row in rows], total


def _row_as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": row["run_id"],
        "title": make_run_title(row),
        "kind": row.get("kind", ""),
        "outcome": row["outcome"],
        "recipe": row.get("recipe", ""),
        "model": row.get("model", ""),
        "spend": {
            name: row.get(name, 0) for name in ("attempts", "tokens", "model_calls", "money", "seconds")
        },
        "started_s": row.get("started_s"),
        "fork_of": row.get("fork_of") or None,
        "fork_at": row.get("fork_at"),
        "replay_of": row.get("replay_of") or None,
        "project": row.get("project", ""),
        "task": row.get("statement", ""),
    }


def make_run_title(row: Mapping[str, Any]) -> str:
    """Return what a reader knows a run by: its project and what failed there, or the first sentence of its task.

    Args:
        row: A row of the table `tasks`, with the number of tests that failed at first as `failing`.
    """
    statement = str(row.get("statement", "")).strip()
    if row.get("kind") == "heal":
        project, failing = PurePath(row.get("project", "")).name, row.get("failing", 0)
        return f"{project}: {format_count(failing, 'failing test')}" if failing else f"heal {project}".strip()
    first_line = statement.splitlines()[0] if statement else str(row.get("kind", ""))
    return re.split(r"\. (?=[A-Z])", first_line)[0].removesuffix(".")
