"""Read a ledger: a finished one, one that a crash truncated, one that its run is still writing.

A ledger may come from somebody else and hold anything. The length of a line, the length of the file and the
number of its JSON values are therefore limited, and checked before anything is parsed.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from suture.core.ledger.event import Event, PayloadT, decode_event, first_payload
from suture.core.ledger.kinds import RunFailed, RunFinished, RunPaused
from suture.core.safe_files import open_regular_file
from suture.core.tuning import MAX_EVENT_LINE_BYTES, MAX_JSON_VALUES, MAX_LEDGER_BYTES, MAX_TORN_LINES
from suture.errors import StorageError

VALUE_SEPARATORS = (b",", b"[", b"{")
"""Characters one of which precedes every JSON value except the first."""
HASHED_BLOCK_BYTES = 2**20
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
        torn_lines: Numbers, from 1, of the lines that a crash truncated. They are skipped, and their content is not
            guessed.
    """

    events: tuple[Event, ...]
    torn_lines: tuple[int, ...] = ()


def read_ledger(path: Path) -> LedgerContents:
    """Read a ledger. Its run may still be writing it, or may have been killed.

    Raises:
        StorageError: The file cannot be read, one of its complete lines is damaged, or it is longer than any
            ledger that Suture writes.
    """
    global _last_reading
    if not _READING_LOCK.acquire(blocking=False):  # another thread may need seconds for a long ledger
        return LedgerReading(path).read_on()
    try:
        reading = _last_reading
        if reading is None or not reading.is_beginning_of(path):
            reading = LedgerReading(path)
        _last_reading = None  # a damaged ledger is read from its beginning the next time
        contents = reading.read_on()
        _last_reading = reading
        return contents
    finally:
        _READING_LOCK.release()


def find_first_payload(path: Path, cls: type[PayloadT]) -> PayloadT | None:
    """Return the payload of a ledger's first event of a kind, or `None`. The rest of the ledger is not read.

    Raises:
        StorageError: The ledger cannot be read up to this event.
    """
    return first_payload(LedgerReading(path).iter_events(), cls)


class LedgerReading:
    """What has been read of a ledger so far, so that only what is new is read the next time.

    A command reads the same ledger a dozen times, and a ledger may have 200,000 events.
    """

    def __init__(self, path: Path) -> None:
        self._events: list[Event] = []
        self._torn_lines: list[int] = []
        self._path = path
        self._run = run_id_of(path)
        self._lines = self._bytes = self._values = 0
        self._has_incomplete_line = False
        self._digest = hashlib.blake2b()
        """Digest of all complete lines."""

    def is_beginning_of(self, path: Path) -> bool:
        """Return whether a file still begins with what has been read."""
        if path != self._path:
            return False
        digest = hashlib.blake2b()
        with _open_ledger(path) as file:
            remaining = self._bytes
            while remaining and (block := file.read(min(remaining, HASHED_BLOCK_BYTES))):
                remaining -= len(block)
                digest.update(block)
        return digest.digest() == self._digest.digest()

    def read_on(self) -> LedgerContents:
        """Read what is new, and return all of it; raises as `read_ledger` does."""
        with _open_ledger(self._path) as file:
            file.seek(self._bytes)
            self._events.extend(self._parse_lines(file))
        return LedgerContents(events=tuple(self._events), torn_lines=self.torn_lines)

    def iter_events(self) -> Iterator[Event]:
        """Yield the events one after the other without keeping them; raises as `read_ledger` does.

        In memory, 200,000 events need 400 MB.
        """
        with _open_ledger(self._path) as file:
            yield from self._parse_lines(file)

    @property
    def torn_lines(self) -> tuple[int, ...]:
        """The numbers of the truncated lines so far, as in `LedgerContents`."""
        last_line = (self._lines + 1,) if self._has_incomplete_line else ()
        return (*self._torn_lines, *last_line)

    def _parse_lines(self, file: BinaryIO) -> Iterator[Event]:
        """Yield the events of the complete lines from the file's position on."""
        while (line := file.readline(MAX_EVENT_LINE_BYTES + 1)).endswith(b"\n"):
            self._values = self._check_limits(line)
            self._digest.update(line)
            self._lines += 1
            self._bytes += len(line)
            if line == b"\n":
                continue  # nothing is lost with an empty line
            where = f"line {self._lines} of {str(self._path)!r}"
            if (event := parse_line(line, where=where, run=self._run)) is not None:
                yield event
            else:
                self._torn_lines.append(self._lines)
        self._check_limits(line)
        self._has_incomplete_line = bool(line)

    def _check_limits(self, line: bytes) -> int:
        """Return the number of JSON values up to the end of the next line."""
        number, values = self._lines + 1, self._values + count_json_values(line)
        if len(line) > MAX_EVENT_LINE_BYTES:
            raise LedgerLineTooLong(f"line {number} of {str(self._path)!r}")
        if self._bytes + len(line) > MAX_LEDGER_BYTES:
            raise _unreadable(self._path, f"it is longer than {MAX_LEDGER_BYTES // 2**20} MiB")
        if values > MAX_JSON_VALUES:
            raise _unreadable(
                self._path, f"up to line {number} it holds more than {MAX_JSON_VALUES:,} values"
            )
        if len(self._torn_lines) > MAX_TORN_LINES:
            raise _unreadable(self._path, f"more than {MAX_TORN_LINES:,} of its lines are no events")
        return values


_READING_LOCK = threading.Lock()
_last_reading: LedgerReading | None = None
"""The ledger that this process read last."""


@contextmanager
def _open_ledger(path: Path) -> Iterator[BinaryIO]:
    """Open a ledger; a system error in opening and reading it becomes a `StorageError`."""
    try:
        file = open_regular_file(path, follow=True)
        if file is None:
            raise _unreadable(path, "there is no regular file of this name")
        with file:
            yield file
    except OSError as fault:
        raise _unreadable(path, fault.strerror or "no reason was given") from fault


def _unreadable(path: Path, why: str) -> StorageError:
    return StorageError(f"the ledger {str(path)!r} cannot be read: {why}", remedy=DAMAGED_RUN_REMEDY)


def count_json_values(text: bytes) -> int:
    """Return an upper bound of the number of JSON values in a document, without parsing it."""
    return 1 + sum(map(text.count, VALUE_SEPARATORS))


def run_id_of(path: Path) -> str:
    """Return the id of the run that a ledger belongs to: the name of its folder."""
    return path.parent.name


def parse_line(line: bytes, *, where: str, run: str) -> Event | None:
    """Return the event in a line, or `None` if the line is empty or not an event.

    Args:
        where: Name of the line for error messages, such as `line 3 of 'ledger.jsonl'`.

    Raises:
        StorageError: The line is an event, and one of its fields has the wrong type.
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
    """Yield every event of a ledger as soon as it is on disk, until the run ends or is paused.

    A slow reader never slows the run down: it only reads the file.

    Args:
        known_events: Number of events that an earlier process wrote. A pause or an end among these does not
            stop the function, because the run has been resumed since.

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
    """Yield each line as soon as it is complete, and `None` whenever the next line is not complete yet."""
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
    """Wraps a listener, and records which event it received last.

    Listeners run in their own task, so that they never slow a run down. Before a person is asked
    something, everything that has happened so far must have been shown: `wait_until_current` waits for that.
    """

    def __init__(self, listener: Listener) -> None:
        import asyncio

        self.written: Callable[[], Sequence[Event]] = tuple
        """Returns the present events of the ledger. The owner of the ledger sets it."""
        self._listener = listener
        self._received_seq = -1
        self._has_failed = False
        self._progressed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """Pass an event on to the listener."""
        try:
            self._listener(event)
        except BaseException:
            self._has_failed = True  # it gets no more events; its exception is raised when the run has ended
            raise
        else:
            self._received_seq = event.seq
        finally:
            self._progressed.set()

    async def wait_until_current(self) -> None:
        """Wait until the listener has received every event written so far, or has failed."""
        newest_seq = max((event.seq for event in self.written()), default=-1)
        while self._received_seq < newest_seq and not self._has_failed:
            self._progressed.clear()
            await self._progressed.wait()


@asynccontextmanager
async def notify_listener(
    path: Path, listener: Listener | None, *, known_events: int = 0
) -> AsyncIterator[None]:
    """Pass a run's events on to a listener while the `with` block runs the run.

    A task of its own reads the ledger, so that a slow listener does not slow the run down.

    Args:
        listener: Receives the events; `None` does nothing. Its exception is raised when the run has ended.
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
