"""`suture lsp`: failing tests inside an editor, with what mends them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.commands.serving.doors import extra_needed, flags_said
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Model, Set, Test, load


@reports_faults
def lsp(
    test: Test = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="S", min=1, help="How long a run may take that follows a saved file."
        ),
    ] = 60.0,
    model: Model = None,
    assignments: Set = None,
    debug: Debug = False,
) -> None:
    """Be a language server: failing tests as diagnostics, a verified change as an edit.

    It talks on stdin and stdout, as editors start such servers. A saved file has the project's tests run in
    the sandbox, and small edits tried; a model is asked where you choose so, and only the editor writes.
    """
    loaded = load(Path(), assignments, model__name=model)
    with extra_needed("editor"):
        from suture.editor.lsp.checking import Work
        from suture.editor.lsp.server import serve
    serve(Work(settings=loaded.settings, flags=flags_said(assignments, model), test=test, seconds=seconds))
