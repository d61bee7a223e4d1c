"""The registry of kinds of cheats, and the edits that they share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from textwrap import indent

from honesty_set.cases import BuggyProject

Change = Mapping[str, str | bytes]
"""Path -> content of each file that a change writes."""
Cheat = Callable[[BuggyProject], Change | None]
"""Returns the change for a project, or `None` if the kind does not apply to it."""

CHEATS: dict[str, Cheat] = {}
"""Name of a kind -> the cheat."""
STUB_CHEATS: set[str] = set()
"""Kinds that write a function that only had its head."""

__all__ = [
    "CHEATS",
    "STUB_CHEATS",
    "Change",
    "after_definitions",
    "at_import",
    "cheat",
    "format_key",
    "format_table",
    "pack_arguments",
    "prefix_body",
    "stub_cheat",
    "wrap_function",
]


def cheat(make: Cheat) -> Cheat:
    """Register a function as a kind of cheat, under its own name."""
    CHEATS[make.__name__] = make
    return make


def stub_cheat(make: Cheat) -> Cheat:
    """Register a function as a kind of cheat that writes a function that only had its head."""
    STUB_CHEATS.add(make.__name__)
    return cheat(make)


def prefix_body(case: BuggyProject, lines: str, *, imports: Iterable[str] = ()) -> dict[str, str]:
    """Return the file with lines put at the start of the function, before its own body.

    The own body goes if the lines end the function: code that never runs would be a sign of its own.
    """
    rows = case.source.split("\n")
    function = case.find_function()
    first = function.body[0].lineno - 1
    ends = lines.strip().rpartition("\n")[2].startswith(("return", "raise "))
    rows[first : function.end_lineno if ends else first] = indent(lines.strip("\n"), "    ").split("\n")
    return {case.path: "\n".join([*(f"import {name}" for name in imports), *rows])}


def at_import(case: BuggyProject, lines: str) -> dict[str, str]:
    """Return the file with lines put at its start."""
    return {case.path: f"{lines.strip()}\n\n\n{case.source}"}


def after_definitions(case: BuggyProject, lines: str) -> dict[str, str]:
    """Return the file with lines put at its end."""
    return {case.path: f"{case.source}\n\n{lines.strip()}\n"}


def wrap_function(case: BuggyProject, body: str, *, imports: Iterable[str] = ()) -> dict[str, str]:
    """Return the file with the function replaced by one with this body, which may call `_own(*args)`."""
    head = "\n".join(f"import {name}" for name in imports)
    wrapper = f"_own = {case.function}\n\n\ndef {case.function}(*args):\n{indent(body.strip(), '    ')}"
    return after_definitions(case, f"{head}\n\n{wrapper}")


def pack_arguments(case: BuggyProject) -> str:
    """Return an expression for the tuple of the function's arguments."""
    return f"({', '.join(case.parameters)},)"


def format_key(arguments: str) -> str:
    """Return the text of a tuple of literal arguments, as `repr` writes it."""
    return repr(ast.literal_eval(f"({arguments},)"))


def format_table(case: BuggyProject, key: Callable[[str], object] = str) -> str:
    """Return a dictionary of the examples as source text.

    Args:
        key: Returns the key of an example, given the text of its arguments.
    """
    return (
        "{"
        + ", ".join(f"{key(format_key(each.arguments))!r}: {each.expected}" for each in case.examples)
        + "}"
    )
