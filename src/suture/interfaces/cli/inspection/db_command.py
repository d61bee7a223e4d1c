"""`suture db`: create, update, check and rebuild the database of all runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_answer, print_note

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.store import Store

HELP = "The database of all runs: init, upgrade, check, rebuild, stats."
db_app = typer.Typer(name="db", help=HELP, no_args_is_help=True)


@db_app.command()
@handle_errors
def init(assignments: Assignments = None, as_json: Json = False) -> None:
    """Create the tables in the database of store.url, and import all runs of this machine."""
    _import_runs(_settings(assignments), from_scratch=False, as_json=as_json)


@db_app.command()
@handle_errors
def upgrade(assignments: Assignments = None, as_json: Json = False) -> None:
    """Upgrade the tables of an older Suture; everyone who shares the database then needs this version."""
    _import_runs(_settings(assignments), from_scratch=False, as_json=as_json)


@db_app.command()
@handle_errors
def rebuild(assignments: Assignments = None, as_json: Json = False) -> None:
    """Rebuild the rows of all runs from their ledgers, and restore missing memories of these runs."""
    _import_runs(_settings(assignments), from_scratch=True, as_json=as_json)


@db_app.command()
@handle_errors
def stats(assignments: Assignments = None, as_json: Json = False) -> None:
    """Show the database's address and the number of rows in each table."""
    from suture.storage.database.connection_options import LATEST_VERSION
    from suture.storage.database.projection_updates import catch_up, count_rows
    from suture.storage.database.store import open_configured_store

    settings = _settings(assignments)
    with open_configured_store(settings) as store:
        catch_up(store, settings.paths.home, compare_all=True)
        counts = count_rows(store)
    summary = {"database": store.location.strip("'"), "version": LATEST_VERSION, "namespace": store.namespace}
    rows = [*summary.items(), *((name, f"{count:,}") for name, count in counts.items())]
    print_answer({**summary, "rows": counts}, format_table(rows), as_json=as_json)


@db_app.command()
@handle_errors
def check(assignments: Assignments = None, as_json: Json = False) -> None:
    """Check that the database is intact and agrees with the ledgers; exit code 1 if not."""
    from suture.storage.database.projection_updates import check_database
    from suture.storage.database.store import open_configured_store

    settings = _settings(assignments)
    with open_configured_store(settings) as store:
        findings = check_database(store, settings.paths.home)
    report = {"database": store.location.strip("'"), "ok": not findings, "findings": findings}
    text = "\n".join(findings) or f"{store.location} is intact and agrees with the ledgers"
    print_answer(report, text, as_json=as_json)
    if findings:
        print_note("`suture db rebuild` rebuilds the rows")
        raise typer.Exit(1)


def _settings(assignments: list[str] | None) -> Settings:
    return load_command_settings(Path(), assignments, read_only=True).settings


def _import_runs(settings: Settings, *, from_scratch: bool, as_json: bool) -> None:
    from suture.storage.database.projection_updates import catch_up, rebuild_projections
    from suture.storage.database.store import open_configured_store

    with open_configured_store(settings, init=not from_scratch) as store:
        home = settings.paths.home
        counts = rebuild_projections(store, home) if from_scratch else catch_up(store, home, compare_all=True)
        memories = _rebuild_memories(settings, store) if from_scratch else {}
    answer = {"database": store.location.strip("'"), "read": counts.runs, "up_to_date": counts.up_to_date}
    text = f"{store.location}: {counts.runs} runs read"
    text += f"; {counts.up_to_date} were up to date" if counts.up_to_date else ""
    text += "".join(f"; {count:,} {name}" for name, count in memories.items() if count)
    print_answer({**answer, "memories": memories} if from_scratch else answer, text, as_json=as_json)


def _rebuild_memories(settings: Settings, store: Store) -> dict[str, int]:
    """Restore the memories of recorded runs; return the number of memories per table."""
    from suture.core.ledger import list_runs
    from suture.storage.memory.run_memory import relearn_from_runs

    runs = list_runs(settings.paths.home)
    counts = relearn_from_runs(store, runs, only_recorded=True, on_fault=print_note)
    return {name: counts[name] for name in counts if name != "runs"}
