"""`suture trust`: what a project's own files would decide, and the user's word that they may."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import Json
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_json,
    print_note,
    print_text,
    stdin_is_terminal,
)
from suture.interfaces.narrative.plain_text import escape_unprintable

if TYPE_CHECKING:
    from suture.core.settings import RequestedSetting


@handle_errors
def trust(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="A project's folder.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", help="Trust it without being asked.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the projects that are trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Let a project's own suture.toml, .env and prompts decide more than what is harmless.

    Shows what they would set, from what to what, and asks. Trust ends when one of these files changes.
    """
    if [yes, listed, revoke].count(True) > 1:
        raise UsageError("--yes, --list and --revoke exclude each other", remedy="give one of them")
    if listed:
        _list(as_json)
    elif revoke:
        _revoke(project, as_json)
    else:
        _trust(project, yes, as_json)


def _list(as_json: bool) -> None:
    from suture.core.settings import is_trusted, load_settings, trusted_projects

    home = load_settings(Path(), looks=True).settings.paths.home
    rows = []
    for folder in trusted_projects(home):
        try:
            rows.append(
                (folder, "trusted" if is_trusted(home, Path(folder)) else "its files have changed since")
            )
        except UsageError as fault:
            rows.append((folder, fault.message))
    if as_json:
        print_json([{"project": folder, "state": state} for folder, state in rows])
    else:
        print_text(format_table(rows) or "no project is trusted")


def _revoke(project: Path, as_json: bool) -> None:
    from suture.core.settings import load_settings, revoke_trust

    there_was = revoke_trust(load_settings(Path(), looks=True).settings.paths.home, project)
    if as_json:
        print_json({"project": str(project.resolve()), "revoked": there_was})
    else:
        print_text("it is trusted no longer" if there_was else "it was not trusted")


def _trust(project: Path, yes: bool, as_json: bool) -> None:
    from suture.core.settings import digest_of_project, requested_settings, trust_project

    if not project.is_dir():
        raise UsageError(f"{str(project)!r} is no folder", remedy="name a project's folder")
    digest = digest_of_project(project)  # first: what is shown below is at least as new
    home, requested = requested_settings(project)
    if not requested:
        print_json(
            {"project": str(project.resolve()), "wishes": [], "trusted": False}
        ) if as_json else print_text(
            "there is nothing to trust: its files set nothing, or only what is harmless"
        )
        return
    if not as_json:
        print_text(_listed(requested))
    if not yes and not _asked():
        raise UsageError(
            "it was not trusted", remedy="settings of your own need no trust: suture config show"
        )
    if digest_of_project(project) != digest:
        raise UsageError("its files have changed meanwhile; it was not trusted", remedy="look again")
    trust_project(home, project, digest)
    if as_json:
        print_json(
            {"project": str(project.resolve()), "wishes": [vars(w) for w in requested], "trusted": True}
        )
    else:
        print_note("trusted, until one of these files changes")


def _listed(requested: tuple[RequestedSetting, ...]) -> str:
    rows = [("what", "now", "with trust", "from")]
    return format_table([*rows, *((w.key, w.before, w.after, w.origin) for w in requested)])


def _asked() -> bool:
    if not stdin_is_terminal():
        raise UsageError("nobody can be asked here", remedy="look at what it sets, then give --yes")
    try:
        return input(escape_unprintable("trust these settings? [y/N] ")).strip().lower() in ("y", "yes")
    except EOFError:
        return False
