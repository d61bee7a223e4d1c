"""The list of runs, newest first: all of them, or those that a question finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.run_queries import RunFilter


def list_matching_runs(
    settings: Settings, question: RunFilter, most: int
) -> tuple[list[dict[str, Any]], int]:
    """The newest runs that a question finds, as JSON values, and how many there are in all.

    Args:
        settings: Whose runs, and in which database.
        question: Which of them.
        most: The most that are told.

    Raises:
        StorageError: The database failed.
    """
    if settings.store.url or question.asks:
        rows, total = _from_database(settings, question, most)
    else:
        rows, total = _from_ledgers(settings, most)
    return [_told(row) for row in rows], total


def _from_database(settings: Settings, question: RunFilter, most: int) -> tuple[list[dict[str, Any]], int]:
    from suture.storage.database.projection_updates import catch_up
    from suture.storage.database.run_queries import runs_found
    from suture.storage.database.store import store_of

    with store_of(settings) as store:
        catch_up(store, settings.paths.home)
        found: tuple[list[dict[str, Any]], int] = runs_found(store, question, most)
    return found


def _from_ledgers(settings: Settings, most: int) -> tuple[list[dict[str, Any]], int]:
    """The same rows without a database, as the last few runs are read in no time."""
    from suture.core.ledger import list_runs
    from suture.storage.database.projections import rows_of

    runs = list_runs(settings.paths.home)
    return [{**rows_of(run).task, "run_id": run.id} for run in reversed(runs[-most:])], len(runs)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": row["run_id"],
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
        "task": row.get("statement", ""),
    }
