"""Reading a ledger: its own writer's after a crash, one that is still being written, or somebody else's.

A stranger's may hold anything, so a line has a length, and the whole a length and a number of values: what
is refused is refused before it is parsed.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from suture.core.ledger.event import Event, decode_event
from suture.core.ledger.kinds import RunFailed, RunFinished, RunPaused
from suture.core.safe_files import open_regular_file
from suture.errors import StorageError

MOST_LINE_BYTES = 16 * 2**20
"""Of one event. The longest that was seen has 7,000; the names of 60,000 tests may have some millions."""
MOST_BYTES = 128 * 2**20
"""Of a ledger; one of 60,000 events has 20 MB."""
MOST_VALUES = 6_000_000
"""Of JSON, in a ledger or a blob: each takes some hundred bytes of memory, whatever it takes on disk."""
MOST_TORN = 1000
"""Lines that are no events: each crash leaves one."""
BETWEEN_VALUES = (b",", b"[", b"{")
REMEDY = "move the run's folder away; its blobs and replies are whole"

Listener = Callable[[Event], None]

FINAL_EVENT_KINDS = (RunFinished.event_kind, RunFailed.event_kind)
"""Kinds after which a run writes nothing more of its own."""
PARKED = RunPaused.event_kind
"""The kind after which a run writes nothing until somebody goes on with it."""


class LedgerLineTooLong(StorageError):
    """A line of a ledger is longer than any event that Suture writes."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} is longer than {MOST_LINE_BYTES // 2**20} MiB", remedy=REMEDY)


@dataclass(frozen=True, kw_only=True)
class LedgerContents:
    """What a ledger says.

    Attributes:
        events: Every readable event, in order.
        torn_lines: Numbers (from 1) of lines that a crash cut short; they are skipped, never guessed.
    """

    events: tuple[Event, ...]
    torn_lines: tuple[int, ...] = ()


def read_ledger(path: Path) -> LedgerContents:
    """Read a ledger, also while its run goes on or after it was killed.

    Raises:
        StorageError: The file cannot be read, a whole line of it is not as Suture writes them, or it is
            longer than any ledger of ours.
    """
    events: list[Event] = []
    torn: list[int] = []
    run = run_of(path)
    for number, line in enumerate(_lines(path), start=1):
        if line == b"\n":
            continue
        whole = line.endswith(b"\n")  # without it: not fully written
        event = parse_event(line, where=f"line {number} of {str(path)!r}", run=run) if whole else None
        if event is not None:
            events.append(event)
            continue
        torn.append(number)
        if len(torn) > MOST_TORN:
            raise _unreadable(path, f"more than {MOST_TORN:,} of its lines are no events")
    return LedgerContents(events=tuple(events), torn_lines=tuple(torn))


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a ledger with their ends, as long as it keeps to what is sensible."""
    with _opened(path) as file:
        number = total_bytes = values = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            total_bytes += len(line)
            if len(line) > MOST_LINE_BYTES:
                raise LedgerLineTooLong(f"line {number} of {str(path)!r}")
            if total_bytes > MOST_BYTES:
                raise _unreadable(path, f"it is longer than {MOST_BYTES // 2**20} MiB")
            values += values_in(line)
            if values > MOST_VALUES:
                raise _unreadable(path, f"up to line {number} it holds more than {MOST_VALUES:,} values")
            yield line


def _opened(path: Path) -> BinaryIO:
    try:
        file = open_regular_file(path, follow=True)
    except OSError as fault:
        raise _unreadable(path, fault.strerror or "no reason was given") from fault
    if file is None:
        raise _unreadable(path, "there is no regular file of this name")
    return file


def _unreadable(path: Path, why: str) -> StorageError:
    return StorageError(f"the ledger {str(path)!r} cannot be read: {why}", remedy=REMEDY)


def values_in(text: bytes) -> int:
    """At most so many JSON values: counted before they are read, since each may take some hundred bytes."""
    return 1 + sum(map(text.count, BETWEEN_VALUES))


def run_of(path: Path) -> str:
    """The run that a ledger is of: the name of its folder."""
    return path.parent.name


def parse_event(line: bytes, *, where: str, run: str) -> Event | None:
    """The event of a line; `None` where it is empty, or no event.

    Args:
        line: With its end, or without.
        where: What to call it, for people.
        run: The run's id.

    Raises:
        StorageError: It is an event with a field of another type than Suture writes.
    """
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        return decode_event(plain, run)
    except ValueError as fault:
        raise StorageError(
            f"{where} is damaged: {fault}",
            remedy="put the line right, or move the run's folder away; its blobs and replies are whole",
        ) from fault


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
        if event.kind in (*FINAL_EVENT_KINDS, PARKED) and event.seq >= seen:
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
                    raise LedgerLineTooLong(f"a line of {str(path)!r}")
                file.seek(-len(line), os.SEEK_CUR)  # it is still being written
                yield None
    except OSError as fault:
        raise StorageError(f"the ledger {str(path)!r} cannot be read: {fault.strerror}") from fault


class Heard:
    """How far a listener has come.

    A listener reads the ledger in a task of its own, so that it never slows a run. Where a person is to be
    asked, what has happened until then has to be said first: `all_so_far` waits for that.
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
