"""`suture mcp`: Suture as tools of other agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.interfaces.cli.commands.serving.doors import extra_needed, flags_said, require_folders
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Model, Set, load


@reports_faults
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Listen at an address instead of stdin and stdout.")
    ] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="With --http: this machine's own.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65535, help="With --http: its port.")
    ] = 8766,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="Projects in it may be healed, where the client names no folders; may be repeated.",
        ),
    ] = None,
    model: Model = None,
    assignments: Set = None,
) -> None:
    """Be a server of the Model Context Protocol, for other agents: tools heal, write, verify and show.

    It talks on stdin and stdout, as agents start such servers, until they close them. A client's own roots
    are the only folders in which it may have code healed; what is healed is a diff, and no file is changed.
    """
    require_folders(root or ())
    loaded = load(Path(), assignments, model__name=model)
    with extra_needed("mcp"):
        from suture.interfaces.mcp.server import serve
    flags = flags_said(assignments, model)
    roots = tuple(folder.absolute() for folder in root or ())
    serve(loaded.settings, flags, roots, http=(host, port) if http else None)
