"""The list of runs, newest first: all of them, or those that a filter selects."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from suture.errors import PrerequisiteError, StorageError
from suture.interfaces.narrative.plain_text import format_count

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.run_query import RunQuery


log = logging.getLogger("suture.interfaces.narrative")
MAX_TASK_CHARS = 60
"""Length of a task's first line in a list of runs."""
MAX_TEST_CHARS = 60
"""Length of a test's name in the title of a run."""
MAX_LEDGERS_READ = 100
"""Up to this number of runs, reading their ledgers is faster than opening the database: a short ledger takes about 3 ms
of processor time, and the import of SQLAlchemy 300 ms."""


def list_matching_runs(
    settings: Settings, run_filter: RunQuery, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the newest runs that a filter selects as JSON values, and how many match in total."""
    from suture.core.ledger import stamp_ledgers

    needs_database = bool(settings.store.url) or run_filter.is_set
    runs = [] if needs_database else list(stamp_ledgers(settings.paths.home))
    if needs_database or min(limit, len(runs)) > MAX_LEDGERS_READ:
        from suture.storage.database.projection_updates import open_current_store
        from suture.storage.database.run_queries import query_runs

        with open_current_store(settings) as store:
            rows, total = query_runs(store, run_filter, limit)
    else:
        rows, total = _read_newest_ledgers(settings, runs[-limit:]), len(runs)
    return [_row_as_json(row) for row in rows], total


def _read_newest_ledgers(settings: Settings, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of some runs of this machine, the last one first."""
    from suture.core.ledger import RunFolder
    from suture.storage.database.projections import project_run

    folders = [RunFolder(settings.paths.home / "runs" / run) for run in reversed(runs)]
    return [
        {
            **projected.task,
            "run_id": projected.run_id,
            "doubt": next((row["phase"] for row in projected.metrics if row["name"] == "doubts"), ""),
        }
        for projected in map(project_run, folders)
    ]


def list_summary_rows(settings: Settings, limit: int) -> list[tuple[str, str, str, str]]:
    """Return the newest runs as rows of a list: `(id, state, tokens used, first line of the task)`.

    Without the database, these are the runs of this machine.
    """
    from suture.core.ledger import stamp_ledgers
    from suture.storage.database.run_query import RunQuery

    try:
        runs, _ = list_matching_runs(settings, RunQuery(), limit)
    except (PrerequisiteError, StorageError) as fault:
        log.warning("only the runs of this machine are listed: %s", fault)
        newest = list(stamp_ledgers(settings.paths.home))[-limit:]
        runs = [_row_as_json(row) for row in _read_newest_ledgers(settings, newest)]
    return [
        (
            run["run"],
            run["outcome"],
            "" if run["outcome"] == "damaged" else f"{run['spend']['tokens']:,} tokens",
            _shorten_task(run["task"]),
        )
        for run in runs
    ]


def _shorten_task(statement: str) -> str:
    line = (statement.strip().splitlines() or [""])[0]
    return line if len(line) <= MAX_TASK_CHARS else f"{line[:MAX_TASK_CHARS].rpartition(' ')[0]} ..."


def _row_as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": row["run_id"],
        "title": make_run_title(row),
        "kind": row.get("kind", ""),
        "outcome": row["outcome"],
        "doubt": row.get("doubt", ""),
        "confidence": row.get("confidence", 0.0),
        "delivery": row.get("delivery", ""),
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


ARCHIVE_NAME = re.compile("[0-9a-f]{64}")
"""Matches the name of the folder into which an uploaded archive is unpacked: its hash, which tells a reader nothing."""


def make_run_title(row: Mapping[str, Any]) -> str:
    """Return what a reader knows a run by: its project and what failed there, or the first sentence of its task.

    The title is as true at the end of a run as at its start, so it does not say that a test fails.

    Args:
        row: A row of the table `tasks`.
    """
    statement = str(row.get("statement", "")).strip()
    if row.get("kind") == "heal":
        project, failing = PurePath(row.get("project", "")).name, row.get("failing", 0)
        if ARCHIVE_NAME.fullmatch(project):
            project = "archive"
        if not failing:
            return f"heal {project}".strip()
        # The parameters of a test may contain colons, too.
        path, bracket, parameters = str(row.get("failing_test", "")).partition("[")
        test = path.rpartition("::")[2] + bracket + parameters
        if not test:
            return f"{project}: {format_count(failing, 'failing test')}"
        name = test if len(test) <= MAX_TEST_CHARS else f"{test[: MAX_TEST_CHARS - 3]}..."
        return f"{project}: {name}" + (f" and {failing - 1:,} more" if failing > 1 else "")
    first_line = statement.splitlines()[0] if statement else str(row.get("kind", ""))
    return re.split(r"\. (?=[A-Z])", first_line)[0].removesuffix(".")
