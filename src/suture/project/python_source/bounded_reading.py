"""How much work the reading of one reply may be: who answers may write a text that keeps a reader busy.

Reading tries one thing after another: this much of the text as code, a line less, that block in that file.
For what a model writes in earnest that is nothing; for a text made for it, it would be minutes, in which
nothing else of the run moves.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from suture.errors import MalformedReply

P = ParamSpec("P")
T = TypeVar("T")

MOST_BLOCKS = 400
"""Fenced blocks, or search/replace blocks, of one reply."""
MOST_NAMING_CHARS = 400
"""Of a line that may name a file."""
MOST_CHARS = 4_000_000
"""That are parsed for one reply: its own text some hundred times, and the files that it is about."""

_allowance: ContextVar[Allowance | None] = ContextVar("_allowance", default=None)


@dataclass(kw_only=True)
class Allowance:
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


def allowance() -> Allowance | None:
    """That of the reply which is being read; `None` where none is."""
    return _allowance.get()


def bounded(read: Callable[P, T]) -> Callable[P, T]:
    """A reader of replies that gives up, with a `MalformedReply`, where one takes too much work."""

    @functools.wraps(read)
    def reader(*args: P.args, **named: P.kwargs) -> T:
        with _begun():
            return read(*args, **named)

    return reader


@contextlib.contextmanager
def _begun() -> Iterator[None]:
    token = _allowance.set(_allowance.get() or Allowance())
    try:
        yield
    finally:
        _allowance.reset(token)


def require_few(blocks: int) -> None:
    """See that a reply has no more blocks than anybody would write.

    Raises:
        MalformedReply: The text holds more of them.
    """
    if blocks > MOST_BLOCKS:
        raise MalformedReply(f"the reply has more than {MOST_BLOCKS} blocks")
