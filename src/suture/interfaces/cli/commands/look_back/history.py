"""`suture history`: all runs, the newest first, or those that a question finds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Json, Set, load
from suture.interfaces.cli.terminal.output import answer, answer_json, note, table
from suture.interfaces.narrative.lines import counted

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
) -> None:
    """List the runs, newest first: kind, outcome, recipe, model, spend, when."""
    asked: dict[str, Any] = {
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
    from suture.interfaces.narrative.history import found_runs
    from suture.storage.database.looking_back import RunFilter

    settings = load(Path(), assignments, looks=True).settings
    runs, total = found_runs(settings, RunFilter(**asked), limit)
    if as_json:
        answer_json(runs)
    elif runs:
        answer(table([COLUMNS, *map(_row, runs)]))
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


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    spend, origin = run["spend"], run["kind"]
    if run["fork_of"]:
        origin += f", fork of {run['fork_of'][-6:]} at {run['fork_at']}"
    if run["replay_of"]:
        origin += f", replay of {run['replay_of'][-6:]}"
    money = f", ${spend['money']:.4f}" if spend["money"] else ""
    began = run["started_s"]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began is not None else ""
    asked = (
        f", {counted(spend['attempts'], 'attempt')}, {spend['tokens']:,} tokens" if spend["tokens"] else ""
    )
    spent = f"{spend['seconds']:.0f} s{asked}{money}"
    return (run["run"], origin, run["outcome"], run["recipe"], run["model"], spent, when)
