"""The program `suture`: what it can do, and which command lives in which file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from suture.interfaces.cli.terminal.refusals import called_command, refusals_in_our_words

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Work": {
        "heal": "Repair a project until its tests pass; print the diff.",
        "watch": "Heal a project again with each change of its files.",
        "run": "Write new code until its checks pass; print the code.",
        "apply": "Write a healed run's change into your files.",
        "undo": "Take back what was applied or committed.",
        "review": "See what a waiting run asks, and answer it.",
        "resume": "Go on with a run that waits or was stopped.",
        "ci": "Heal a red pipeline: heal, deliver.",
    },
    "Look back": {
        "show": "Tell a run step by step.",
        "history": "List the runs, newest first.",
        "metrics": "Add up all runs: pass rate, seconds, tokens, errors.",
        "verify": "Check a healed run's certificate again, without a model.",
        "replay": "Do a run again with its recorded replies.",
        "fork": "Start a new run from a step of another one.",
        "quality": "Measure accepted code: complexity, lint, security.",
        "db": "The database of all runs: check, rebuild, share.",
        "memory": "What runs have learned: list, search, show, share.",
    },
    "Set up": {
        "doctor": "Say what is there, what is missing, how to get it.",
        "self-check": "The same, and heal a small program to see that it works.",
        "init": "Write a suture.toml with the test command found.",
        "config": "Show and change settings.",
        "trust": "Let a project's own settings decide more.",
        "models": "The embedded models: list, pull, serve, path, rm.",
        "recipes": "Ways to go about a task: list, show.",
        "prompts": "What the models are told: list, show, diff, check.",
        "completion": "Print a script that completes commands in your shell.",
    },
    "Serve": {
        "ui": "The web page: start runs, watch them, answer them.",
        "serve": "A service for other programs: REST and events.",
        "mcp": "Tools for other agents, by the Model Context Protocol.",
        "acp": "An agent in your editor, by the Agent Client Protocol.",
        "lsp": "Failing tests and their repair in your editor.",
    },
    "Measure": {
        "bench": "Measure recipes and models on problems with hidden tests.",
    },
}
"""Each command with what it does in a line. `suture --help` loads none of them."""
GROUPS = {"ci", "config", "db", "memory", "models", "recipes", "prompts", "bench", "serve"}
FOLDERS = {"Work": "work", "Look back": "look_back", "Set up": "set_up", "Serve": "serving"}
"""Where the commands of a section lie below `suture.interfaces.cli.commands`."""
OTHER_FILES = {
    "undo": "suture.interfaces.cli.commands.work.apply",
    "resume": "suture.interfaces.cli.commands.look_back.replay",
    "self-check": "suture.interfaces.cli.commands.set_up.doctor",
    "ui": "suture.interfaces.cli.commands.serving.serve",
    "acp": "suture.interfaces.cli.commands.serving.editors",
    "lsp": "suture.interfaces.cli.commands.serving.editors",
    "bench": "suture.interfaces.cli.bench",
}
"""Commands that lie in the file of another one, or elsewhere."""


class CommandsByName(MutableMapping[str, "Command"]):
    """The commands, each imported when it is asked for: one costs as much as all of typer."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}
        self._names = [name for section in SECTIONS.values() for name in section]

    def __getitem__(self, name: str) -> Command:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = load_command(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        self._names.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def load_command(name: str) -> Command:
    """Import the file of a command and make the command."""
    section = next(title for title, commands in SECTIONS.items() if name in commands)
    word = name.replace("-", "_")
    module: Any = import_module(
        OTHER_FILES.get(name) or f"suture.interfaces.cli.commands.{FOLDERS[section]}.{word}"
    )
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if name in GROUPS:
        alone.add_typer(getattr(module, f"{name}_app"))
    else:
        alone.command(name)(getattr(module, word))
    return typer.main.get_group(alone).commands[name]


class Suture(TyperGroup):
    """The group of all commands, which knows them by name and loads the one that is called."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        self.commands = CommandsByName()

    def list_commands(self, ctx: Context) -> list[str]:
        """The names, in the order of the help."""
        return list(self.commands)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Context | None = None, **extra: Any
    ) -> Context:
        """Read the options before the command."""
        with refusals_in_our_words("suture"):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Context) -> Any:
        """Read the rest, and run the command."""
        with refusals_in_our_words(called_command(self, [*ctx._protected_args, *ctx.args])):
            return super().invoke(ctx)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the sections of the help."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(10), text) for name, text in commands.items()])


app = typer.Typer(
    name="suture",
    cls=Suture,
    help="Write or repair code in a sandbox until tests that can be trusted pass.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 healed, or nothing to heal; 1 not healed; 2 usage; 3 something is missing; "
        "4 budget spent; 5 waiting for a person; 6 a fault of the machinery; 7 refused by a gate of `ci`; "
        "130 cancelled."
    ),
)


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
