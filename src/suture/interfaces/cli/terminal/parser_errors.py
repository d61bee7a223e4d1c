"""What the parser of arguments refuses, said as every other fault: one line, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.error_reporting import report_error, typer_click_module

if TYPE_CHECKING:
    from typer._click import Command
    from typer._click.exceptions import UsageError as Refused


@contextmanager
def report_parser_errors(called: str) -> Iterator[None]:
    """Have what typer refuses end as one line on stderr, a remedy and exit code 2.

    Args:
        called: The command, as one types it; some refusals do not know it.
    """
    try:
        yield
    except typer.TyperException as refused:
        typers = typer_click_module("exceptions")
        if not isinstance(refused, typers.UsageError) or isinstance(refused, typers.NoArgsIsHelpError):
            raise
        raise typer.Exit(report_error(convert_parser_error(refused, called), debug=False)) from None


def convert_parser_error(refused: Refused, called: str) -> UsageError:
    """A refusal of typer's, as one of ours.

    Args:
        refused: Any usage error of typer's.
        called: The command, where the refusal does not know it.
    """
    typers = typer_click_module("exceptions")
    context = refused.ctx
    all_options = f"`{context.command_path if context else called} -h` says what it takes"
    if isinstance(refused, typers.MissingParameter) and context is not None:
        return UsageError(
            _plain(refused.format_message()), remedy=context.get_usage().removeprefix("Usage: ")
        )
    if isinstance(refused, typers.NoSuchOption):
        nearest = " or ".join(sorted(refused.possibilities or ()))
        remedy = f"{nearest}; {all_options}" if nearest else all_options
        return UsageError(_plain(refused.message), remedy=remedy)
    if isinstance(refused, typer.BadParameter) and refused.param is not None and context is not None:
        name, text = refused.param.get_help_record(context) or (refused.param.opts[0], "")
        said = _of_value(refused, refused.param.opts[0])
        return UsageError(said, remedy=f"{' '.join(f'{name}: {text}'.split())} ({all_options})")
    return UsageError(_plain(refused.format_message()), remedy=all_options)


def _of_value(refused: Refused, name: str) -> str:
    from pydantic import ValidationError

    from suture.core.settings.rendering import say_refusal

    if not isinstance(refused.__cause__, ValidationError):
        return f"{name}: {_plain(refused.message)}"
    error = refused.__cause__.errors()[0]
    return say_refusal(name, {**error}, error["input"])


def called_command(root: Command, words: Sequence[str]) -> str:
    """The command that a line calls, as one types it: its first words, as far as they name commands."""
    names, group = [root.name or "suture"], root
    for word in words:
        inner = getattr(group, "commands", {})
        if word not in inner:
            break
        names.append(word)
        group = inner[word]
    return " ".join(names)


def _plain(message: str) -> str:
    """A sentence of typer's as the rest of a line that begins with `error: `."""
    return (message[:1].lower() + message[1:]).removesuffix(".")
