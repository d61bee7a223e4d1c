"""End a failing command with one line, a remedy, and the documented exit code."""

from __future__ import annotations

import errno
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Option

from suture.errors import Cancelled, PrerequisiteError, SutureError, UsageError

Debug = Annotated[bool, Option("--debug", help="On an error, also print the traceback.")]
DEBUG = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
"""The parameter that `handle_errors` adds to a command without one of its own."""


def handle_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that every exception ends as one line on stderr and an exit code.

    The wrapper adds the option `--debug`, which prints the traceback too. A parameter whose type is a
    dataclass of options becomes one option for each of its fields.
    """
    parameters, groups = _expand_option_groups(command)

    @functools.wraps(command)
    def guarded(**arguments: Any) -> None:
        debug = arguments["debug"] if "debug" in parameters else arguments.pop("debug")
        try:
            for name, (group, fields) in groups.items():
                arguments[name] = group(**{field: arguments.pop(field) for field in fields})
            command(**arguments)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise  # typer ends these itself
        except KeyboardInterrupt:
            fault: BaseException = Cancelled("cancelled")
        except OSError as raised:
            # Users can pass any string as a path; a name that is too long for a file is a usage error.
            too_long = raised.errno == errno.ENAMETOOLONG
            fault = UsageError(f"the file name {raised.filename!r:.200} is too long") if too_long else raised
        except Exception as raised:
            fault = raised
        else:
            return
        raise typer.Exit(report_error(fault, debug=debug))

    # typer reads the signature, and would evaluate the annotations in the wrong module.
    vars(guarded)["__signature__"] = inspect.Signature([*(parameters | {"debug": DEBUG}).values()])
    guarded.__annotations__ = {}
    return guarded


def _expand_option_groups(
    command: Callable[..., None],
) -> tuple[dict[str, inspect.Parameter], dict[str, tuple[Any, tuple[str, ...]]]]:
    """Return `(parameters, groups)`: what the parser sees, and the class and fields of each option group."""
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, tuple[Any, tuple[str, ...]]] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(parameter.annotation):
            group: Any = parameter.annotation
            options = inspect.signature(group, eval_str=True).parameters
            groups[name] = group, tuple(options)
            parameters |= options
        else:
            parameters[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return parameters, groups


def report_error(fault: BaseException, *, debug: bool) -> int:
    """Print an error and its remedy; return the exit code."""
    from suture.interfaces.cli.terminal.terminal_output import print_note

    if isinstance(fault, ModuleNotFoundError) and not (fault.name or "suture").startswith("suture"):
        fault = _missing_package_error(fault)
    if debug:
        import traceback

        for line in "".join(traceback.format_exception(fault)).rstrip().split("\n"):
            print_note(line)
    if isinstance(fault, SutureError):
        is_cancelled = isinstance(fault, Cancelled)  # the user asked for it, so it is not an error
        text = fault.message if is_cancelled else f"error: {fault.message}"
        print_note(collapse_whitespace(text), style=None if is_cancelled else "red")
        if remedy := collapse_whitespace(fault.remedy) or _usage_hint(fault):
            print_note(f"  try: {remedy}")
    else:
        print_note(
            f"error: {type(fault).__name__}: {collapse_whitespace(str(fault)) or 'no message'}", style="red"
        )
        if not debug:
            print_note("  this is a bug in Suture; --debug shows where")
    return fault.exit_code if isinstance(fault, SutureError) else 6


def _missing_package_error(fault: ModuleNotFoundError) -> PrerequisiteError:
    """Return the error for a missing package, with the extra that installs it."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    from suture.core.installation import DISTRIBUTION, format_install_command

    package = (fault.name or "").partition(".")[0]
    try:
        requirements = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:  # running from a source tree without metadata
        requirements = ()
    extras = [
        extra[1]
        for requirement in map(Requirement, requirements)
        if requirement.name.lower().replace("-", "_") == package.lower()
        and (extra := re.search(r"extra == ['\"](\w+)['\"]", str(requirement.marker or "")))
        and extra[1] != "all"  # this extra contains the others, and would install far more than is needed
    ]
    remedy = format_install_command(extras[0] if extras else "")
    error = PrerequisiteError(f"this needs the package {package!r}", remedy=remedy)
    return error.with_traceback(fault.__traceback__)


def _usage_hint(fault: SutureError) -> str:
    """Return where to read about the command, if a usage error has no remedy of its own."""
    if not isinstance(fault, UsageError):
        return ""
    context = typer_click_module("globals").get_current_context(silent=True)
    return f"`{context.command_path} -h` lists its options" if context else ""


def collapse_whitespace(text: str) -> str:
    """Return a string with every run of whitespace replaced by one blank."""
    return " ".join(text.split())


def typer_click_module(module: str) -> Any:
    """Return a module of the click that typer is built on.

    Typer has no public name for it, and newer versions use their own copy instead of the package. The module
    of one of its exceptions tells which.
    """
    return import_module(f"{typer.BadParameter.__module__.rpartition('.')[0]}.{module}")
