"""Other processes that run tests: how a worker of pytest-xdist gets this plugin, and a key of its own."""

from __future__ import annotations

import os
import sys
from hmac import digest
from typing import Any

GIVEN_TO_WORKER = "suture"
LOADED = "PYTEST_PLUGINS"


def key_of(key: bytes, name: str) -> bytes:
    """The key of another process: it signs its own lines with it, and tells nothing of this one's."""
    return digest(key, name.encode(), "sha256")


def let_workers_load(plugin: str, path: list[str]) -> None:
    """Have the processes that are started from now on load a plugin before a conftest.py.

    Args:
        plugin: Its module.
        path: Where Python looked for modules when it started.
    """
    # Workers are not told `PYTEST_ADDOPTS`, and old versions load what the command names too late.
    os.environ[LOADED] = ",".join(filter(None, (os.environ.get(LOADED), plugin)))
    kept = getattr(sys.modules.get("xdist.workermanage"), "_sys_path", None)
    if isinstance(kept, list):
        kept[:] = path  # a process that was warmed had imported xdist before it knew where the project is


def sent_to_worker(plugin: str) -> list[dict[str, Any]]:
    """What the main process has sent to this worker for us; nobody else finds it there afterwards."""
    others = [name for name in os.environ.get(LOADED, "").split(",") if name and name != plugin]
    os.environ.pop(LOADED, None)
    if others:
        os.environ[LOADED] = ",".join(others)
    frame = sys._getframe()  # type: Any
    while frame is not None:
        # The program of a worker has it before it asks pytest for anything, and no hook of pytest's shows it.
        if frame.f_globals.get("__name__") == "__channelexec__":
            given = (frame.f_globals.get("workerinput") or {}).pop(GIVEN_TO_WORKER, None)
            return [given] if isinstance(given, dict) else []
        frame = frame.f_back
    return []
