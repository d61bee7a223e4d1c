"""`suture ui`: the web page, on this machine, for the folder that somebody is in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.commands.serving.serve import serve_at
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Model, Set
from suture.cli.terminal.output import note

LOOPBACK = "127.0.0.1"


@reports_faults
def ui(
    root: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...", help="Projects in it may be healed; this folder, if not given."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Its port, 0 for a free one; serve.port.")
    ] = None,
    model: Model = None,
    assignments: Set = None,
    debug: Debug = False,
) -> None:
    """Serve the web page to this machine, until Ctrl-C: start runs, watch them, answer what they ask.

    Prints the address to open. It is `suture serve` for this machine alone. Closing the page stops nothing;
    what runs when the server is stopped goes on at its next start.
    """
    note("open this address in a browser; Ctrl-C stops the server")
    serve_at(LOOPBACK, port, root or (Path(),), model, assignments)
