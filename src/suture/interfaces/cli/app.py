"""The program `suture`: its commands, the help page, and where each command is implemented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer import Option
from typer.core import TyperGroup

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_help import CommandWithExamples
from suture.interfaces.cli.terminal.error_reporting import report_error, typer_click_module

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.exceptions import UsageError as TyperUsageError


SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Repair": {
        "heal": ("Repair a project until its tests pass; print the diff.", "repair.heal_command:heal"),
        "judge": ("Judge a change that anybody made.", "repair.judge_command:judge"),
        "watch": ("Heal a project again whenever its files change.", "repair.watch_command:watch"),
        "run": ("Write new code until its checks pass; print the code.", "repair.run_command:run"),
        "apply": ("Apply the change of a healed run to your files.", "repair.apply_command:apply"),
        "undo": ("Revert what was applied or committed.", "repair.apply_command:undo"),
        "review": ("Show the question that a waiting run asks.", "repair.review_command:review"),
        "resume": ("Continue a run that waits or was stopped.", "inspection.replay_command:resume"),
        "ci": ("Heal a failing CI pipeline: heal, deliver.", "repair.ci_command:ci_app"),
    },
    "Inspect": {
        "show": ("Show a run step by step.", "inspection.show_command:show"),
        "history": ("List the runs, newest first.", "inspection.history_command:history"),
        "metrics": (
            "Summarize all runs: pass rate, seconds, tokens, errors.",
            "inspection.history_command:metrics",
        ),
        "verify": (
            "Verify a healed run's certificate again, without a model.",
            "inspection.verify_command:verify",
        ),
        "replay": ("Repeat a run with its recorded replies.", "inspection.replay_command:replay"),
        "fork": ("Start a new run from a step of another run.", "inspection.replay_command:fork"),
        "quality": (
            "Measure accepted code: complexity, lint, security.",
            "inspection.quality_command:quality",
        ),
        "db": ("Manage the database of all runs: check, rebuild, share.", "inspection.db_command:db_app"),
        "memory": (
            "Manage what runs have learned: list, search, show, share.",
            "inspection.memory_command:memory_app",
        ),
    },
    "Configure": {
        "doctor": (
            "Report what is installed, what is missing, how to get it.",
            "setup.doctor_command:doctor",
        ),
        "self-check": (
            "Run `doctor`, then heal a small program as a test.",
            "setup.doctor_command:self_check",
        ),
        "init": ("Write a suture.toml with the detected test command.", "setup.config_command:init"),
        "config": ("Show and change settings.", "setup.config_command:config_app"),
        "trust": ("Allow a project's own settings to decide more.", "setup.trust_command:trust"),
        "models": (
            "Manage the embedded models: list, pull, serve, path, rm.",
            "setup.models_command:models_app",
        ),
        "recipes": ("Show the available strategies: list, show.", "setup.prompts_command:recipes_app"),
        "prompts": (
            "Show the prompts of the models: list, show, diff, check.",
            "setup.prompts_command:prompts_app",
        ),
        "completion": (
            "Print a script for command completion in your shell.",
            "setup.config_command:completion",
        ),
    },
    "Serve": {
        "ui": ("Serve the web page: start runs, watch them, answer them.", "serving.serve_command:ui"),
        "serve": ("Serve other programs: REST and server-sent events.", "serving.serve_command:serve_app"),
        "mcp": ("Serve tools to other agents (Model Context Protocol).", "serving.protocol_commands:mcp"),
        "acp": ("Be an agent in your editor (Agent Client Protocol).", "serving.protocol_commands:acp"),
        "lsp": ("Show failing tests and their repair in your editor.", "serving.protocol_commands:lsp"),
    },
    "Measure": {
        "bench": ("Measure recipes and models on problems with hidden tests.", "bench:bench_app"),
    },
}
"""The sections of the help page. Each command has a pair `(help, implementation)`.

The implementation is `module:name` of the command's function or group, relative to `suture.interfaces.cli`. The
help is repeated here, because `suture --help` imports no command.
"""
MAIN_COMMANDS = ("heal", "judge", "run", "apply", "undo", "show", "ui", "doctor")
"""The commands that the help page explains; it only names the others."""
IMPLEMENTATIONS = {
    name: implementation for commands in SECTIONS.values() for name, (_, implementation) in commands.items()
}


class LazyCommands(Mapping[str, "Command"]):
    """The commands by name. Each is imported when it is looked up.

    Importing one command costs as much start-up time as typer itself.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._loaded:
            self._loaded[name] = load_command(name, IMPLEMENTATIONS[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(IMPLEMENTATIONS)

    def __len__(self) -> int:
        return len(IMPLEMENTATIONS)

    def __contains__(self, name: object) -> bool:  # the inherited method would import the command
        return name in IMPLEMENTATIONS


def load_command(name: str, implementation: str) -> Command:
    """Import the module of a command and build the command."""
    module, _, attribute = implementation.partition(":")
    function_or_group: Any = getattr(import_module(f"suture.interfaces.cli.{module}"), attribute)
    wrapper = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(function_or_group, typer.Typer):
        wrapper.add_typer(function_or_group)
    else:
        wrapper.command(name, cls=CommandWithExamples)(function_or_group)
    return typer.main.get_group(wrapper).commands[name]


class SutureGroup(TyperGroup):
    """The top-level command group. It imports only the command that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast("MutableMapping[str, Command]", LazyCommands())  # typer only reads it

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
        """Write the commands that most people need with their descriptions, and the names of the others."""
        texts = {name: text for commands in SECTIONS.values() for name, (text, _) in commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name.ljust(9), texts[name]) for name in MAIN_COMMANDS])
        with formatter.section("More commands"):
            formatter.write_dl(
                [
                    (title.ljust(9), ", ".join(name for name in commands if name not in MAIN_COMMANDS))
                    for title, commands in SECTIONS.items()
                ]
            )


app = typer.Typer(
    name="suture",
    cls=SutureGroup,
    help="Repair code, write code, and judge changes, in a sandbox, by trusted tests.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "`suture COMMAND -h` explains a command. Exit codes: 0 healed, nothing to heal, or accepted; "
        "1 not healed, or rejected; 2 usage error; 3 missing prerequisite; "
        "4 budget exhausted; 5 waiting for a person; 6 internal or infrastructure error, or not comparable; "
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
        bool, Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Repair code, write code, and judge changes, in a sandbox, by trusted tests."""


@contextmanager
def report_parser_errors(called: str) -> Iterator[None]:
    """Turn typer's errors into one line on stderr, a remedy and exit code 2.

    Args:
        called: The command as the user types it, for errors that do not know their command.
    """
    try:
        yield
    except typer.TyperException as error:
        click = typer_click_module("exceptions")
        if not isinstance(error, click.UsageError) or isinstance(error, click.NoArgsIsHelpError):
            raise
        raise typer.Exit(report_error(convert_parser_error(error, called), debug=False)) from None


def convert_parser_error(error: TyperUsageError, called: str) -> UsageError:
    """Return typer's usage error as one of Suture's; `called` is as in `report_parser_errors`."""
    click = typer_click_module("exceptions")
    context = error.ctx
    help_command = f"`{context.command_path if context else called} -h`"
    all_options = f"{help_command} lists its options"
    if type(error) is click.UsageError and context is not None and hasattr(context.command, "commands"):
        return UsageError(_as_clause(error.format_message()), remedy=f"{help_command} lists the commands")
    if isinstance(error, click.MissingParameter) and context is not None:
        return UsageError(
            _as_clause(error.format_message()), remedy=context.get_usage().removeprefix("Usage: ")
        )
    if isinstance(error, click.NoSuchOption):
        similar = _find_assignment(error.option_name, context) or " or ".join(
            sorted(error.possibilities or ())
        )
        remedy = f"{similar}; {all_options}" if similar else all_options
        return UsageError(_as_clause(error.message), remedy=remedy)
    if isinstance(error, typer.BadParameter) and error.param is not None and context is not None:
        name, text = error.param.get_help_record(context) or (error.param.opts[0], "")
        message = _value_error_message(error, error.param.opts[0])
        return UsageError(message, remedy=f"{' '.join(f'{name}: {text}'.split())} ({all_options})")
    return UsageError(_as_clause(error.format_message()), remedy=all_options)


def _find_assignment(name: str, context: Context | None) -> str:
    """Return how `--set` does what an option of other commands does; empty if the command or the option cannot."""
    from suture.interfaces.cli.terminal.command_options import RUN_SETTINGS

    setting = RUN_SETTINGS.get(name.removeprefix("--").replace("-", "_"), "")
    options = [option for param in context.command.params for option in param.opts] if context else []
    return f"--set {setting}=VALUE" if setting and "--set" in options else ""


def _value_error_message(error: TyperUsageError, name: str) -> str:
    from pydantic import ValidationError

    from suture.core.settings.rendering import describe_invalid_value

    if not isinstance(error.__cause__, ValidationError):
        return f"{name}: {_as_clause(error.message)}"
    detail = error.__cause__.errors()[0]
    return describe_invalid_value(name, {**detail}, detail["input"])


def called_command(root: Command, words: Sequence[str]) -> str:
    """Return the command that a command line calls: its first words, as far as they name commands and groups."""
    names, group = [root.name or "suture"], root
    for word in words:
        commands = getattr(group, "commands", {})
        if word not in commands:
            break
        names.append(word)
        group = commands[word]
    return " ".join(names)


def _as_clause(message: str) -> str:
    """Return a sentence of typer as the rest of a line that starts with `error: `."""
    return (message[:1].lower() + message[1:]).removesuffix(".")
