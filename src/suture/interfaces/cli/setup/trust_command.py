"""`suture trust`: show what a project's own files would set, and let the user allow it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import Json, require_project_folder
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_answer,
    print_json,
    print_note,
    print_prompt,
    print_text,
    stdin_is_terminal,
)


@handle_errors
def trust(
    project: Annotated[Path, Argument(metavar="PROJECT", help="The project's folder.")] = Path(),
    yes: Annotated[bool, Option("--yes", help="Trust the project without asking.")] = False,
    list_projects: Annotated[bool, Option("--list", help="List the trusted projects.")] = False,
    revoke: Annotated[bool, Option("--revoke", help="Revoke the trust.")] = False,
    as_json: Json = False,
) -> None:
    """Allow a project's own suture.toml, .env and prompts to set more than harmless settings.

    Shows what they would set, with the old and the new values, and asks. The trust ends when one of these
    files changes.
    """
    if [yes, list_projects, revoke].count(True) > 1:
        raise UsageError("--yes, --list and --revoke exclude each other", remedy="use one of them")
    if list_projects:
        _print_trusted_projects(as_json=as_json)
    elif revoke:
        _revoke_trust(project, as_json=as_json)
    else:
        _confirm_trust(project, yes=yes, as_json=as_json)


def _print_trusted_projects(*, as_json: bool) -> None:
    from suture.core.settings import is_trusted, load_settings, trusted_projects

    home = load_settings(Path(), read_only=True).settings.paths.home
    rows = []
    for folder in trusted_projects(home):
        try:
            is_current = is_trusted(home, Path(folder))
            state = "trusted" if is_current else "no longer trusted: its files have changed"
        except UsageError as fault:
            state = fault.message
        rows.append((folder, state))
    projects = [{"project": folder, "state": state} for folder, state in rows]
    print_answer(projects, format_table(rows) or "no project is trusted", as_json=as_json)


def _revoke_trust(project: Path, *, as_json: bool) -> None:
    from suture.core.settings import load_settings, revoke_trust

    was_trusted = revoke_trust(load_settings(Path(), read_only=True).settings.paths.home, project)
    text = "the project is no longer trusted" if was_trusted else "the project was not trusted"
    print_answer({"project": str(project.resolve()), "revoked": was_trusted}, text, as_json=as_json)


def _confirm_trust(project: Path, *, yes: bool, as_json: bool) -> None:
    from suture.core.settings import compute_project_digest, find_requested_settings, trust_project

    require_project_folder(project)
    # Computed before the files are read to be shown: a change between the two is then noticed below.
    digest = compute_project_digest(project)
    home, requested = find_requested_settings(project)
    if not requested:
        text = "there is nothing to trust: the project's files set nothing beyond harmless settings"
        print_answer(
            {"project": str(project.resolve()), "settings": [], "trusted": False}, text, as_json=as_json
        )
        return
    rows = [(setting.key, setting.before, setting.after, setting.origin) for setting in requested]
    table = format_table([("setting", "now", "if trusted", "from"), *rows])
    if not as_json:
        print_text(table)
    elif not yes:  # nobody can answer without seeing the settings; stdout is for the JSON alone
        for line in table.splitlines():
            print_note(line)
    if not yes and not _ask_confirmation(project):
        raise UsageError(
            "the project was not trusted", remedy="your own settings need no trust: suture config show"
        )
    if compute_project_digest(project) != digest:
        raise UsageError(
            "the project's files have changed meanwhile, so it was not trusted", remedy="run it again"
        )
    trust_project(home, project, digest)
    if as_json:
        settings = [vars(setting) for setting in requested]
        print_json({"project": str(project.resolve()), "settings": settings, "trusted": True})
    else:
        print_note("trusted, until one of these files changes")


def _ask_confirmation(project: Path) -> bool:
    if not stdin_is_terminal():
        raise UsageError("cannot ask without a terminal", remedy="check the settings above, then use --yes")
    print_prompt(
        f"Let Suture use these settings of {project.resolve().name!r}, until its files change? [y/N] "
    )
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False
