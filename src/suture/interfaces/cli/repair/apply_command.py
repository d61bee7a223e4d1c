"""`suture apply` and `suture undo`: apply a run's change to the user's files or repository, and revert it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Branch,
    Json,
    OutputOptions,
    load_command_settings,
    require_at_most_one,
    require_run,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    print_json,
    print_note,
    print_text_line,
    show_activity,
)
from suture.interfaces.cli.terminal.value_completion import complete_run


@handle_errors
def apply(
    run: Annotated[
        str | None,
        Argument(
            metavar="RUN",
            help="An id, or its unique start or end; default: the last run that healed this folder.",
            autocompletion=complete_run,
        ),
    ] = None,
    commit: Annotated[bool, Option("--commit", help="Also commit the change, and only the change.")] = False,
    branch: Branch = None,
    patch: Annotated[
        Path | None, Option("--patch", metavar="FILE", help="Write the diff to a file instead.")
    ] = None,
    into: Annotated[
        Path | None,
        Option(
            "--into", metavar="FOLDER", help="The folder for new code; default: where the run was started."
        ),
    ] = None,
    rival: Annotated[
        int | None,
        Option(
            "--rival",
            metavar="N",
            min=1,
            help="Verify and apply change N of those between which your tests do not decide.",
        ),
    ] = None,
    assignments: Assignments = None,
) -> None:
    """Apply the verified change of a healed run; `suture undo` reverts it.

    Nothing is written if you have changed the same files since. With --rival, a new run first verifies the other
    change, and nothing is written if a test fails.
    """
    require_at_most_one({"--commit": commit, "--branch": branch, "--patch": patch})
    require_at_most_one({"--rival": rival, "--into": into})
    if rival is not None:
        loaded = load_command_settings(Path(), assignments)
        require_run(run, loaded.settings)
        from suture.api.delivery.rivals import apply_rival
        from suture.interfaces.cli.run_execution import run_and_report

        start = partial(
            apply_rival, run, rival, commit=commit, branch=branch, patch=patch, settings=loaded.settings
        )
        run_and_report(start, loaded, kind="heal", output=OutputOptions(), announces=False)
        return
    with show_activity("applying the change"):
        settings = load_command_settings(Path(), assignments, read_only=True).settings
        require_run(run, settings)
        from suture.api import apply as apply_run
        from suture.api import run_sync
        from suture.interfaces.narrative.certificate_rendering import delivery_lines

        folder = run_sync(
            apply_run(run, commit=commit, branch=branch, patch=patch, into=into, settings=settings)
        )
    for line in delivery_lines(folder):
        print_note(line)


@handle_errors
def undo(
    run: Annotated[
        str | None,
        Argument(
            metavar="RUN",
            help="An id, or its unique start or end; default: the last run that changed this folder.",
            autocompletion=complete_run,
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Revert what a run changed in your files or your repository.

    Files are restored byte for byte, a commit is reverted by another commit, and a branch is deleted. Nothing
    is changed if you have edited the same files since.
    """
    with show_activity("reverting the change"):
        settings = load_command_settings(Path(), assignments, read_only=True).settings
        require_run(run, settings)
        from suture.api import undo as undo_run

        reverted = vars(undo_run(run, settings=settings))
    if as_json:
        print_json(reverted)
    else:
        from suture.core.ledger.kinds import TreeUndone
        from suture.interfaces.narrative.certificate_rendering import render_undo

        print_text_line(render_undo(TreeUndone(**reverted)))
