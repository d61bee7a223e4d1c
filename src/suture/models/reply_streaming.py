"""Streaming of replies to listeners while they are generated. Listeners only display; they never decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count

ReplyListener = Callable[[int, str | None], None]
"""Called with a reply's number and its text so far for every token, and with `None` when the reply is
complete."""

_numbers = count()
_listener: ContextVar[ReplyListener | None] = ContextVar("listener", default=None)


@contextmanager
def listen_to_replies(listener: ReplyListener) -> Iterator[None]:
    """Let `listener` follow all replies generated inside this context, if the provider can stream."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def report_reply(listener: ReplyListener) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports one reply's text so far; several replies may run at the same time."""
    number = next(_numbers)
    try:
        yield partial(listener, number)
    finally:
        listener(number, None)


def current_listener() -> ReplyListener | None:
    """Return the listener of the current context, or `None`."""
    return _listener.get()
