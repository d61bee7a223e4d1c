"""The program `suture`: its commands, the help page, and where each command is implemented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from suture.interfaces.cli.terminal.parser_errors import called_command, report_parser_errors

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Repair and write": {
        "heal": "Repair a project until its tests pass; print the diff.",
        "watch": "Heal a project again whenever its files change.",
        "run": "Write new code until its checks pass; print the code.",
        "apply": "Apply the change of a healed run to your files.",
        "undo": "Revert what was applied or committed.",
        "review": "Show the question that a waiting run asks.",
        "resume": "Continue a run that waits or was stopped.",
        "ci": "Heal a failing CI pipeline: heal, deliver.",
    },
    "Inspect": {
        "show": "Show a run step by step.",
        "history": "List the runs, newest first.",
        "metrics": "Summarize all runs: pass rate, seconds, tokens, errors.",
        "verify": "Verify a healed run's certificate again, without a model.",
        "replay": "Repeat a run with its recorded replies.",
        "fork": "Start a new run from a step of another run.",
        "quality": "Measure accepted code: complexity, lint, security.",
        "db": "Manage the database of all runs: check, rebuild, share.",
        "memory": "Manage what runs have learned: list, search, show, share.",
    },
    "Configure": {
        "doctor": "Report what is installed, what is missing, how to get it.",
        "self-check": "Run `doctor`, then heal a small program as a test.",
        "init": "Write a suture.toml with the detected test command.",
        "config": "Show and change settings.",
        "trust": "Allow a project's own settings to decide more.",
        "models": "Manage the embedded models: list, pull, serve, path, rm.",
        "recipes": "Show the available strategies: list, show.",
        "prompts": "Show the prompts of the models: list, show, diff, check.",
        "completion": "Print a script for command completion in your shell.",
    },
    "Serve": {
        "ui": "Serve the web page: start runs, watch them, answer them.",
        "serve": "Serve other programs: REST and server-sent events.",
        "mcp": "Serve tools to other agents (Model Context Protocol).",
        "acp": "Be an agent in your editor (Agent Client Protocol).",
        "lsp": "Show failing tests and their repair in your editor.",
    },
    "Measure": {
        "bench": "Measure recipes and models on problems with hidden tests.",
    },
}
"""The sections of the help page with the help of each command. `suture --help` imports no command."""
TARGETS: Mapping[str, str] = {
    "heal": "repair.heal_command:heal",
    "watch": "repair.watch_command:watch",
    "run": "repair.run_command:run",
    "apply": "repair.apply_command:apply",
    "undo": "repair.apply_command:undo",
    "review": "repair.review_command:review",
    "resume": "inspection.replay_command:resume",
    "ci": "repair.ci_command:ci_app",
    "show": "inspection.show_command:show",
    "history": "inspection.history_command:history",
    "metrics": "inspection.history_command:metrics",
    "verify": "inspection.verify_command:verify",
    "replay": "inspection.replay_command:replay",
    "fork": "inspection.replay_command:fork",
    "quality": "inspection.quality_command:quality",
    "db": "inspection.db_command:db_app",
    "memory": "inspection.memory_command:memory_app",
    "doctor": "setup.doctor_command:doctor",
    "self-check": "setup.doctor_command:self_check",
    "init": "setup.config_command:init",
    "config": "setup.config_command:config_app",
    "trust": "setup.trust_command:trust",
    "models": "setup.models_command:models_app",
    "recipes": "setup.prompts_command:recipes_app",
    "prompts": "setup.prompts_command:prompts_app",
    "completion": "setup.config_command:completion",
    "ui": "serving.serve_command:ui",
    "serve": "serving.serve_command:serve_app",
    "mcp": "serving.agent_commands:mcp",
    "acp": "serving.agent_commands:acp",
    "lsp": "serving.agent_commands:lsp",
    "bench": "bench:bench_app",
}
"""`module:name` of each command function or command group, relative to `suture.interfaces.cli`."""


class LazyCommands(MutableMapping[str, "Command"]):
    """The commands by name, each imported when it is looked up.

    Importing one command costs as much start-up time as typer itself.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}
        self._names = list(TARGETS)

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
    """Import the module of a command and build the command."""
    module, _, attribute = TARGETS[name].partition(":")
    implementation: Any = getattr(import_module(f"suture.interfaces.cli.{module}"), attribute)
    wrapper = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(implementation, typer.Typer):
        wrapper.add_typer(implementation)
    else:
        wrapper.command(name)(implementation)
    return typer.main.get_group(wrapper).commands[name]


class SutureGroup(TyperGroup):
    """The top-level command group, which imports only the command that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the command names in the order of the help page."""
        return list(self.commands)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Context | None = None, **extra: Any
    ) -> Context:
        """Parse the options before the command name."""
        with report_parser_errors("suture"):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Context) -> Any:
        """Parse the remaining arguments and run the command."""
        with report_parser_errors(called_command(self, [*ctx._protected_args, *ctx.args])):
            return super().invoke(ctx)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the sections of the help page."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(10), text) for name, text in commands.items()])


app = typer.Typer(
    name="suture",
    cls=SutureGroup,
    help="Repair or write code in a sandbox until trusted tests pass.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 healed, or nothing to heal; 1 not healed; 2 usage error; 3 missing prerequisite; "
        "4 budget exhausted; 5 waiting for a person; 6 internal or infrastructure error; "
        "7 refused by a gate of `ci`; 130 cancelled."
    ),
)


def print_version(requested: bool) -> None:
    """Print the version and exit, if `requested`."""
    if requested:
        from importlib.metadata import version

        typer.echo(f"suture {version('suture')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Repair or write code in a sandbox until trusted tests pass."""
