"""`suture mcp`, `suture acp` and `suture lsp`: servers for other agents and for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Model,
    Test,
    command_line_settings,
    load_command_settings,
    require_extra,
    require_folders,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors


@handle_errors
def acp(test: Test = None, model: Model = None, assignments: Assignments = None) -> None:
    """Be an agent of the Agent Client Protocol for editors such as Zed; prompts become runs.

    It communicates over stdin and stdout, as editors start such agents. The editor shows a run's steps,
    candidates and questions; a healed change is written to your files only if you accept it there.
    """
    loaded = load_command_settings(Path(), assignments, model__name=model)
    with require_extra("editor"):
        from suture.interfaces.editor.acp.acp_agent import serve_acp
    serve_acp(loaded.settings, command_line_settings(assignments, model), test)


@handle_errors
def lsp(
    test: Test = None,
    seconds: Annotated[
        float, Option("--seconds", metavar="S", min=1, help="Max seconds of a run after a file is saved.")
    ] = 60.0,
    model: Model = None,
    assignments: Assignments = None,
) -> None:
    """Be a language server: failing tests as diagnostics, a verified change as an edit.

    It communicates over stdin and stdout, as editors start such servers. After a file is saved, the project's
    tests run in the sandbox and small edits are tried. A model is used only if you choose so, and only the
    editor writes.
    """
    loaded = load_command_settings(Path(), assignments, model__name=model)
    with require_extra("editor"):
        from suture.interfaces.editor.lsp.background_runs import LanguageServerOptions
        from suture.interfaces.editor.lsp.language_server import serve_lsp
    flags = command_line_settings(assignments, model)
    serve_lsp(LanguageServerOptions(settings=loaded.settings, flags=flags, test=test, seconds=seconds))


@handle_errors
def mcp(
    http: Annotated[bool, Option("--http", help="Listen on an address instead of stdin and stdout.")] = False,
    host: Annotated[
        str, Option("--host", metavar="ADDRESS", help="With --http: a loopback address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, Option("--port", metavar="N", min=1, max=65535, help="With --http: the port.")
    ] = 8766,
    root: Annotated[
        list[Path] | None,
        Option(
            "--root",
            metavar="FOLDER",
            help="Allow healing projects in this folder, if the client names no folders; repeatable.",
        ),
    ] = None,
    model: Model = None,
    assignments: Assignments = None,
) -> None:
    """Be a server of the Model Context Protocol for other agents: tools to heal, write, verify and show.

    It communicates over stdin and stdout, as agents start such servers. Only projects in the client's own
    roots can be healed. The result of a heal is a diff; no file is changed.
    """
    require_folders(root or ())
    loaded = load_command_settings(Path(), assignments, model__name=model)
    with require_extra("mcp"):
        from suture.interfaces.mcp.mcp_server import serve_mcp
    flags = command_line_settings(assignments, model)
    roots = tuple(folder.absolute() for folder in root or ())
    serve_mcp(loaded.settings, flags, roots, http=(host, port) if http else None)
