"""Types for calling a single function of a language from a process of its own, and for reading literals.

Values are transferred as JSON-plus: JSON's scalars, and a list `[tag, ...]` for everything else. The tags
are `list`, `object` (pairs with names as keys), `map` (pairs), `set`, `undefined`, `number` (`NaN`,
`Infinity`, `-Infinity`, `-0`), `bigint`, `date` (milliseconds), `regexp`, `typed` (name, numbers), `error`
(name, message; `null` for any), `results` (of a function with several) and `foreign` (no data, which equals
nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

JsonPlus = Any
"""A JSON-plus value."""
ReadValues = Callable[[str], tuple[JsonPlus, ...] | None]


@dataclass(frozen=True, kw_only=True)
class CallSite:
    """Where the function to call is.

    Attributes:
        module: Path of its file.
        name: Name of the function.
        folder: Folder of Suture's files within the project.
        files: The project, including the candidate.
    """

    module: str
    name: str
    folder: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class CallDriver:
    """A program of a language that loads a candidate and answers calls.

    Attributes:
        read_literals: Returns the values of comma-separated literals; `None` if one is not a literal.
        files: Returns the files to put next to the candidate, path -> content.
        argv: Returns the command that starts it. It communicates on file descriptors 3 and 4.
        null: The null value of the language.
        raises: How people say that a call fails.
        explain_unsupported: Returns why a function of the statement cannot be called; empty if it can.
        compiles: Whether a candidate is compiled first, which may take as long as a test run.
        missing_remedy: What is missing if the driver reports that it cannot load the language.
        statically_typed: Whether the function's types give a literal its meaning, as in Go: nil is an empty
            list, a missing field is zero, and there may be several results, the last of them an error.
    """

    read_literals: ReadValues
    files: Callable[[CallSite], Mapping[str, bytes]]
    argv: Callable[[CallSite], Sequence[str]]
    null: str
    raises: str
    explain_unsupported: Callable[[str, str], str] = lambda statement, name: ""
    compiles: bool = False
    missing_remedy: str = ""
    statically_typed: bool = False


class NotALiteral(Exception):
    """The syntax is not a literal that Suture reads."""


def read_driver_program(name: str) -> bytes:
    """Return a driver program of this package."""
    return resources.files(__package__).joinpath(name).read_bytes()


def node_text(node: Node) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("utf-8", "surrogatepass")


def read_literals(nodes: Iterable[Node], value_of: Callable[[Node], JsonPlus]) -> tuple[JsonPlus, ...] | None:
    """Return the values of literals, without comments; `None` if one is not a literal."""
    try:
        return tuple(value_of(node) for node in nodes if node.type != "comment")
    except (NotALiteral, ValueError, SyntaxError, OverflowError, RecursionError):
        return None
