"""The one seam to time: who is handed a `Clock` can be tested without waiting."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a run takes the time from."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()
