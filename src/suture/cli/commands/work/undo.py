"""`suture undo`: take back what a run changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Set, load
from suture.cli.terminal.output import answer, answer_json


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
    debug: Debug = False,
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
        from suture.ledger.kinds import TreeUndone
        from suture.narrative.lines import one_line
        from suture.narrative.proof_lines import undone_line

        answer(one_line(undone_line(TreeUndone(**done))))
