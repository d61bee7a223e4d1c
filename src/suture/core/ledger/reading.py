"""Read a ledger: a finished one, one that a crash truncated, one that its run is still writing.

A ledger may come from somebody else and hold anything. The length of a line, the length of the file and the
number of its JSON values are therefore limited, and checked before anything is parsed.
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
"""Characters of which one precedes every JSON value but the first."""
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
        torn_lines: Numbers, from 1, of the lines that a crash truncated. They are skipped, and nothing of
            them is guessed.
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
    torn_lines: list[int] = []
    run = run_id_of(path)
    for number, line in enumerate(_read_lines(path), start=1):
        if line == b"\n":
            continue  # nothing is lost with an empty line
        is_complete = line.endswith(b"\n")
        event = parse_line(line, where=f"line {number} of {str(path)!r}", run=run) if is_complete else None
        if event is not None:
            events.append(event)
            continue
        torn_lines.append(number)
        if len(torn_lines) > MAX_TORN_LINES:
            raise _unreadable(path, f"more than {MAX_TORN_LINES:,} of its lines are no events")
    return LedgerContents(events=tuple(events), torn_lines=tuple(torn_lines))


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a ledger with their line ends. Raises a `StorageError` if a limit is exceeded."""
    with _open_ledger(path) as file:
        line_number = total_bytes = value_count = 0
        while line := file.readline(MAX_EVENT_LINE_BYTES + 1):
            line_number += 1
            total_bytes += len(line)
            if len(line) > MAX_EVENT_LINE_BYTES:
                raise LedgerLineTooLong(f"line {line_number} of {str(path)!r}")
            if total_bytes > MAX_LEDGER_BYTES:
                raise _unreadable(path, f"it is longer than {MAX_LEDGER_BYTES // 2**20} MiB")
            value_count += count_json_values(line)
            if value_count > MAX_JSON_VALUES:
                raise _unreadable(
                    path, f"up to line {line_number} it holds more than {MAX_JSON_VALUES:,} values"
                )
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

    A slow reader never slows the run down: it reads the same file as everybody else.

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

    Listeners run in a task of their own, so that they never slow a run down. Before a person is asked
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
