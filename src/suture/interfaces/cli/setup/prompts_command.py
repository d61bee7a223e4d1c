"""`suture prompts` and `suture recipes`: the prompts of the models, and the available strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_answer,
    print_json,
    print_note,
    print_raw,
    print_text,
)

if TYPE_CHECKING:
    from suture.agents import PromptBook

prompts_app = typer.Typer(
    name="prompts", help="Show the prompts of the models: list, show, diff, check.", no_args_is_help=True
)
recipes_app = typer.Typer(
    name="recipes", help="Show the available strategies: list, show.", no_args_is_help=True
)

Name = Annotated[str, Argument(metavar="NAME", help="A role; see `suture prompts list`.")]
Project = Annotated[Path, Option("--project", metavar="FOLDER", help="The project whose own prompts apply.")]


def open_prompt_book(project: Path, assignments: list[str] | None) -> PromptBook:
    """Return the prompts that a run in a trusted project would use."""
    from suture.agents import PromptBook
    from suture.core.settings import PROMPTS_FOLDER, project_prompts

    paths = load_command_settings(project, assignments, read_only=True).settings.paths
    project_folder = project / PROMPTS_FOLDER
    if paths.prompts is None and project_folder.is_dir() and project_prompts(paths.home, project) is None:
        print_note("runs use the project's own prompts only if the project is trusted: suture trust")
    return PromptBook(paths.prompts or project_folder)


@prompts_app.command("list")
@handle_errors
def list_prompts(project: Project = Path(), assignments: Assignments = None, as_json: Json = False) -> None:
    """List the roles that have a prompt, with version, hash and source."""
    from suture.agents import packaged_prompt_names

    book = open_prompt_book(project, assignments)
    prompts = [book.load(name) for name in packaged_prompt_names()]
    values = [{"name": p.name, "version": p.version, "hash": p.hash, "source": p.source} for p in prompts]
    rows = [(p.name, f"version {p.version}", p.hash[:12], p.source) for p in prompts]
    print_answer(values, format_table(rows), as_json=as_json)


@prompts_app.command("show")
@handle_errors
def show_prompt(
    name: Name,
    packaged: Annotated[
        bool, Option("--packaged", help="The packaged prompt, even if the project has its own.")
    ] = False,
    project: Project = Path(),
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Print a prompt in the format of a file in `.suture/prompts/`."""
    from suture.agents import packaged_prompt, prompt_to_dict, prompt_to_yaml

    prompt = packaged_prompt(name) if packaged else open_prompt_book(project, assignments).load(name)
    if as_json:
        print_json({**prompt_to_dict(prompt), "hash": prompt.hash, "source": prompt.source})
    else:
        print_raw(prompt_to_yaml(prompt))


@prompts_app.command()
@handle_errors
def diff(
    name: Name,
    other: Annotated[
        Path | None, Argument(metavar="FILE", help="A prompt file; default: the packaged prompt.")
    ] = None,
    project: Project = Path(),
    assignments: Assignments = None,
) -> None:
    """Compare the prompt that a project uses with the packaged prompt, or with a file."""
    from difflib import unified_diff

    from suture.agents import load_prompt, packaged_prompt, prompt_to_yaml

    current = open_prompt_book(project, assignments).load(name)
    base = load_prompt(other, name) if other else packaged_prompt(name)
    old, new = (prompt_to_yaml(prompt).splitlines(keepends=True) for prompt in (base, current))
    changes = "".join(unified_diff(old, new, fromfile=base.source, tofile=current.source))
    if changes:
        print_raw(changes, diff=True)
    else:
        print_note(f"{base.source} and {current.source} are the same")


@prompts_app.command()
@handle_errors
def check(project: Project = Path(), assignments: Assignments = None, as_json: Json = False) -> None:
    """Check the project's own prompts as a run would; exits with 2 if one of them is unusable."""
    from suture.agents import packaged_prompt_names
    from suture.errors import UsageError

    book = open_prompt_book(project, assignments)
    faults = [
        f"{path}: no role uses it; the roles are {', '.join(packaged_prompt_names())}"
        for path in book.unknown_files()
    ]
    project_sources: list[str] = []
    for name in packaged_prompt_names():
        try:
            source = book.load(name).source
        except UsageError as fault:
            faults.append(str(fault))
        else:
            if source != "packaged":
                project_sources.append(source)
    if as_json:
        print_json({"ok": not faults, "own": project_sources, "faults": faults})
    else:
        for message in faults:
            print_note(message, style="red")
        if not faults:
            lines = [f"{source}: ok" for source in project_sources]
            print_text("\n".join(lines) or "the project has no prompts of its own")
    if faults:
        raise typer.Exit(2)


@recipes_app.command("list")
@handle_errors
def list_recipes_command(as_json: Json = False) -> None:
    """List the recipes that come with Suture, and those of installed packages."""
    from suture.loop import describe_recipe, list_installed_recipes, list_recipes

    recipes = [describe_recipe(name) for name in (*list_recipes(), *list_installed_recipes())]
    table = format_table([(recipe.name, recipe.summary) for recipe in recipes])
    print_answer([recipe.model_dump(mode="json") for recipe in recipes], table, as_json=as_json)


@recipes_app.command("show")
@handle_errors
def show_recipe(
    name: Annotated[str, Argument(metavar="NAME", help="A recipe, or your own TOML file.")],
    as_json: Json = False,
) -> None:
    """Print every key of a recipe with its value, including defaults."""
    from suture.loop import describe_recipe, render_recipe_toml

    recipe = describe_recipe(name)
    if as_json:
        print_json(recipe.model_dump(mode="json"))
    else:
        print_raw(render_recipe_toml(recipe))
