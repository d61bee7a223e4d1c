"""`suture recipes`: ways to go about a task, and what each of them may do."""

from __future__ import annotations

from typing import Annotated

import typer

from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Json
from suture.interfaces.cli.terminal.output import answer, answer_exactly, answer_json, table

recipes_app = typer.Typer(
    name="recipes",
    help="Ways to go about a task: list, show.",
    no_args_is_help=True,
)


@recipes_app.command("list")
@reports_faults
def list_all(as_json: Json = False) -> None:
    """List the recipes that come with Suture."""
    from suture.loop import describe_recipe, list_recipes

    found = [describe_recipe(name) for name in list_recipes()]
    if as_json:
        answer_json([recipe.model_dump(mode="json") for recipe in found])
    else:
        answer(table([(recipe.name, recipe.summary) for recipe in found]))


@recipes_app.command()
@reports_faults
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A recipe, or a TOML file of your own.")],
    as_json: Json = False,
) -> None:
    """Print every key of a recipe with its value, also those that its file leaves open."""
    from suture.loop import describe_recipe, recipe_as_toml

    recipe = describe_recipe(name)
    if as_json:
        answer_json(recipe.model_dump(mode="json"))
    else:
        answer_exactly(recipe_as_toml(recipe))
