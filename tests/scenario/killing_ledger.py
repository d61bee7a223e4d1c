"""A ledger that kills its process right after it has written an event."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from suture.core.ledger import Event, Ledger, Payload

ENV_WITH_TEST_PATH = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
"""The environment of a process that imports this module."""


class DeadlyLedger:
    """Kill the process right after the given number of events of one kind is on disk."""

    def __init__(self, kind: str, count: int) -> None:
        self._kind, self._left = kind, count
        self._write = Ledger.append_all

    def arm(self) -> None:
        deadly = self

        def append_all(ledger: Ledger, payloads: Sequence[Payload]) -> tuple[Event, ...]:
            events = deadly._write(ledger, payloads)
            deadly._left -= sum(event.kind == deadly._kind for event in events)
            if deadly._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return events

        setattr(Ledger, "append_all", append_all)  # noqa: B010  # a plain assignment to a method is refused
