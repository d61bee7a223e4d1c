"""Reading a ledger while its run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from suture.errors import StorageError
from suture.ledger.event import Event
from suture.ledger.events import parse_event, run_of
from suture.ledger.kinds import RunFinished, RunParked, RunRefused

__all__ = ["LAST_EVENTS", "PARKED", "Listener", "follow_ledger", "listening"]

Listener = Callable[[Event], None]

LAST_EVENTS = (RunFinished.event_kind, RunRefused.event_kind)
"""Kinds after which a run writes nothing more of its own."""
PARKED = RunParked.event_kind
"""The kind after which a run writes nothing until somebody goes on with it."""


async def follow_ledger(path: Path, *, every_s: float = 0.05, seen: int = 0) -> AsyncIterator[Event]:
    """Every event, as soon as it is on disk, until the run ends or waits for a person.

    A slow reader never slows the run: it reads the same file that everyone else does, and each line once.

    Args:
        path: The ledger.
        every_s: Seconds between two looks.
        seen: How many events were there before; a run that was parked or ended among these has gone on since.

    Raises:
        StorageError: The file cannot be read, or a line is not as Suture writes them.
    """
    new_lines = _reader(path)
    while True:
        for line in next(new_lines):
            event = parse_event(line, where=f"a line of {str(path)!r}", run=run_of(path))
            if event is None:
                continue  # cut short by a crash
            yield event
            if event.kind in (*LAST_EVENTS, PARKED) and event.seq >= seen:
                return
        await asyncio.sleep(every_s)


def _reader(path: Path) -> Iterator[list[bytes]]:
    """At each turn the lines that have become complete since the last."""
    rest = b""
    try:
        with path.open("rb") as file:
            while True:
                *lines, rest = (rest + file.read()).split(b"\n")
                yield lines
    except OSError as fault:
        raise StorageError(f"the ledger {str(path)!r} cannot be read: {fault.strerror}") from fault


@asynccontextmanager
async def listening(path: Path, listener: Listener | None, *, seen: int = 0) -> AsyncIterator[None]:
    """Pass a run's events on to a listener. It reads the ledger like everyone else, in a task of its own.

    Args:
        path: The ledger.
        listener: What it raises is raised when the run has ended; `None` listens to nothing.
        seen: As in `follow_ledger`.
    """
    if listener is None:
        yield
        return

    async def listen(tell: Listener) -> None:
        async for event in follow_ledger(path, seen=seen):
            tell(event)

    task = asyncio.get_running_loop().create_task(listen(listener))
    try:
        yield
        await task  # the run has ended, and so does its ledger: let the listener see the last line
    finally:
        task.cancel()
