"""Report errors of the argument parser like every other error: one line and a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.error_reporting import report_error, typer_click_module

if TYPE_CHECKING:
    from typer._click import Command
    from typer._click.exceptions import UsageError as TyperUsageError


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
    all_options = f"`{context.command_path if context else called} -h` lists its options"
    if isinstance(error, click.MissingParameter) and context is not None:
        return UsageError(
            _as_clause(error.format_message()), remedy=context.get_usage().removeprefix("Usage: ")
        )
    if isinstance(error, click.NoSuchOption):
        similar = " or ".join(sorted(error.possibilities or ()))
        remedy = f"{similar}; {all_options}" if similar else all_options
        return UsageError(_as_clause(error.message), remedy=remedy)
    if isinstance(error, typer.BadParameter) and error.param is not None and context is not None:
        name, text = error.param.get_help_record(context) or (error.param.opts[0], "")
        message = _value_error_message(error, error.param.opts[0])
        return UsageError(message, remedy=f"{' '.join(f'{name}: {text}'.split())} ({all_options})")
    return UsageError(_as_clause(error.format_message()), remedy=all_options)


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
