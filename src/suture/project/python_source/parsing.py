"""Reading Python that anyone may have written: deep, torn or no Python at all."""

from __future__ import annotations

import ast
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from suture.errors import MalformedReply

PARSE_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises: the last two for sources that nest too deeply, `ValueError` for NUL bytes."""


def parsed(source: str | bytes) -> ast.Module | None:
    """The tree of a source; `None` where it has none. While a reply is read, equal texts share one tree.

    Raises:
        MalformedReply: A reply is being read, and that has become too much work.
    """
    known = current_parsing_budget()
    if known is None or isinstance(source, bytes):
        return _tree(source)
    if source not in known.trees:
        known.take(source)
        known.trees[source] = _tree(source)
    return known.trees[source]


def _tree(source: str | bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape: its author's business
        try:
            return _parse(source)
        except PARSE_FAULTS:
            return None


def _parse(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # CPython 3.11 miscounts its depth where the garbage collector runs somebody's finaliser meanwhile.
        return ast.parse(source)


def first_line(node: ast.stmt) -> int:
    """The number of a statement's first line, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


P = ParamSpec("P")
T = TypeVar("T")
MOST_BLOCKS = 400
"""Fenced blocks, or search/replace blocks, of one reply."""
MOST_NAMING_CHARS = 400
"""Of a line that may name a file."""
MOST_CHARS = 4_000_000
"""That are parsed for one reply: its own text some hundred times, and the files that it is about."""
_allowance: ContextVar[ParsingBudget | None] = ContextVar("_allowance", default=None)


@dataclass(kw_only=True)
class ParsingBudget:
    """What is left of it, and what was parsed before.

    Attributes:
        chars: That may still be parsed.
        trees: Code -> its syntax tree, or `None` where it has none.
    """

    chars: int = MOST_CHARS
    trees: dict[str, ast.Module | None] = field(default_factory=dict)

    def take(self, code: str) -> None:
        """Use some of it.

        Raises:
            MalformedReply: No work is left for this reply.
        """
        self.chars -= len(code) + 100
        if self.chars < 0:
            raise MalformedReply("the reply takes too long to be read: its code has no end that fits")


def current_parsing_budget() -> ParsingBudget | None:
    """That of the reply which is being read; `None` where none is."""
    return _allowance.get()


def limit_parsing_work(read: Callable[P, T]) -> Callable[P, T]:
    """A reader of replies that gives up, with a `MalformedReply`, where one takes too much work."""

    @functools.wraps(read)
    def reader(*args: P.args, **named: P.kwargs) -> T:
        with _begun():
            return read(*args, **named)

    return reader


@contextlib.contextmanager
def _begun() -> Iterator[None]:
    token = _allowance.set(_allowance.get() or ParsingBudget())
    try:
        yield
    finally:
        _allowance.reset(token)


def require_few_blocks(blocks: int) -> None:
    """See that a reply has no more blocks than anybody would write.

    Raises:
        MalformedReply: The text holds more of them.
    """
    if blocks > MOST_BLOCKS:
        raise MalformedReply(f"the reply has more than {MOST_BLOCKS} blocks")
