"""`suture acp`: Suture as an agent inside an editor."""

from __future__ import annotations

from pathlib import Path

from suture.cli.commands.serving.doors import extra_needed, flags_said
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Model, Set, Test, load


@reports_faults
def acp(
    test: Test = None,
    model: Model = None,
    assignments: Set = None,
    debug: Debug = False,
) -> None:
    """Be an agent of the Agent Client Protocol, for editors such as Zed: prompts become runs.

    It talks on stdin and stdout, as editors start such agents. A run's steps, candidates and questions are
    shown in the editor, and what is healed is written into your files where you accept it there.
    """
    loaded = load(Path(), assignments, model__name=model)
    with extra_needed("editor"):
        from suture.editor.acp.agent import serve
    serve(loaded.settings, flags_said(assignments, model), test)
