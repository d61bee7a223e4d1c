"""What it takes to call one function of a language from a process that holds nothing else.

Values cross as JSON-plus: what JSON has of scalars, and a list `[tag, ...]` for all else. The tags are
`list`, `object` (pairs with names as keys), `map` (pairs), `set`, `undefined`, `number` (`NaN`, `Infinity`,
`-Infinity`, `-0`), `bigint`, `date` (milliseconds), `regexp`, `typed` (name, numbers), `error` (name,
message; `null` for any), `results` (of a function with several) and `foreign` (no data, which equals
nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

JsonPlus = Any
"""A JSON-plus value."""
ReadValues = Callable[[str], tuple[JsonPlus, ...] | None]


@dataclass(frozen=True, kw_only=True)
class CallSite:
    """Where the function is that is called.

    Attributes:
        module: The path of its file.
        name: Its name.
        folder: Of a project, the one that is ours.
        files: The project with the candidate in it.
    """

    module: str
    name: str
    folder: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class CallDriver:
    """A language's own program that loads a candidate and answers calls.

    Attributes:
        read: The values of literals with commas between them; `None` where one is no literal.
        files: What lies beside the candidate: path -> content.
        argv: What starts it. It talks on descriptors 3 and 4.
        null: How the language writes its null.
        raises: How a person writes that a call fails.
        explain_unsupported: Why a function as a statement shows it cannot be called so; empty where it can.
        compiles: Whether a candidate is compiled first, which takes as long as a run of tests may.
        missing_remedy: What is missing where the driver says that it cannot load the language; it is asked only then.
        typed: Whether types are the function's own, and a literal gives values alone: nil is an empty list, a
            field that is left out is zero, and there may be several results, the last of them an error.
    """

    read: ReadValues
    files: Callable[[CallSite], Mapping[str, bytes]]
    argv: Callable[[CallSite], Sequence[str]]
    null: str
    raises: str
    explain_unsupported: Callable[[str, str], str] = lambda statement, name: ""
    compiles: bool = False
    missing_remedy: str = ""
    typed: bool = False


class NotALiteral(Exception):
    """It is no literal that we read."""


def text_of(node: Node) -> str:
    """What stands there."""
    return (node.text or b"").decode("utf-8", "surrogatepass")


def values_of(nodes: Iterable[Node], value_of: Callable[[Node], JsonPlus]) -> tuple[JsonPlus, ...] | None:
    """The values of literals, comments left out; `None` where one is none."""
    try:
        return tuple(value_of(node) for node in nodes if node.type != "comment")
    except (NotALiteral, ValueError, SyntaxError, OverflowError, RecursionError):
        return None
