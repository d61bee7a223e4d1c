"""`suture history`: all runs, the newest first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Set, load
from suture.cli.terminal.output import answer, answer_json, note, table

if TYPE_CHECKING:
    from suture.ledger import RunFolder

COLUMNS = ("run", "kind", "outcome", "recipe", "model", "spent", "when")


@reports_faults
def history(
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="The most runs that are told.")
    ] = 20,
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the runs, newest first: kind, outcome, recipe, model, spend, when."""
    from suture.ledger import list_runs

    runs = list_runs(load(Path(), assignments, looks=True).settings.paths.home)
    told = [_told(run) for run in reversed(runs[-limit:])]
    if as_json:
        answer_json(told)
    elif told:
        answer(table([COLUMNS, *(_row(run) for run in told)]))
    else:
        note("no runs yet; start one with `suture run --example`")
    if len(runs) > limit and not as_json:
        note(f"{len(runs) - limit} older ones are left out (--limit)")


def _told(run: RunFolder) -> dict[str, Any]:
    from suture.errors import StorageError
    from suture.ledger import LedgerReading, first_of, read_ledger, spend_of, stands
    from suture.ledger.kinds import RunStarted

    damage = ""
    try:
        reading = read_ledger(run.ledger_path)
    except StorageError as fault:  # one run's damage hides no other run
        reading, damage = LedgerReading(events=()), fault.message
    started = first_of(reading.events, RunStarted)
    spend = spend_of(reading.events)
    forks = started.forks if started else None
    return {
        "run": run.id,
        "kind": started.kind if started else "",
        "outcome": "damaged" if damage else stands(run, reading),
        "recipe": started.recipe if started else "",
        "model": started.model if started else "",
        "spend": {
            "attempts": spend.attempts,
            "tokens": spend.tokens,
            "model_calls": spend.model_calls,
            "money": spend.money,
            "seconds": round(spend.seconds, 3),
        },
        "started_s": reading.events[0].time_s if reading.events else None,
        "fork_of": forks.run if forks else None,
        "fork_at": forks.at if forks else None,
        "replay_of": (started.replays or None) if started else None,
        "task": started.statement if started else damage,
    }


def _row(told: dict[str, Any]) -> tuple[str, ...]:
    spend, origin = told["spend"], told["kind"]
    if told["fork_of"]:
        origin += f", fork of {told['fork_of'][-6:]} at {told['fork_at']}"
    if told["replay_of"]:
        origin += f", replay of {told['replay_of'][-6:]}"
    money = f", ${spend['money']:.4f}" if spend["money"] else ""
    began = told["started_s"]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began)) if began is not None else ""
    spent = f"{spend['attempts']} attempts, {spend['tokens']:,} tokens{money}, {spend['seconds']:.0f} s"
    return (told["run"], origin, told["outcome"], told["recipe"], told["model"], spent, when)
