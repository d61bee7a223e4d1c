"""Read a ledger: after a crash, while its run writes it, or one that comes from somebody else.

A ledger of somebody else may hold anything. So there are limits for the length of a line, for the length of
the file and for the number of its JSON values, and each is checked before anything is parsed.
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
from suture.core.tuning import MAX_EVENT_LINE_BYTES, MAX_JSON_VALUES, MAX_LEDGER_BYTES, MAX_TORN_LINES
from suture.errors import StorageError

VALUE_SEPARATORS = (b",", b"[", b"{")
DAMAGED_RUN_REMEDY = "move the run's folder away; its blobs and replies are whole"

Listener = Callable[[Event], None]

FINAL_EVENT_KINDS = (RunFinished.event_kind, RunFailed.event_kind)
"""Kinds of events after which a run writes nothing more."""
PAUSED_KIND = RunPaused.event_kind
"""Kind of event after which a run writes nothing until somebody resumes it."""


class LedgerLineTooLong(StorageError):
    """A line of a ledger is longer than any event that Suture writes."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is longer than {MAX_EVENT_LINE_BYTES // 2**20} MiB", remedy=DAMAGED_RUN_REMEDY
        )


@dataclass(frozen=True, kw_only=True)
class LedgerContents:
    """What a ledger contains.

    Attributes:
        events: All readable events, in order.
        torn_lines: Numbers (from 1) of lines that a crash truncated. They are skipped, and never guessed.
    """

    events: tuple[Event, ...]
    torn_lines: tuple[int, ...] = ()


def read_ledger(path: Path) -> LedgerContents:
    """Read a ledger. Its run may still be writing it, or may have been killed.

    Raises:
        StorageError: The file cannot be read, one of its complete lines is damaged, or it is longer than any
            ledger that Suture writes.
    """
    events: list[Event] = []
    torn: list[int] = []
    run = run_id_of(path)
    for number, line in enumerate(_read_lines(path), start=1):
        if line == b"\n":
            continue
        is_complete = line.endswith(b"\n")
        event = parse_line(line, where=f"line {number} of {str(path)!r}", run=run) if is_complete else None
        if event is not None:
            events.append(event)
            continue
        torn.append(number)
        if len(torn) > MAX_TORN_LINES:
            raise _unreadable(path, f"more than {MAX_TORN_LINES:,} of its lines are no events")
    return LedgerContents(events=tuple(events), torn_lines=tuple(torn))


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a ledger with their line ends, and check all limits."""
    with _open_ledger(path) as file:
        number = total_bytes = values = 0
        while line := file.readline(MAX_EVENT_LINE_BYTES + 1):
            number += 1
            total_bytes += len(line)
            if len(line) > MAX_EVENT_LINE_BYTES:
                raise LedgerLineTooLong(f"line {number} of {str(path)!r}")
            if total_bytes > MAX_LEDGER_BYTES:
                raise _unreadable(path, f"it is longer than {MAX_LEDGER_BYTES // 2**20} MiB")
            values += count_json_values(line)
            if values > MAX_JSON_VALUES:
                raise _unreadable(path, f"up to line {number} it holds more than {MAX_JSON_VALUES:,} values")
            yield line


def _open_ledger(path: Path) -> BinaryIO:
    try:
        file = open_regular_file(path, follow=True)
    except OSError as fault:
        raise _unreadable(path, fault.strerror or "no reason was given") from fault
    if file is None:
        raise _unreadable(path, "there is no regular file of this name")
    return file


def _unreadable(path: Path, why: str) -> StorageError:
    return StorageError(f"the ledger {str(path)!r} cannot be read: {why}", remedy=DAMAGED_RUN_REMEDY)


def count_json_values(text: bytes) -> int:
    """Return an upper bound of the number of JSON values in a text, without parsing it."""
    return 1 + sum(map(text.count, VALUE_SEPARATORS))


def run_id_of(path: Path) -> str:
    """Return the id of the run that a ledger belongs to: the name of its folder."""
    return path.parent.name


def parse_line(line: bytes, *, where: str, run: str) -> Event | None:
    """Return the event in a line, or `None` if the line is empty or not an event.

    Args:
        line: The line, with or without its line end.
        where: The name of the line for error messages.
        run: The id of the run.

    Raises:
        StorageError: It is an event with a field of the wrong type.
    """
    try:
        decoded = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        return decode_event(decoded, run)
    except ValueError as fault:
        raise StorageError(
            f"{where} is damaged: {fault}",
            remedy="fix the line, or move the run's folder away; its blobs and replies are whole",
        ) from fault


async def follow_ledger(
    path: Path, *, poll_interval_s: float = 0.05, known_events: int = 0
) -> AsyncIterator[Event]:
    """Yield every event as soon as it is on disk, until the run ends or is paused.

    A slow reader never slows the run down: it reads the same file as everybody else.

    Args:
        path: The ledger.
        poll_interval_s: Seconds between two looks for new events.
        known_events: Number of events that were there before. If the run was paused or ended among these, it
            has been resumed since.

    Raises:
        StorageError: The file cannot be read, or a line is damaged.
    """
    import asyncio  # not at the top: commands that only read a ledger start faster without it

    for line in _follow_lines(path):
        if line is None:
            await asyncio.sleep(poll_interval_s)
            continue
        event = parse_line(line, where=f"a line of {str(path)!r}", run=run_id_of(path))
        if event is None:
            continue  # a crash truncated it
        yield event
        if event.kind in (*FINAL_EVENT_KINDS, PAUSED_KIND) and event.seq >= known_events:
            return


def _follow_lines(path: Path) -> Iterator[bytes | None]:
    """Yield each line once it is complete, and `None` whenever there is no further one yet."""
    try:
        with path.open("rb") as file:
            while True:
                line = file.readline(MAX_EVENT_LINE_BYTES + 1)
                if line.endswith(b"\n"):
                    yield line
                    continue
                if len(line) > MAX_EVENT_LINE_BYTES:
                    raise LedgerLineTooLong(f"a line of {str(path)!r}")
                file.seek(-len(line), os.SEEK_CUR)  # the rest of the line is still being written
                yield None
    except OSError as fault:
        raise StorageError(f"the ledger {str(path)!r} cannot be read: {fault.strerror}") from fault


class ListenerProgress:
    """A listener that knows how far it has come.

    Listeners run in a task of their own, so that they never slow a run down. Before a person is asked
    something, everything that has happened so far must have been shown: `wait_until_current` waits for that.
    """

    def __init__(self, listener: Listener) -> None:
        import asyncio

        self.written: Callable[[], Sequence[Event]] = tuple
        """Returns the present events of the ledger. The owner of the ledger sets it."""
        self._listener = listener
        self._seq = -1
        self._failed = False
        self._progressed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """Pass an event on to the listener."""
        try:
            self._listener(event)
        except BaseException:
            self._failed = True  # it gets no more events; its exception is raised when the run has ended
            raise
        else:
            self._seq = event.seq
        finally:
            self._progressed.set()

    async def wait_until_current(self) -> None:
        """Wait until the listener has received every event written so far, or has failed."""
        last = max((event.seq for event in self.written()), default=-1)
        while self._seq < last and not self._failed:
            self._progressed.clear()
            await self._progressed.wait()


@asynccontextmanager
async def notify_listener(
    path: Path, listener: Listener | None, *, known_events: int = 0
) -> AsyncIterator[None]:
    """Pass a run's events on to a listener, which reads the ledger in a task of its own.

    Args:
        path: The ledger.
        listener: Receives the events; `None` does nothing. Its exception is raised when the run has ended.
        known_events: As in `follow_ledger`.
    """
    if listener is None:
        yield
        return
    import asyncio

    async def listen(on_event: Listener) -> None:
        async for event in follow_ledger(path, known_events=known_events):
            on_event(event)

    task = asyncio.get_running_loop().create_task(listen(listener))
    try:
        yield
        await task  # the run has ended, and with it the ledger: let the listener receive the last event
    finally:
        task.cancel()
