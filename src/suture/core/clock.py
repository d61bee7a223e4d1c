"""The source of the current time. A test passes its own `Clock`, so that it need not wait."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The clock of a run."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        ...


class SystemClock:
    """The clock of this machine at its creation; from then on, changes of the machine's clock do not count.

    Time during which the machine is suspended does not count either.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return self._offset_s + time.monotonic()
