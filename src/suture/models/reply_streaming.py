"""Words of a reply while they come, for who watches; nobody decides anything by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count

Hearer = Callable[[int, str | None], None]
"""Told a reply's number and its text so far, at every token; `None` for the text when no more comes."""

_numbers = count()
_hearer: ContextVar[Hearer | None] = ContextVar("hearer", default=None)


@contextmanager
def heard_by(hearer: Hearer) -> Iterator[None]:
    """Whoever is asked from here on is listened to, where the provider tells its words one by one."""
    token = _hearer.set(hearer)
    try:
        yield
    finally:
        _hearer.reset(token)


@contextmanager
def one_reply(hearer: Hearer) -> Iterator[Callable[[str], None]]:
    """Give what is to be told of one reply's text so far; several may come at the same time."""
    number = next(_numbers)
    try:
        yield partial(hearer, number)
    finally:
        hearer(number, None)


def current_hearer() -> Hearer | None:
    """Who listens; `None` where nobody does."""
    return _hearer.get()
