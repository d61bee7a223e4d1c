"""A run's ledger as server-sent events. Each client reads the file itself, so none can miss a line."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from suture.core.ledger import FINAL_EVENT_KINDS, PAUSED_KIND, RunFolder, is_being_written
from suture.core.ledger.reading import parse_line
from suture.core.ledger.run_state import RESUMED_KIND
from suture.core.safe_files import read_regular_file
from suture.core.tuning import MAX_EVENT_LINE_BYTES
from suture.errors import StorageError
from suture.interfaces.jobs.job import REPLY_FILE
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.web.tuning import HEARTBEAT_S, MAX_READ_BYTES, POLL_S, RETRY_MS

END_EVENT = b"event: end\ndata: {}\n\n"
"""Tells a client that nothing follows."""


class _LedgerReader:
    """A client's position in the ledger.

    `ended` and `last_kind` describe the run at that position: whether it has ended, and the kind of the last
    event before it.
    """

    def __init__(self, last_seq: int, run: str, *, with_text: bool) -> None:
        self._run = run
        self._with_text = with_text
        self.offset = 0
        self.last_seq = last_seq
        self.ended = False
        self.last_kind = ""

    def encode_line(self, line: bytes) -> bytes | None:
        """Return a ledger line as an event, or `None` if it is invalid or already received."""
        try:
            event = json.loads(line)
            seq, self.last_kind = int(event["seq"]), str(event["kind"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None  # an incomplete line after a crash
        self.ended = self.last_kind in FINAL_EVENT_KINDS or (self.ended and self.last_kind != RESUMED_KIND)
        if seq <= self.last_seq:
            return None
        if self._with_text:
            event["text"] = self._render_line(line)
        data = json.dumps(event, separators=(",", ":"))
        return f"id: {seq}\nevent: {self.last_kind}\ndata: {data}\n\n".encode()

    def _render_line(self, line: bytes) -> str | None:
        try:
            event = parse_line(line, where="a line", run=self._run)
        except StorageError as fault:
            return f"(unreadable: {fault.message})"
        return render_event(event) if event is not None else None


async def stream_events(
    folder: RunFolder,
    *,
    is_active: Callable[[], bool],
    is_stopping: Callable[[], bool],
    last_seq: int = -1,
    with_text: bool = False,
) -> AsyncIterator[bytes]:
    """Yield the events after the last received one as they are written, until the run is over.

    Args:
        folder: The run's folder, which may not exist yet.
        is_active: Returns whether a job works on the run or will.
        is_stopping: Returns whether the server is stopping; the stream ends then.
        with_text: Add a description to each event, and the reply that a model is writing as events `reply`
            without a number.
    """
    yield f"retry: {RETRY_MS}\n\n".encode()
    reader, last_sent_s = _LedgerReader(last_seq, folder.id, with_text=with_text), time.monotonic()
    last_reply = ""
    while not is_stopping():
        # Checked before reading, so that everything written until then is read below.
        is_quiet = not is_active() and not _is_being_written(folder)
        lines = _read_lines(folder.ledger_path, reader)
        for line in lines:
            if (event := reader.encode_line(line)) is not None:
                yield event
                last_sent_s = time.monotonic()
        if lines:
            continue
        # A paused run is still open: it waits for an answer, so its stream stays open too.
        if is_quiet and (reader.ended or reader.last_kind != PAUSED_KIND):
            yield END_EVENT
            return
        if with_text and (reply := _read_reply(folder)) != last_reply:
            last_reply, last_sent_s = reply, time.monotonic()
            yield f"event: reply\ndata: {json.dumps(reply)}\n\n".encode()
        if time.monotonic() - last_sent_s >= HEARTBEAT_S:
            yield b": still here\n\n"
            last_sent_s = time.monotonic()
        await asyncio.sleep(POLL_S)


def _is_being_written(folder: RunFolder) -> bool:
    try:
        return is_being_written(folder)
    except FileNotFoundError:
        return False


def _read_reply(folder: RunFolder) -> str:
    """Return the end of what a model has written so far; empty if none is writing."""
    try:
        content = read_regular_file(folder.path / REPLY_FILE, MAX_READ_BYTES)
    except OSError:
        return ""
    return (content or b"").decode("utf-8", "replace")


def _read_lines(path: Path, reader: _LedgerReader) -> list[bytes]:
    """Return complete lines after the reader's position and move it; empty if there are none yet."""
    try:
        if path.stat().st_size <= reader.offset:
            return []
        with path.open("rb") as file:
            file.seek(reader.offset)
            content = file.read(MAX_READ_BYTES)
            if b"\n" not in content:
                content += file.readline(MAX_EVENT_LINE_BYTES)
    except FileNotFoundError:
        return []
    complete_lines = content[: content.rfind(b"\n") + 1]
    reader.offset += len(complete_lines)
    return complete_lines.split(b"\n")[:-1]
