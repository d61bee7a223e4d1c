"""Where and with what a number was measured: no number is published without it."""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Sequence
from importlib.metadata import version

from suture.models.llama_server.thread_calibration import cpu_name


def circumstances(arguments: Sequence[str]) -> dict[str, str]:
    """Machine, versions, date and command.

    Args:
        arguments: Of the command, without the program.
    """
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_name(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "suture": version("suture"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": shlex.join(("suture", *arguments)),
    }
