"""`suture acp` and `suture lsp`: inside an editor, as its agent, and as what shows failing tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.interfaces.cli.commands.serving.doors import extra_needed, flags_said
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Model, Set, Test, load


@reports_faults
def acp(
    test: Test = None,
    model: Model = None,
    assignments: Set = None,
) -> None:
    """Be an agent of the Agent Client Protocol, for editors such as Zed: prompts become runs.

    It talks on stdin and stdout, as editors start such agents. A run's steps, candidates and questions are
    shown in the editor, and what is healed is written into your files where you accept it there.
    """
    loaded = load(Path(), assignments, model__name=model)
    with extra_needed("editor"):
        from suture.interfaces.editor.acp.agent import serve
    serve(loaded.settings, flags_said(assignments, model), test)


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
) -> None:
    """Be a language server: failing tests as diagnostics, a verified change as an edit.

    It talks on stdin and stdout, as editors start such servers. A saved file has the project's tests run in
    the sandbox, and small edits tried; a model is asked where you choose so, and only the editor writes.
    """
    loaded = load(Path(), assignments, model__name=model)
    with extra_needed("editor"):
        from suture.interfaces.editor.lsp.checking import Work
        from suture.interfaces.editor.lsp.server import serve
    serve(Work(settings=loaded.settings, flags=flags_said(assignments, model), test=test, seconds=seconds))
