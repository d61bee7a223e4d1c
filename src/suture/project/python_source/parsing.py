"""Parse Python source that anyone may have written, and bound the work of parsing a model's reply.

Reading a reply tries many alternatives: a part of the text as code, one line less, a block in another file.
For a usual reply that takes no time, but a text that is made for the purpose could stop the run for minutes.
So each reply has a budget of characters that may be parsed for it.
"""

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
from suture.project.tuning import MAX_PARSED_CHARS, MAX_REPLY_BLOCKS, PARSING_OVERHEAD_CHARS

PARSE_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of `ast.parse`: the last two for too deeply nested sources, `ValueError` for NUL bytes."""


def parse_module(source: str | bytes) -> ast.Module | None:
    """Return the syntax tree of a source, or `None` if it is invalid.

    While a reply is read, equal texts are parsed only once, and callers must not change the tree.

    Raises:
        MalformedReply: A reply is being read, and its parsing budget is spent.
    """
    budget = current_parsing_budget()
    if budget is None or isinstance(source, bytes):
        return _tree(source)
    if source not in budget.trees:
        budget.take(source)
        budget.trees[source] = _tree(source)
    return budget.trees[source]


def _tree(source: str | bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about an invalid escape, which only concerns the author
        try:
            return _parse(source)
        except PARSE_FAULTS:
            return None


def _parse(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # CPython 3.11 miscounts its recursion depth if the garbage collector runs a finaliser meanwhile.
        return ast.parse(source)


def first_line(node: ast.stmt) -> int:
    """Return the number of a statement's first line, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


P = ParamSpec("P")
T = TypeVar("T")
_budget: ContextVar[ParsingBudget | None] = ContextVar("_budget", default=None)


@dataclass(kw_only=True)
class ParsingBudget:
    """The work that may still be spent on a reply, and the trees that were parsed for it.

    Attributes:
        chars: Number of characters that may still be parsed.
        trees: Source -> syntax tree, or `None` if the source is invalid.
    """

    chars: int = MAX_PARSED_CHARS
    trees: dict[str, ast.Module | None] = field(default_factory=dict)

    def take(self, code: str) -> None:
        """Spend some of the budget.

        Raises:
            MalformedReply: The budget is spent.
        """
        self.chars -= len(code) + PARSING_OVERHEAD_CHARS
        if self.chars < 0:
            raise MalformedReply("the reply takes too long to be parsed: its code has no plausible end")


def current_parsing_budget() -> ParsingBudget | None:
    """Return the budget of the reply that is being read, or `None` if none is."""
    return _budget.get()


def limit_parsing_work(read: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that reads a reply, so that it raises a `MalformedReply` if that is too much work."""

    @functools.wraps(read)
    def read_within_budget(*args: P.args, **kwargs: P.kwargs) -> T:
        with _reading_reply():
            return read(*args, **kwargs)

    return read_within_budget


@contextlib.contextmanager
def _reading_reply() -> Iterator[None]:
    token = _budget.set(_budget.get() or ParsingBudget())
    try:
        yield
    finally:
        _budget.reset(token)


def require_few_blocks(block_count: int) -> None:
    """Check that a reply does not have an absurd number of blocks.

    Raises:
        MalformedReply: It has more than `MAX_REPLY_BLOCKS`.
    """
    if block_count > MAX_REPLY_BLOCKS:
        raise MalformedReply(f"the reply has more than {MAX_REPLY_BLOCKS} blocks")
