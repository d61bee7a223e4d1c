"""A run's ledger as server-sent events. Each listener reads the file itself, so that none can lose a line."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from suture.core.ledger import FINAL_EVENT_KINDS, PARKED, RunFolder, is_being_written
from suture.core.ledger.reading import parse_event
from suture.core.ledger.run_state import RESUMED
from suture.errors import StorageError
from suture.interfaces.narrative.event_text import render_event

EVERY_S = 0.1
"""Seconds between two looks at how long the ledger is."""
HEARTBEAT_S = 15.0
"""So that nobody on the way takes a quiet stream for a dead one."""
MOST_AT_ONCE_BYTES = 2**20
MOST_LINE_BYTES = 16 * 2**20
RETRY_MS = 1000
"""How long a browser waits before it asks again for a stream that broke off."""
ENDED = b"event: end\ndata: {}\n\n"


class _Place:
    """How far a listener has read, and what the run's last events said of its end."""

    def __init__(self, seen: int, run: str, *, told: bool) -> None:
        self._run = run
        self._told = told
        self.offset = 0
        self.seen = seen
        self.ended = False
        self.kind = ""

    def take(self, line: bytes) -> bytes | None:
        """A line of the ledger as an event; `None` where it is none, or was seen."""
        try:
            plain = json.loads(line)
            seq, self.kind = int(plain["seq"]), str(plain["kind"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None  # cut short by a crash
        self.ended = self.kind in FINAL_EVENT_KINDS or (self.ended and self.kind != RESUMED)
        if seq <= self.seen:
            return None
        if self._told:
            plain["told"] = self._words(line)
        data = json.dumps(plain, separators=(",", ":"))
        return f"id: {seq}\nevent: {self.kind}\ndata: {data}\n\n".encode()

    def _words(self, line: bytes) -> str | None:
        try:
            event = parse_event(line, where="a line", run=self._run)
        except StorageError as fault:
            return f"(not readable: {fault.message})"
        return render_event(event) if event is not None else None


async def stream_events(
    folder: RunFolder,
    *,
    is_active: Callable[[], bool],
    is_stopping: Callable[[], bool],
    seen: int = -1,
    told: bool = False,
) -> AsyncIterator[bytes]:
    """The events after the last one seen, as they are written, until the run is over.

    Args:
        folder: The run's; it may not be there yet.
        is_active: Whether somebody works on the run, or will.
        is_stopping: Whether the server is being stopped; the stream breaks off then.
        seen: The number of the last event that the listener has.
        told: Whether each event also says in words what has happened, as `suture show` does.
    """
    yield f"retry: {RETRY_MS}\n\n".encode()
    place, told_s = _Place(seen, folder.id, told=told), time.monotonic()
    while not is_stopping():
        # Asked before the file is read: what was written until then is read below.
        quiet = not is_active() and not _is_written(folder)
        lines = _lines_after(folder.ledger_path, place)
        for line in lines:
            if (event := place.take(line)) is not None:
                yield event
                told_s = time.monotonic()
        if lines:
            continue
        if quiet and (place.ended or place.kind != PARKED):
            yield ENDED
            return
        if time.monotonic() - told_s >= HEARTBEAT_S:
            yield b": still here\n\n"
            told_s = time.monotonic()
        await asyncio.sleep(EVERY_S)


def _is_written(folder: RunFolder) -> bool:
    try:
        return is_being_written(folder)
    except FileNotFoundError:
        return False


def _lines_after(path: Path, place: _Place) -> list[bytes]:
    """Some whole lines from a place on, which moves behind them; none where there is no more yet."""
    try:
        if path.stat().st_size <= place.offset:
            return []
        with path.open("rb") as file:
            file.seek(place.offset)
            content = file.read(MOST_AT_ONCE_BYTES)
            if b"\n" not in content:
                content += file.readline(MOST_LINE_BYTES)
    except FileNotFoundError:
        return []
    whole = content[: content.rfind(b"\n") + 1]
    place.offset += len(whole)
    return whole.split(b"\n")[:-1]
