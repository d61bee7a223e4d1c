"""`suture show`: what happened in a run, from its ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from suture.core.safe_files import read_state_file
from suture.errors import StorageError, UsageError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, RunName, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_json,
    print_note,
    print_raw,
    print_text,
)

if TYPE_CHECKING:
    from suture.core.ledger import RunFolder

MAX_DIFF_BYTES = 256 * 2**20
"""The largest diff that is read. Chosen by judgement; not measured."""


@handle_errors
def show(
    run: RunName = "last",
    as_list: Annotated[bool, Option("--list", help="List all runs, oldest first.")] = False,
    as_diff: Annotated[bool, Option("--diff", help="Print only the run's diff.")] = False,
    as_full_diff: Annotated[
        bool, Option("--full-diff", help="Print the change as proposed, before unneeded parts were left out.")
    ] = False,
    as_faults: Annotated[
        bool, Option("--faults", help="Print the suspicious lines, most likely first.")
    ] = False,
    at: Annotated[
        int | None, Option("--at", metavar="N", help="The state after step N; 0 is before the first step.")
    ] = None,
    as_json: Json = False,
    assignments: Assignments = None,
) -> None:
    """Show a run step by step: moves, candidates, verdicts, spend."""
    from suture.core.ledger import find_run

    settings = load_command_settings(Path(), assignments, read_only=True).settings
    if as_list:
        from suture.interfaces.narrative.run_list import list_summary_rows

        rows = list_summary_rows(settings, sys.maxsize)[::-1]
        if as_json:
            print_json([dict(zip(("run", "state", "spent", "task"), row, strict=True)) for row in rows])
        elif rows:
            print_text(format_table(rows))
        else:
            print_note("no runs yet; start one with `suture run --example`")
        return
    run_folder = find_run(settings.paths.home.expanduser(), run)
    from suture.interfaces.narrative.run_story import run_as_json, run_as_text, step_as_json, step_as_text

    if as_diff or as_full_diff:
        full = run_folder.path / "full.diff"  # exists only if parts were left out of the result
        diff = full if as_full_diff and full.is_file() else run_folder.path / "result.diff"
        if not diff.is_file():
            remedy = f"see what it did: suture show {run_folder.id}"
            raise UsageError(f"run {run_folder.id} has no diff", remedy=remedy)
        content = read_state_file(diff, MAX_DIFF_BYTES, "the diff", follow=False)
        print_raw(content.decode("utf-8", "surrogateescape"), diff=True)
    elif as_faults:
        show_suspects(run_folder, as_json=as_json)
    elif at is not None:
        if as_json:
            print_json(step_as_json(run_folder, at))
        else:
            print_text(step_as_text(run_folder, at))
    elif as_json:
        print_json(run_as_json(run_folder))
    else:
        print_text(run_as_text(run_folder))


def show_suspects(run: RunFolder, *, as_json: bool) -> None:
    """Print the suspicious lines with their scores and text."""
    from suture.core.ledger import first_payload, last_payload, read_ledger
    from suture.core.ledger.kinds import RunStarted, SearchFinished

    events = read_ledger(run.ledger_path).events
    searched = last_payload(events, SearchFinished)
    if searched is None:
        raise UsageError(
            f"run {run.id} has no suspicious lines: no search ended in it",
            remedy="`suture heal` searches if tests fail and repair.enabled is on",
        )
    if as_json:
        print_json([vars(fault) for fault in searched.faults])
        return
    started = first_payload(events, RunStarted)
    texts = _file_texts(run, started.task) if started else {}
    rows = []
    for fault in searched.faults:
        lines = texts.get(fault.path, "").splitlines()
        text = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
        rows.append((f"{fault.score:.2f}", f"{fault.path}:{fault.line}", fault.function or "-", text))
    print_text(format_table(rows) if rows else "no failing test ran a line of the project")


def _file_texts(run: RunFolder, blob: str) -> dict[str, str]:
    """Return the project's files at the start of the run; empty if the folder no longer has them."""
    from suture.core.records import Task
    from suture.project.workspace import decode_text

    try:
        files = run.load_record(Task, blob).files
    except StorageError:
        return {}
    return {path: decode_text(content) for path, content in files.items()}
