"""`suture serve` and `suture ui`: the service and its page, and the tokens of its callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.interfaces.cli.serving.size_server import command_line_settings, require_extra, require_folders
from suture.interfaces.cli.terminal.command_options import Assignments, Json, Model, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_note, print_text

if TYPE_CHECKING:
    from suture.interfaces.web.access_tokens import AccessTokens

serve_app = typer.Typer(name="serve")
token_app = typer.Typer(name="token", help="Tokens of the service's callers.", no_args_is_help=True)
serve_app.add_typer(token_app)

LOOPBACK = "127.0.0.1"


@serve_app.callback(invoke_without_command=True)
@handle_errors
def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Where it listens; serve.host.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Its port, 0 for a free one; serve.port.")
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root", metavar="FOLDER", help="Callers may have projects in it healed; may be repeated."
        ),
    ] = None,
    model: Model = None,
    assignments: Assignments = None,
) -> None:
    """Serve runs to other programs, and the web page, until Ctrl-C or SIGTERM.

    Prints the address; the page is at it. It listens to this machine alone, where no token is asked for as
    long as there is none; any other address takes tokens. What runs when it is stopped, or killed, goes on at
    its next start.
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
    """Serve until it is told to stop; what is not given is as the settings have it.

    Raises:
        PrerequisiteError: The extra `serve` is not installed.
        UsageError: As `suture.interfaces.web.uvicorn_server.serve`.
    """
    require_folders(roots)
    places = ",".join(str(folder.absolute()) for folder in roots)
    loaded = load_command_settings(
        Path(),
        assignments,
        model__name=model,
        serve__host=host,
        serve__port=port,
        serve__roots=places or None,
    )
    for remark in loaded.notes:
        print_note(f"note: {remark}")
    with require_extra("serve"):
        from suture.interfaces.web.uvicorn_server import serve as serve_until_stopped
    serve_until_stopped(loaded.settings, command_line_settings(assignments, model), announce)


@token_app.command("add")
@handle_errors
def add_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is; their runs are told by it.")],
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="viewer, runner, reviewer or admin: each may do more."),
    ] = "runner",
    assignments: Assignments = None,
) -> None:
    """Make a token and print it, this once: only its hash is kept.

    A viewer looks; a runner also starts, forks, replays and verifies runs and stops their own; a reviewer
    also answers what runs ask; an admin also stops anyone's.
    """
    tokens, home = _tokens(assignments)
    print_text(tokens.add(name, role))
    print_note(f"kept as a hash in {home}; a server that runs asks for tokens from its next start on")


@token_app.command("list")
@handle_errors
def list_tokens(assignments: Assignments = None, as_json: Json = False) -> None:
    """List whose tokens there are, and their roles."""
    callers = _tokens(assignments)[0].callers()
    if as_json:
        print_json([{"name": caller.name, "role": caller.role} for caller in callers])
    elif callers:
        print_text(format_table([(caller.name, caller.role) for caller in callers]))
    else:
        print_note("no tokens yet; make one: suture serve token add NAME")


@token_app.command("remove")
@handle_errors
def remove_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.")],
    assignments: Assignments = None,
) -> None:
    """Take a token back; it is refused from now on."""
    _tokens(assignments)[0].remove(name)
    print_note(f"the token of {name} is refused from now on")


def _tokens(assignments: list[str] | None) -> tuple[AccessTokens, Path]:
    from suture.interfaces.web.access_tokens import AccessTokens

    home = load_command_settings(Path(), assignments, looks=True).settings.paths.home
    return AccessTokens(home), home


@handle_errors
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
    assignments: Assignments = None,
) -> None:
    """Serve the web page to this machine, until Ctrl-C: start runs, watch them, answer what they ask.

    Prints the address to open. It is `suture serve` for this machine alone. Closing the page stops nothing;
    what runs when the server is stopped goes on at its next start.
    """

    def announce(address: str) -> None:
        print_note("open this address in a browser; Ctrl-C stops the server")
        print_text(address)

    serve_at(LOOPBACK, port, root or (Path(),), model, assignments, announce)
