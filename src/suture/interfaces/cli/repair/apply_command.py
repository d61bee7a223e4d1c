"""`suture apply` and `suture undo`: what a run has healed, into the user's files or repository and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Branch,
    Json,
    load_command_settings,
    require_at_most_one,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text


@handle_errors
def apply(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="An id, or the unique start or end of one; the last that healed this folder."
        ),
    ] = None,
    commit: Annotated[bool, typer.Option("--commit", help="Commit it too, and that alone.")] = False,
    branch: Branch = None,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Write the diff into a file instead.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FOLDER", help="Where new code goes; else where it was asked for."),
    ] = None,
    assignments: Assignments = None,
) -> None:
    """Apply the verified change of a run that has healed; `suture undo` takes it back.

    Nothing is written where you have changed the same files since.
    """
    require_at_most_one({"--commit": commit, "--branch": branch, "--patch": patch})
    from suture.api import apply as apply_run
    from suture.api import run_sync
    from suture.interfaces.narrative.render_certificate import delivery_lines

    settings = load_command_settings(Path(), assignments, looks=True).settings
    folder = run_sync(apply_run(run, commit=commit, branch=branch, patch=patch, into=into, settings=settings))
    for line in delivery_lines(folder):
        print_note(line)


@handle_errors
def undo(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="An id, or the unique start or end of one; the last that changed this folder."
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Take back what a run changed in your files or your repository.

    Files get back what they held, to the byte; a commit is reverted by another one; a branch is deleted.
    Nothing is touched where you have changed the same files since.
    """
    from suture.api import undo as take_back

    done = vars(take_back(run, settings=load_command_settings(Path(), assignments, looks=True).settings))
    if as_json:
        print_json(done)
    else:
        from suture.core.ledger.kinds import TreeUndone
        from suture.interfaces.narrative.plain_text import escape_line_breaks
        from suture.interfaces.narrative.render_certificate import render_undo

        print_text(escape_line_breaks(render_undo(TreeUndone(**done))))
