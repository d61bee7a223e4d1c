"""Reading a ledger while its run goes on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from suture.errors import StorageError
from suture.ledger.event import Event
from suture.ledger.kinds import RunFinished, RunParked, RunRefused
from suture.ledger.reading import MOST_LINE_BYTES, LineTooLong, parse_event, run_of

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
    import asyncio  # not at the top, here and below: who only reads a ledger starts sooner without it

    for line in _whole_lines(path):
        if line is None:
            await asyncio.sleep(every_s)
            continue
        event = parse_event(line, where=f"a line of {str(path)!r}", run=run_of(path))
        if event is None:
            continue  # cut short by a crash
        yield event
        if event.kind in (*LAST_EVENTS, PARKED) and event.seq >= seen:
            return


def _whole_lines(path: Path) -> Iterator[bytes | None]:
    """Each line once it is complete, and `None` wherever there is no more of them yet."""
    try:
        with path.open("rb") as file:
            while True:
                line = file.readline(MOST_LINE_BYTES + 1)
                if line.endswith(b"\n"):
                    yield line
                    continue
                if len(line) > MOST_LINE_BYTES:
                    raise LineTooLong(f"a line of {str(path)!r}")
                file.seek(-len(line), os.SEEK_CUR)  # it is still being written
                yield None
    except OSError as fault:
        raise StorageError(f"the ledger {str(path)!r} cannot be read: {fault.strerror}") from fault


class Heard:
    """How far a listener has come.

    A listener reads the ledger in a task of its own, so that it never slows a run. Where a person is to be
    asked, what has happened until then has to be said first: `all_so_far` waits for that.

    Args:
        listener: What hears each event.
    """

    def __init__(self, listener: Listener) -> None:
        import asyncio

        self.written: Callable[[], Sequence[Event]] = tuple
        """What the ledger holds now; whoever opens it says so."""
        self._listener = listener
        self._seq = -1
        self._failed = False
        self._more = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        try:
            self._listener(event)
        except BaseException:
            self._failed = True  # it hears no more; what it raised is raised when the run has ended
            raise
        else:
            self._seq = event.seq
        finally:
            self._more.set()

    async def all_so_far(self) -> None:
        """Wait until every event that is written by now has been heard, or until nothing more will be."""
        last = max((event.seq for event in self.written()), default=-1)
        while self._seq < last and not self._failed:
            self._more.clear()
            await self._more.wait()


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
    import asyncio

    async def listen(on_event: Listener) -> None:
        async for event in follow_ledger(path, seen=seen):
            on_event(event)

    task = asyncio.get_running_loop().create_task(listen(listener))
    try:
        yield
        await task  # the run has ended, and so does its ledger: let the listener see the last line
    finally:
        task.cancel()
