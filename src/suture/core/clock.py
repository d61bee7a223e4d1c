"""The source of time for a run. Tests pass their own `Clock` and need not wait."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells a run what time it is."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()
