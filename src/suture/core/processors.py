"""The processors of this machine."""

from __future__ import annotations

import os


def count_usable_cores() -> int:
    """Return the number of cores that this process may use. Only Linux can restrict them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
