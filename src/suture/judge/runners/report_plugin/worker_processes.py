"""Other processes that run tests: how a pytest-xdist worker gets this plugin and its own key."""

from __future__ import annotations

import os
import sys
from typing import Any

WORKER_PARAMETERS = "suture"
PLUGINS_VARIABLE = "PYTEST_PLUGINS"


def load_in_workers(plugin: str, path: list[str]) -> None:
    """Make processes that start from now on load a plugin before any conftest.py.

    Args:
        path: The module search path from when Python started.
    """
    # Workers do not get `PYTEST_ADDOPTS`, and old versions load the command's plugins too late.
    os.environ[PLUGINS_VARIABLE] = ",".join(filter(None, (os.environ.get(PLUGINS_VARIABLE), plugin)))
    search_path = getattr(sys.modules.get("xdist.workermanage"), "_sys_path", None)
    if isinstance(search_path, list):
        search_path[:] = path  # a warm process imported xdist before the project's folder was known


def take_worker_parameters(plugin: str) -> list[dict[str, Any]]:
    """Return what the main process sent to this worker for us, and remove it so that no other code finds it."""
    others = [name for name in os.environ.get(PLUGINS_VARIABLE, "").split(",") if name and name != plugin]
    os.environ.pop(PLUGINS_VARIABLE, None)
    if others:
        os.environ[PLUGINS_VARIABLE] = ",".join(others)
    frame = sys._getframe()  # type: Any
    while frame is not None:
        # The worker's own program has the input before it starts pytest, and no pytest hook provides it.
        if frame.f_globals.get("__name__") == "__channelexec__":
            parameters = (frame.f_globals.get("workerinput") or {}).pop(WORKER_PARAMETERS, None)
            return [parameters] if isinstance(parameters, dict) else []
        frame = frame.f_back
    return []
