"""How a command that fails ends: one line, the remedy, and the documented exit code."""

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

from suture.errors import Cancelled, PrerequisiteError, SutureError, UsageError

Debug = Annotated[bool, typer.Option("--debug", help="On a fault, print the traceback too.")]
DEBUG = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)


def handle_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that whatever it raises ends as one line on stderr and an exit code.

    The command gets `--debug` with that, which adds the traceback. A parameter of it that is a dataclass of
    options, which several commands share, is given to the parser as its fields.
    """
    parameters, groups = _as_parsed(command)

    @functools.wraps(command)
    def guarded(**given: Any) -> None:
        debug = given["debug"] if "debug" in parameters else given.pop("debug")
        try:
            for name, (group, names) in groups.items():
                given[name] = group(**{field: given.pop(field) for field in names})
            command(**given)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise  # typer ends these itself
        except KeyboardInterrupt:
            fault: BaseException = Cancelled("cancelled")
        except OSError as raised:
            # Any text may be given as a path, and a text that no file can be called is the user's to mend.
            too_long = raised.errno == errno.ENAMETOOLONG
            fault = UsageError(f"no file can be called {raised.filename!r:.200}") if too_long else raised
        except Exception as raised:
            fault = raised
        else:
            return
        raise typer.Exit(report_error(fault, debug=debug))

    # The parser reads these, and no names of the command's own module.
    vars(guarded)["__signature__"] = inspect.Signature([*(parameters | {"debug": DEBUG}).values()])
    guarded.__annotations__ = {}
    return guarded


def _as_parsed(
    command: Callable[..., None],
) -> tuple[dict[str, inspect.Parameter], dict[str, tuple[Any, tuple[str, ...]]]]:
    """A command's parameters as the parser is to see them, and which of them are gathered into what."""
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, tuple[Any, tuple[str, ...]]] = {}
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(one.annotation):
            group: Any = one.annotation
            inner = inspect.signature(group, eval_str=True).parameters
            groups[name] = group, tuple(inner)
            parameters |= inner
        else:
            parameters[name] = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return parameters, groups


def report_error(fault: BaseException, *, debug: bool) -> int:
    """Say what went wrong; answers the exit code."""
    from suture.interfaces.cli.terminal.terminal_output import print_note

    if isinstance(fault, ModuleNotFoundError) and not (fault.name or "suture").startswith("suture"):
        fault = _without_package(fault)
    if debug:
        import traceback

        for line in "".join(traceback.format_exception(fault)).rstrip().split("\n"):
            print_note(line)
    if isinstance(fault, SutureError):
        wanted = isinstance(fault, Cancelled)  # what the user asked for is no error
        text = fault.message if wanted else f"error: {fault.message}"
        print_note(collapse_whitespace(text), style=None if wanted else "red")
        if remedy := collapse_whitespace(fault.remedy) or _how_to_call(fault):
            print_note(f"  try: {remedy}")
    else:
        print_note(
            f"error: {type(fault).__name__}: {collapse_whitespace(str(fault)) or 'no message'}", style="red"
        )
        if not debug:
            print_note("  this is a fault in Suture; --debug shows where")
    return fault.exit_code if isinstance(fault, SutureError) else 6


def _without_package(fault: ModuleNotFoundError) -> PrerequisiteError:
    """What is missing, and the extra that brings it; a package that none brings is one that Suture needs."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    package = (fault.name or "").partition(".")[0]
    try:
        needed = map(Requirement, requires("suture") or ())
    except PackageNotFoundError:  # from a source tree
        needed = map(Requirement, ())
    extras = [
        found[1]
        for one in needed
        if one.name.lower().replace("-", "_") == package.lower()
        and (found := re.search(r"extra == ['\"](\w+)['\"]", str(one.marker or "")))
        and found[1] != "all"
    ]
    extra = f"[{extras[0]}]" if extras else ""
    missing = PrerequisiteError(f"this needs the package {package!r}", remedy=f'pip install "suture{extra}"')
    return missing.with_traceback(fault.__traceback__)


def _how_to_call(fault: SutureError) -> str:
    """What is to be done about input that is wrong, where the fault itself does not say."""
    context = (
        typer_click_module("globals").get_current_context(silent=True)
        if isinstance(fault, UsageError)
        else None
    )
    return f"`{context.command_path} -h` says what it takes" if context else ""


def collapse_whitespace(text: str) -> str:
    """Text with its line ends and runs of blanks made single blanks."""
    return " ".join(text.split())


def typer_click_module(module: str) -> Any:
    """A module of the click that typer is built on: the package of this name, or typer's own copy of it.

    Typer has no public name for it and changed which of the two it is; a fault of its knows where it lies.
    """
    return import_module(f"{typer.BadParameter.__module__.rpartition('.')[0]}.{module}")
