"""The list of runs, newest first: all of them, or those that a filter selects."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from suture.errors import PrerequisiteError, StorageError
from suture.interfaces.narrative.plain_text import format_count

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.run_index import RunIndex
    from suture.storage.database.run_query import RunQuery


log = logging.getLogger("suture.interfaces.narrative")
MAX_TASK_CHARS = 60
"""Length of a task's first line in a list of runs."""
MAX_TEST_CHARS = 60
"""Length of a test's name in the title of a run."""
MAX_LEDGERS_READ = 100
"""Up to this number of runs, reading their ledgers is faster than bringing a database up to date: a short ledger takes
about 2 ms of processor time."""
MAX_RUNS_WITHOUT_INDEX = 1000
"""With more runs, even those without a filter are listed by the database, which does not look at each folder."""


@dataclass(frozen=True, kw_only=True)
class RunList:
    """The newest runs that match a query.

    Attributes:
        runs: The runs as JSON values.
        total: How many match in all.
        unindexed: How many runs of this machine are not in the database yet, and may be missing.
    """

    runs: list[dict[str, Any]]
    total: int
    unindexed: int = 0


def list_matching_runs(settings: Settings, query: RunQuery, limit: int) -> RunList:
    """Return the newest runs that match a query."""
    from suture.core.change_log import count_run_folders

    home = settings.paths.home
    if settings.store.url or query.is_set:
        return _query_index(settings, query, limit)
    folders = count_run_folders(home, MAX_RUNS_WITHOUT_INDEX + 1)
    if folders > MAX_RUNS_WITHOUT_INDEX or min(limit, folders) > MAX_LEDGERS_READ:
        return _query_index(settings, query, limit)
    return _list_ledgers(home, limit)


def _query_index(settings: Settings, query: RunQuery, limit: int) -> RunList:
    from suture.storage.database.run_changes import differs_from_row
    from suture.storage.database.run_queries import query_runs

    for compare_all in (False, True):
        with open_indexed_runs(settings, compare_all=compare_all) as (index, unindexed):
            rows, total = query_runs(index, query, limit)
            # Another program may have replaced a ledger, which the log of changed runs does not mention.
            if not any(differs_from_row(index, settings.paths.home, row) for row in rows):
                break
    return RunList(runs=[_row_as_json(row) for row in rows], total=total, unindexed=unindexed)


@contextlib.contextmanager
def open_indexed_runs(settings: Settings, *, compare_all: bool = False) -> Iterator[tuple[RunIndex, int]]:
    """Open the database of runs with the newest runs, and let a process in the background read the others.

    The context is the database and the number of runs that are not in it yet.
    """
    from suture.storage.database.current_index import open_current_index

    with open_current_index(settings, compare_all=compare_all) as (index, unindexed):
        if unindexed:
            from suture.interfaces.jobs.index_process import start_indexing

            start_indexing(settings)
        yield index, unindexed


def describe_unindexed(count: int) -> str:
    """Return the remark that runs may be missing from an answer."""
    return (
        f"{format_count(count, 'older run')} may be missing: a process in the background is reading them, "
        "about 500 a second"
    )


def _list_ledgers(home: Path, limit: int) -> RunList:
    """Return the newest runs of this machine without the database."""
    from suture.core.ledger import stamp_ledgers

    runs = list(stamp_ledgers(home))
    rows = _read_newest_ledgers(home, runs[-limit:])
    return RunList(runs=[_row_as_json(row) for row in rows], total=len(runs))


def _read_newest_ledgers(home: Path, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of some runs of this machine, the last one first."""
    from suture.core.ledger import RunFolder
    from suture.storage.database.projections import project_run

    folders = [RunFolder(home / "runs" / run) for run in reversed(runs)]
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
    from suture.storage.database.run_query import RunQuery

    try:
        runs = list_matching_runs(settings, RunQuery(), limit).runs
    except (PrerequisiteError, StorageError) as fault:
        log.warning("only the runs of this machine are listed: %s", fault)
        runs = _list_ledgers(settings.paths.home, limit).runs
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
