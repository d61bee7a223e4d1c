"""The program `suture` and its commands. Only wiring: each command lives in a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from suture.cli.bench import bench_app
from suture.cli.commands.apply import apply
from suture.cli.commands.completion import completion
from suture.cli.commands.config import config_app
from suture.cli.commands.doctor import doctor
from suture.cli.commands.fork import fork
from suture.cli.commands.heal import heal
from suture.cli.commands.history import history
from suture.cli.commands.init import init
from suture.cli.commands.models import models_app
from suture.cli.commands.prompts import prompts_app
from suture.cli.commands.quality import quality
from suture.cli.commands.recipes import recipes_app
from suture.cli.commands.replay import replay, resume
from suture.cli.commands.review import review
from suture.cli.commands.run import run
from suture.cli.commands.show import show
from suture.cli.commands.trust import trust
from suture.cli.commands.undo import undo
from suture.cli.commands.verify import verify

app = typer.Typer(
    name="suture",
    help="Write or repair code in a sandbox until tests that can be trusted pass.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 healed, or nothing to heal; 1 not healed; 2 usage; 3 something is missing; "
        "4 budget spent; 5 waiting for a person; 6 a fault of the machinery; 130 cancelled."
    ),
)
app.command()(run)
app.command()(heal)
app.command()(replay)
app.command()(resume)
app.command()(review)
app.command()(history)
app.command()(show)
app.command()(fork)
app.command()(quality)
app.command()(verify)
app.command()(apply)
app.command()(undo)
app.command()(doctor)
app.command()(init)
app.command()(trust)
app.command()(completion)
app.add_typer(bench_app)
app.add_typer(models_app)
app.add_typer(prompts_app)
app.add_typer(recipes_app)
app.add_typer(config_app)


def print_version(wanted: bool) -> None:
    """Print the version and end, where `wanted`."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"suture {version('suture')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Write or repair code in a sandbox until tests that can be trusted pass."""
