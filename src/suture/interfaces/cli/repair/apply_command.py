"""`suture apply` and `suture undo`: what a run has healed, into the user's files or repository and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.interfaces.cli.terminal.command_options import Branch, Json, Set, load, require_at_most_one
from suture.interfaces.cli.terminal.error_reporting import reports_faults
from suture.interfaces.cli.terminal.terminal_output import answer, answer_json, note


@reports_faults
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
    assignments: Set = None,
) -> None:
    """Apply the verified change of a run that has healed; `suture undo` takes it back.

    Nothing is written where you have changed the same files since.
    """
    require_at_most_one({"--commit": commit, "--branch": branch, "--patch": patch})
    from suture.api import apply as apply_run
    from suture.api import run_sync
    from suture.interfaces.narrative.certificate_text import handover_lines

    settings = load(Path(), assignments, looks=True).settings
    folder = run_sync(apply_run(run, commit=commit, branch=branch, patch=patch, into=into, settings=settings))
    for line in handover_lines(folder):
        note(line)


@reports_faults
def undo(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="An id, or the unique start or end of one; the last that changed this folder."
        ),
    ] = None,
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Take back what a run changed in your files or your repository.

    Files get back what they held, to the byte; a commit is reverted by another one; a branch is deleted.
    Nothing is touched where you have changed the same files since.
    """
    from suture.api import undo as take_back

    done = vars(take_back(run, settings=load(Path(), assignments, looks=True).settings))
    if as_json:
        answer_json(done)
    else:
        from suture.core.ledger.kinds import TreeUndone
        from suture.interfaces.narrative.certificate_text import undone_line
        from suture.interfaces.narrative.plain_text import one_line

        answer(one_line(undone_line(TreeUndone(**done))))
