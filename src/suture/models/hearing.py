"""Words of a reply while they come, for who watches; nobody decides anything by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Hearer = Callable[[str], None]
"""Told the reply so far, at every token; a text that is shorter than the last is of another reply."""

_hearer: ContextVar[Hearer | None] = ContextVar("hearer", default=None)


@contextmanager
def heard_by(hearer: Hearer) -> Iterator[None]:
    """Whoever is asked from here on is listened to, where the provider tells its words one by one."""
    token = _hearer.set(hearer)
    try:
        yield
    finally:
        _hearer.reset(token)


def current_hearer() -> Hearer | None:
    """Who listens; `None` where nobody does."""
    return _hearer.get()
