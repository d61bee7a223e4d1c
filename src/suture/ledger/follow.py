"""Reading a ledger while its run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from suture.ledger.events import read_ledger
from suture.records import Event

__all__ = ["LAST_EVENTS", "Listener", "follow_ledger", "listening"]

Listener = Callable[[Event], None]

LAST_EVENTS = ("run.finished", "run.refused")
"""Kinds after which a run writes nothing more of its own."""


async def follow_ledger(path: Path, *, every_s: float = 0.05) -> AsyncIterator[Event]:
    """Every event, as soon as it is on disk, until the run ends.

    A slow reader never slows the run: it reads the same file that everyone else does.

    Args:
        path: The ledger.
        every_s: Seconds between two looks.

    Raises:
        StorageError: The file cannot be read.
    """
    seen = 0
    while True:
        events = read_ledger(path).events
        for event in events[seen:]:
            yield event
            if event.kind in LAST_EVENTS:
                return
        seen = len(events)
        await asyncio.sleep(every_s)


@asynccontextmanager
async def listening(path: Path, listener: Listener | None) -> AsyncIterator[None]:
    """Pass a run's events on to a listener. It reads the ledger like everyone else, in a task of its own.

    Args:
        path: The ledger.
        listener: What it raises is raised when the run has ended; `None` listens to nothing.
    """
    if listener is None:
        yield
        return

    async def listen(tell: Listener) -> None:
        async for event in follow_ledger(path):
            tell(event)

    task = asyncio.get_running_loop().create_task(listen(listener))
    try:
        yield
        await task  # the run has ended, and so does its ledger: let the listener see the last line
    finally:
        task.cancel()
