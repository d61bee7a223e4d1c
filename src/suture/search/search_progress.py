"""How far a search has come, for listeners that display it. Listeners never decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SearchListener = Callable[[int, int, int], None]
"""Called after each trial with the number of changes tried, and with the number of failing tests that the best of
them makes pass, of how many."""

_listener: ContextVar[SearchListener | None] = ContextVar("search_listener", default=None)


@contextmanager
def listen_to_search(listener: SearchListener) -> Iterator[None]:
    """Let `listener` follow the searches that run inside this context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_trials(tried: int, best: int, targets: int) -> None:
    """Report a search to the listener of the current context, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(tried, best, targets)
