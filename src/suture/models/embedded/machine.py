"""What this machine has for a model: cores and memory."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def usable_cores() -> int:
    """Physical cores that this process may use."""
    import psutil  # type: ignore[import-untyped]  # ships no type information

    return max(1, min(psutil.cpu_count(logical=False) or 1, len(os.sched_getaffinity(0))))


def available_bytes() -> int:
    """Memory that can be had without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


def cpu_name() -> str:
    """The processor's name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
