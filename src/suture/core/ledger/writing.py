"""Append-only events, one JSON line each, on disk before the next step starts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from suture.core.clock import Clock, SystemClock
from suture.core.ledger.event import Event, Payload, create_event, encode_event
from suture.core.ledger.reading import MOST_LINE_BYTES, LedgerLineTooLong, read_ledger, run_of
from suture.errors import StorageError, UsageError

_place: ContextVar[Mapping[str, int]] = ContextVar("_place", default=MappingProxyType({}))


@contextlib.contextmanager
def in_round_branch(step: int, branch: int) -> Iterator[None]:
    """Stamp every event that this task writes meanwhile with its place among those of other branches.

    The branches of a round write at the same time; ordered by (step, branch, part, seq) their events tell the
    same story in every run (see `compare_runs`).
    """
    with _placed({"step": step, "branch": branch}):
        yield


@contextlib.contextmanager
def in_branch_part(part: int) -> Iterator[None]:
    """The same for what goes on at the same time within a branch."""
    with _placed({**_place.get(), "part": part}):
        yield


@contextlib.contextmanager
def _placed(place: Mapping[str, int]) -> Iterator[None]:
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def current_place() -> Mapping[str, int]:
    """The `step`, `branch` and `part` that this task stamps its events with, as far as it is in any."""
    return _place.get()


class Ledger:
    """The writing end. One process holds it at a time.

    Args:
        path: The file; it is made where it is missing.
        clock: Stamps the events.
        on_written: Called when events are on disk, before whoever wrote them goes on.

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
            self._file = path.open("ab+", buffering=0)  # what failed to be written must not be written later
        except OSError as fault:
            raise StorageError(f"the ledger {str(path)!r} cannot be opened: {fault.strerror}") from fault
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._events = list(self._recover())
        except BlockingIOError as fault:
            self._file.close()
            raise UsageError(
                f"another process is writing {str(path)!r}", remedy="wait for it to end"
            ) from fault
        except OSError as fault:
            self._file.close()
            raise StorageError(f"the ledger {str(path)!r} cannot be locked: {fault.strerror}") from fault
        except StorageError:
            self._file.close()
            raise

    def _recover(self) -> tuple[Event, ...]:
        # A torn line is closed, so that the next event starts on a line of its own, and read again after
        # that: where only its newline was missing, it counts from now on for every reader.
        if (length := self._file.tell()) and os.pread(self._file.fileno(), 1, length - 1) != b"\n":
            self._write(b"\n")
        return read_ledger(self.path).events

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything written so far."""
        return tuple(self._events)

    def append(self, payload: Payload) -> Event:
        """Write one event and force it to disk.

        Raises:
            StorageError: The disk is full or gone.
        """
        return self.append_all([payload])[0]

    def append_all(self, payloads: Sequence[Payload]) -> tuple[Event, ...]:
        """Write several events at once: after a crash all of them are there, or none.

        Raises:
            StorageError: The disk is full or gone.
        """
        first = self._events[-1].seq + 1 if self._events else 0
        place, run = _place.get(), run_of(self.path)
        stamped = [
            create_event(payload, seq=seq, time_s=self._clock.now(), position=place, run=run)
            for seq, payload in enumerate(payloads, start=first)
        ]
        # ASCII only: a lone surrogate in model text must not make the record unwritable.
        lines = [json.dumps(encode_event(event), separators=(",", ":")) for event in stamped]
        for event, line in zip(stamped, lines, strict=True):
            if len(line) >= MOST_LINE_BYTES:  # nobody could read it back
                raise LedgerLineTooLong(f"a {event.kind!r} event of {str(self.path)!r}")
        self._write("".join(f"{line}\n" for line in lines).encode("ascii"))
        # What is on disk, not what callers change later.
        events = tuple(
            replace(event, data=json.loads(line)["data"]) for event, line in zip(stamped, lines, strict=True)
        )
        self._events.extend(events)
        if self._on_written is not None:
            self._on_written()
        return events

    def _write(self, line: bytes) -> None:
        start = self._file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as fault:
            with contextlib.suppress(OSError):
                self._file.truncate(start)  # or the next event would continue half a line
            raise StorageError(
                f"the ledger {str(self.path)!r} cannot be written: {fault.strerror}",
                remedy="free some disk space, or set SUTURE_HOME to another disk",
            ) from fault

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
