"""A run's events as structured log lines: JSON, one event a line, in a file that rotates.

It reads the ledger like everyone else and adds nothing of its own, so a log and a ledger cannot differ.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suture.core.ledger.event import Event, RawPayload
from suture.core.ledger.kinds import (
    BudgetRefused,
    CandidateRegressed,
    CandidateUnconfirmed,
    MoveFailed,
    MovesDecided,
    RoleDegraded,
    RunFailed,
    RunFinished,
)

PHASES = {
    "runs": "run",
    "rounds": "candidates",
    "searching": "search",
    "calls": "model",
    "advice": "roles",
    "spending": "budget",
    "people": "review",
    "proofs": "proof",
}
"""Part of `ledger.kinds` -> what a log calls it; any other goes by its own name."""
WARNINGS = (BudgetRefused, CandidateRegressed, CandidateUnconfirmed, MoveFailed, RoleDegraded)
log = logging.getLogger("suture.log")


class EventLog:
    """Writes events to a log, each once.

    Args:
        path: The file; older ones get the endings `.1`, `.2` and so on.
        most_bytes: At this size the file is put aside and a new one begun.
        kept: How many older files are kept.
        seen: Events of the run that were there before, and are not written again.
    """

    def __init__(self, path: Path, *, most_bytes: int, kept: int, seen: int = 0) -> None:
        self._file: logging.handlers.RotatingFileHandler | None = None
        self._next = seen
        self._iteration = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _File(path, maxBytes=most_bytes, backupCount=kept, encoding="ascii")
        except OSError as fault:
            self._give_up(path, fault)

    def write(self, event: Event) -> None:
        """Write an event, unless it was written before; a log that fails costs a warning, never the run."""
        if isinstance(event.payload, MovesDecided):
            self._iteration = event.payload.decision
        if event.seq < self._next or self._file is None:
            return
        self._next = event.seq + 1
        line = json.dumps(log_record(event, self._iteration), separators=(",", ":"))
        try:
            self._file.emit(logging.LogRecord("suture", logging.INFO, "", 0, line, None, None))
        except OSError as fault:
            self._give_up(Path(self._file.baseFilename), fault)

    def _give_up(self, path: Path, fault: OSError) -> None:
        self.close()
        self._file = None
        log.warning("the log %r cannot be written: %s; the run goes on", str(path), fault.strerror)

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        if self._file is not None:
            self._file.close()


class _File(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # the library's name
        """Leave the error to whoever writes; the library would print it."""
        raise  # it is called where an exception is being handled


def log_record(event: Event, iteration: int) -> dict[str, Any]:
    """An event as a log line's JSON value.

    Args:
        event: Of any kind.
        iteration: Number of the last decision; 0 before the first.
    """
    return {
        "timestamp": datetime.fromtimestamp(event.time_s, UTC).isoformat(timespec="milliseconds"),
        "level": _level(event),
        "task_id": event.run,
        "iteration": iteration,
        "phase": _phase(event),
        "event": event.kind,
        "data": dict(event.data),
    }


def _phase(event: Event) -> str:
    if isinstance(event.payload, RawPayload):
        return "unknown"
    part = type(event.payload).__module__.rpartition(".")[2]
    return PHASES.get(part, part)


def _level(event: Event) -> str:
    payload = event.payload
    if isinstance(payload, RunFailed) or (
        isinstance(payload, RunFinished) and payload.outcome == "infra_error"
    ):
        return "ERROR"
    if isinstance(payload, WARNINGS):
        return "WARNING"
    return "DEBUG" if _phase(event) == "budget" else "INFO"
