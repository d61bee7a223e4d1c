"""Write a ledger: append-only events, one JSON line each, on disk before the next step starts."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from suture.core.change_log import log_change
from suture.core.clock import Clock, SystemClock
from suture.core.file_locks import lock_file
from suture.core.ledger.event import Event, Payload, create_event, encode_event
from suture.core.ledger.reading import LedgerLineTooLong, read_ledger, run_id_of
from suture.core.tuning import MAX_EVENT_LINE_BYTES
from suture.errors import StorageError, UsageError

_position: ContextVar[Mapping[str, int]] = ContextVar("_position", default=MappingProxyType({}))


def in_round_branch(step: int, branch: int) -> AbstractContextManager[None]:
    """Mark the events that this task writes inside the `with` block as those of a branch of a round.

    Parallel branches write in any order. Sorted by (step, branch, part, seq), their events have the same
    order in every run (see `compare_runs`).
    """
    return _at_position({"step": step, "branch": branch})


def in_branch_part(part: int) -> AbstractContextManager[None]:
    """Mark events as `in_round_branch` does, for one of several parallel parts of the present branch."""
    return _at_position({**_position.get(), "part": part})


@contextlib.contextmanager
def _at_position(position: Mapping[str, int]) -> Iterator[None]:
    token = _position.set(position)
    try:
        yield
    finally:
        _position.reset(token)


def current_position() -> Mapping[str, int]:
    """Return the marks of this task's events: `step`, `branch` and `part`, as far as they are set."""
    return _position.get()


class Ledger:
    """Appends events to a ledger. Only one process can have a ledger open for writing at a time.

    Args:
        path: The file, which is created if it is missing.
        on_written: Called after each write, when the events are on disk.

    Raises:
        UsageError: Another process is writing this ledger.
        StorageError: The file cannot be opened.
    """

    def __init__(
        self, path: Path, clock: Clock | None = None, *, on_written: Callable[[], None] | None = None
    ) -> None:
        self.path = path
        self._on_written = on_written
        self._clock = clock or SystemClock()
        try:
            # Unbuffered: after a failed write, a buffer would write the same bytes again later.
            self._file = path.open("ab+", buffering=0)
        except OSError as fault:
            raise StorageError(f"the ledger {str(path)!r} cannot be opened: {fault.strerror}") from fault
        try:
            lock_file(self._file)
            log_change(path)
            self._terminate_torn_line()
            self._events = list(read_ledger(path).events)
        except BlockingIOError as fault:
            self._file.close()
            raise UsageError(
                f"another process is writing {str(path)!r}", remedy="wait for it to end"
            ) from fault
        except OSError as fault:
            self._file.close()
            raise StorageError(
                f"the ledger {str(path)!r} cannot be opened for writing: {fault.strerror}",
                remedy="free some disk space, or set SUTURE_HOME to another disk",
            ) from fault
        except StorageError:
            self._file.close()
            raise

    def _terminate_torn_line(self) -> None:
        """End the last line if a crash truncated it, so that the next event starts on its own line.

        This happens before the file is read, because an event that lacked only its newline counts from now
        on for every reader.
        """
        if (length := self._file.tell()) and os.pread(self._file.fileno(), 1, length - 1) != b"\n":
            self._write(b"\n")

    @property
    def events(self) -> tuple[Event, ...]:
        """All events written so far."""
        return tuple(self._events)

    def append(self, payload: Payload) -> Event:
        """Write one event and force it to disk.

        Raises:
            StorageError: The disk is full or missing.
        """
        return self.append_all([payload])[0]

    def append_all(self, payloads: Sequence[Payload]) -> tuple[Event, ...]:
        """Write several events at once. After a crash, all of them are on disk or none.

        Raises:
            StorageError: The disk is full or missing.
        """
        first_seq = self._events[-1].seq + 1 if self._events else 0
        position, run = _position.get(), run_id_of(self.path)
        created = [
            create_event(payload, seq=seq, time_s=self._clock.now(), position=position, run=run)
            for seq, payload in enumerate(payloads, start=first_seq)
        ]
        # ASCII only: a lone surrogate in a model's reply must not make the event unwritable.
        lines = [json.dumps(encode_event(event), separators=(",", ":")) for event in created]
        for event, line in zip(created, lines, strict=True):
            if len(line) >= MAX_EVENT_LINE_BYTES:  # no reader could parse it
                raise LedgerLineTooLong(f"a {event.kind!r} event of {str(self.path)!r}")
        self._write("".join(f"{line}\n" for line in lines).encode("ascii"))
        # Keep the data as it was written: the caller may change its own mappings later.
        events = tuple(
            replace(event, data=json.loads(line)["data"]) for event, line in zip(created, lines, strict=True)
        )
        self._events.extend(events)
        if self._on_written is not None:
            self._on_written()
        return events

    def _write(self, content: bytes) -> None:
        start = self._file.seek(0, os.SEEK_END)
        try:
            remaining = memoryview(content)
            while remaining:  # without a buffer, one call may write only a part
                remaining = remaining[self._file.write(remaining) :]
            os.fsync(self._file.fileno())
        except OSError as fault:
            with contextlib.suppress(OSError):
                self._file.truncate(start)  # otherwise the next event would continue half a line
            raise StorageError(
                f"the ledger {str(self.path)!r} cannot be written: {fault.strerror}",
                remedy="free some disk space, or set SUTURE_HOME to another disk",
            ) from fault

    def close(self) -> None:
        """Close the file. It is safe to call this twice."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
