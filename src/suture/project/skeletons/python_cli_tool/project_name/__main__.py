"""The command line: each public function of `commands.py` is a command."""

from __future__ import annotations

import argparse
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from project_name import commands


def find_commands() -> dict[str, Callable[..., Any]]:
    """Return the commands by name, in the order of their definition."""
    functions = [value for value in vars(commands).values() if inspect.isfunction(value)]
    return {
        function.__name__.rstrip("_").replace("_", "-"): function
        for function in functions
        if function.__module__ == commands.__name__ and not function.__name__.startswith("_")
    }


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. A single command needs no name."""
    parser = argparse.ArgumentParser(prog="project_name", description=_escape(commands.__doc__))
    found = find_commands()
    if len(found) == 1:
        _add_parameters(parser, *found.values())
        return parser
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, function in found.items():
        text = _escape(inspect.getdoc(function))
        _add_parameters(subparsers.add_parser(name, help=text, description=text), function)
    return parser


def _escape(text: str | None) -> str:
    return (text or "").replace("%", "%%")


def _add_parameters(parser: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    parser.set_defaults(_function=function)
    annotations = typing.get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = annotations.get(name)
        convert = annotation if annotation in (int, float) else str
        option = "--" + name.replace("_", "-")
        if parameter.kind is parameter.VAR_POSITIONAL:
            parser.add_argument(name, nargs="*", type=convert)
        elif parameter.default is parameter.empty:
            parser.add_argument(name, type=convert)
        elif isinstance(parameter.default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=parameter.default)
        else:
            parser.add_argument(option, dest=name, type=convert, default=parameter.default)


def _call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    positional: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += values.pop(name)
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(values.pop(name))
    return function(*positional, **values)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = build_parser()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == list(find_commands()):  # the name of a single command
        del words[0]
    values = vars(parser.parse_args(words))
    function = values.pop("_function", None)
    if function is None:
        parser.print_help()
        return 0
    try:
        result = _call(function, values)
    except (ValueError, IndexError, OSError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    lines = result if isinstance(result, (list, tuple)) else [] if result is None else [result]
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
