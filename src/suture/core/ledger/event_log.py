"""Write a run's events into a rotating log file, one JSON object per line.

The log contains nothing but what the ledger says, so the two cannot disagree.
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

WARNING_PAYLOADS = (BudgetRefused, CandidateRegressed, CandidateUnconfirmed, MoveFailed, RoleDegraded)
logger = logging.getLogger("suture.log")


class EventLog:
    """Writes each event of a run to a log file once.

    Args:
        max_bytes: Size at which the file is rotated.
        written: Number of events of the run that an earlier process has logged. They are not logged again.
    """

    def __init__(self, path: Path, *, max_bytes: int, backups: int, written: int = 0) -> None:
        self._file: logging.handlers.RotatingFileHandler | None = None
        self._next_seq = written
        self._decision = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _LogFile(path, maxBytes=max_bytes, backupCount=backups, encoding="ascii")
        except OSError as fault:
            self._disable(path, fault)

    def write(self, event: Event) -> None:
        """Write an event unless it was logged before. If the disk fails, the log ends with a warning."""
        if isinstance(event.payload, MovesDecided):
            self._decision = event.payload.decision
        if event.seq < self._next_seq or self._file is None:
            return
        self._next_seq = event.seq + 1
        line = json.dumps(create_log_record(event, self._decision), separators=(",", ":"))
        try:
            self._file.emit(logging.LogRecord("suture", logging.INFO, "", 0, line, None, None))
        except OSError as fault:
            self._disable(Path(self._file.baseFilename), fault)

    def _disable(self, path: Path, fault: OSError) -> None:
        self.close()
        self._file = None
        logger.warning("the log %r cannot be written: %s; the run continues", str(path), fault.strerror)

    def close(self) -> None:
        """Close the file. It is safe to call this twice."""
        if self._file is not None:
            self._file.close()


class _LogFile(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # the name is the library's
        """Raise the error to the caller of `emit`; the library would print it."""
        raise  # the library calls this method while it handles an exception


def create_log_record(event: Event, iteration: int) -> dict[str, Any]:
    """Return the JSON value of a log line.

    Args:
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
    """Return the name of the module in `ledger.kinds` that declares the kind of event."""
    if isinstance(event.payload, RawPayload):
        return "unknown"
    return type(event.payload).__module__.rpartition(".")[2]


def _level(event: Event) -> str:
    payload = event.payload
    if isinstance(payload, RunFailed) or (
        isinstance(payload, RunFinished) and payload.outcome == "infra_error"
    ):
        return "ERROR"
    if isinstance(payload, WARNING_PAYLOADS):
        return "WARNING"
    return "DEBUG" if _phase(event) == "budget" else "INFO"
