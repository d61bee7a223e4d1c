"""`suture serve` and `suture ui`: the REST service, the web page, and the tokens of its callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Json,
    Model,
    command_line_settings,
    load_command_settings,
    require_extra,
    require_folders,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_note, print_text

if TYPE_CHECKING:
    from suture.interfaces.web.request_guard import AccessTokens

serve_app = typer.Typer(name="serve")
token_app = typer.Typer(name="token", help="Manage the tokens of callers.", no_args_is_help=True)
serve_app.add_typer(token_app)

LOOPBACK = "127.0.0.1"
Port = Annotated[int | None, Option("--port", metavar="N", help="The port, 0 for a free one; serve.port.")]


@serve_app.callback(invoke_without_command=True)
@handle_errors
def serve(
    context: typer.Context,
    host: Annotated[
        str | None, Option("--host", metavar="ADDRESS", help="The address to listen on; serve.host.")
    ] = None,
    port: Port = None,
    root: Annotated[
        list[Path] | None,
        Option("--root", metavar="FOLDER", help="Allow callers to heal projects in this folder; repeatable."),
    ] = None,
    model: Model = None,
    assignments: Assignments = None,
) -> None:
    """Serve runs to other programs, and the web page, until Ctrl-C or SIGTERM.

    Prints the address, which is also that of the page. By default only this machine can connect, and no token
    is needed as long as none exists; any other address requires tokens. Runs that are in progress when the
    server stops continue when it starts again.
    """
    if context.invoked_subcommand is not None:
        return
    serve_at(host, port, root or (), model, assignments)


def serve_at(
    host: str | None,
    port: int | None,
    roots: Sequence[Path],
    model: str | None,
    assignments: list[str] | None,
    announce: Callable[[str], None] = print_text,
) -> None:
    """Serve until stopped; options that are not given come from the settings.

    `announce` is called with the address once the server listens.
    """
    require_folders(roots)
    loaded = load_command_settings(
        Path(),
        assignments,
        model__name=model,
        serve__host=host,
        serve__port=port,
        serve__roots=",".join(str(folder.absolute()) for folder in roots) or None,
    )
    for note in loaded.notes:
        print_note(f"note: {note}")
    with require_extra("serve"):
        from suture.interfaces.web.uvicorn_server import serve_web
    serve_web(loaded.settings, command_line_settings(assignments, model), announce)


@token_app.command("add")
@handle_errors
def add_token(
    name: Annotated[str, Argument(metavar="NAME", help="The caller's name, which their runs carry.")],
    role: Annotated[
        str, Option("--role", metavar="ROLE", help="viewer, runner, reviewer or admin, in order of rights.")
    ] = "runner",
    assignments: Assignments = None,
) -> None:
    """Create a token and print it once; only its hash is stored.

    A viewer can read. A runner can also start, fork, replay and verify runs, and stop their own. A reviewer
    can also answer questions of runs. An admin can also stop any run.
    """
    tokens, home = _tokens(assignments)
    print_text(tokens.add(name, role))
    print_note(f"its hash is stored in {home}; a running server requires tokens after a restart")


@token_app.command("list")
@handle_errors
def list_tokens(assignments: Assignments = None, as_json: Json = False) -> None:
    """List the tokens' names and roles."""
    callers = _tokens(assignments)[0].list_callers()
    if as_json:
        print_json([{"name": caller.name, "role": caller.role} for caller in callers])
    elif callers:
        print_text(format_table([(caller.name, caller.role) for caller in callers]))
    else:
        print_note("no tokens yet; create one: suture serve token add NAME")


@token_app.command("remove")
@handle_errors
def remove_token(
    name: Annotated[str, Argument(metavar="NAME", help="The caller's name.")],
    assignments: Assignments = None,
) -> None:
    """Revoke a token."""
    _tokens(assignments)[0].remove(name)
    print_note(f"the token of {name} is revoked")


def _tokens(assignments: list[str] | None) -> tuple[AccessTokens, Path]:
    from suture.interfaces.web.request_guard import AccessTokens

    home = load_command_settings(Path(), assignments, read_only=True).settings.paths.home
    return AccessTokens(home), home


@handle_errors
def ui(
    root: Annotated[
        list[Path] | None,
        Argument(
            metavar="[FOLDER]...", help="Allow healing projects in this folder; default: the current folder."
        ),
    ] = None,
    port: Port = None,
    model: Model = None,
    assignments: Assignments = None,
) -> None:
    """Serve the web page to this machine until Ctrl-C: start runs, watch them, answer their questions.

    Prints the address to open. It is `suture serve` for this machine only. Closing the page stops nothing;
    runs that are in progress when the server stops continue when it starts again.
    """

    def announce(address: str) -> None:
        print_note("Open this address in a browser; press Ctrl-C to stop the server.")
        print_text(address)

    serve_at(LOOPBACK, port, root or (Path(),), model, assignments, announce)
