"""`suture history`: all runs, the newest first, or those that a question finds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Set, load
from suture.cli.terminal.output import answer, answer_json, note, table
from suture.errors import UsageError
from suture.narrative.lines import counted

if TYPE_CHECKING:
    from suture.settings import Settings

COLUMNS = ("run", "kind", "outcome", "recipe", "model", "spent", "when")
Since = Annotated[
    str, typer.Option("--since", metavar="DAY", help="Begun on this day or later, such as 2026-11-01, or 7d.")
]
Project = Annotated[str, typer.Option("--project", metavar="PART", help="A part of the project's folder.")]
ModelPart = Annotated[str, typer.Option("--model", metavar="PART", help="A part of the model's name.")]
KindOf = Annotated[str, typer.Option("--kind", metavar="KIND", help="`write` or `heal`.")]


@reports_faults
def history(
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="The most runs that are told.")
    ] = 20,
    search: Annotated[
        str, typer.Option("--search", "-s", metavar="WORDS", help="All of them in its task or its errors.")
    ] = "",
    outcome: Annotated[str, typer.Option("--outcome", metavar="OUTCOME", help="Such as healed.")] = "",
    kind: KindOf = "",
    language: Annotated[str, typer.Option("--language", metavar="NAME", help="Such as python.")] = "",
    recipe: Annotated[str, typer.Option("--recipe", metavar="NAME", help="The recipe.")] = "",
    model: ModelPart = "",
    project: Project = "",
    error: Annotated[
        str, typer.Option("--error", metavar="KIND", help="Such as KeyError, `wrong answer` or timeout.")
    ] = "",
    since: Since = "",
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the runs, newest first: kind, outcome, recipe, model, spend, when."""
    asked = {
        "words": search,
        "outcome": outcome,
        "kind": kind,
        "language": language,
        "recipe": recipe,
        "model": model,
        "project": project,
        "error": error,
        "since_s": since_s(since),
    }
    settings = load(Path(), assignments, looks=True).settings
    if settings.store.url or any(asked.values()):
        rows, total = _from_database(settings, asked, limit)
    else:
        rows, total = _from_ledgers(settings.paths.home, limit)
    told = [_told(row) for row in rows]
    if as_json:
        answer_json(told)
    elif told:
        answer(table([COLUMNS, *map(_row, told)]))
    else:
        note("no such run" if any(asked.values()) else "no runs yet; start one with `suture run --example`")
    if total > limit and not as_json:
        note(f"{total - limit} older ones are left out (--limit)")


def since_s(day: str) -> float | None:
    """The time at which a day begins here, in seconds since the epoch; `None` where none is named.

    Raises:
        UsageError: It is neither a day nor a number of days.
    """
    if not day:
        return None
    if day[:-1].isdecimal() and day.endswith("d"):
        return time.time() - int(day[:-1]) * 86_400
    from datetime import datetime

    try:
        return datetime.fromisoformat(day).timestamp()
    except (ValueError, OverflowError, OSError) as fault:
        raise UsageError(f"--since {day!r} is no day", remedy="such as 2026-11-01, or 7d") from fault


def _from_database(settings: Settings, asked: dict[str, Any], limit: int) -> tuple[list[dict[str, Any]], int]:
    from suture.store.database import store_of
    from suture.store.looking_back import Question, runs_found
    from suture.store.recording import catch_up

    with store_of(settings) as store:
        catch_up(store, settings.paths.home)
        found: tuple[list[dict[str, Any]], int] = runs_found(store, Question(**asked), limit)
    return found


def _from_ledgers(home: Path, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The same rows without a database, as the last few runs are read in no time."""
    from suture.ledger import list_runs
    from suture.store.projecting import rows_of

    runs = list_runs(home)
    return [{**rows_of(run).task, "run_id": run.id} for run in reversed(runs[-limit:])], len(runs)


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


def _row(told: dict[str, Any]) -> tuple[str, ...]:
    spend, origin = told["spend"], told["kind"]
    if told["fork_of"]:
        origin += f", fork of {told['fork_of'][-6:]} at {told['fork_at']}"
    if told["replay_of"]:
        origin += f", replay of {told['replay_of'][-6:]}"
    money = f", ${spend['money']:.4f}" if spend["money"] else ""
    began = told["started_s"]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began is not None else ""
    asked = (
        f", {counted(spend['attempts'], 'attempt')}, {spend['tokens']:,} tokens" if spend["tokens"] else ""
    )
    spent = f"{spend['seconds']:.0f} s{asked}{money}"
    return (told["run"], origin, told["outcome"], told["recipe"], told["model"], spent, when)
