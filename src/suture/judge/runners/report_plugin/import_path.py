"""Reporting where the test process imports modules from, so that no new file can take the place of one."""

from __future__ import annotations

import os
import sys
from typing import Any

PRIVATE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Suture's own folder, from which this plugin is imported."""


def describe_imports(root: str) -> dict[str, list[Any]]:
    """Return the fields of an event that describe the imports of this process.

    Args:
        root: Absolute path of the project's folder.

    Returns:
        `search_path`: the entries of `sys.path`, relative to the project (`.` is its folder) or absolute.
        `loaded`: [name, place] of each top-level module and namespace package. The place is a file, or a folder
        of a namespace package, relative to the project; it is empty for what is outside of the project.
    """
    entries = [_make_absolute(entry, root) for entry in list(sys.path) if isinstance(entry, str)]
    loaded = set()  # type: set[tuple[str, str]]
    for name, module in list(sys.modules.items()):
        loaded.update((str(name), place) for place in _find_places(str(name), module, root))
    return {
        "search_path": [_relative(entry, root) or entry for entry in entries if entry != PRIVATE_FOLDER],
        "loaded": [list(pair) for pair in sorted(loaded)],
    }


def _find_places(name: str, module: Any, root: str) -> list[str]:
    try:  # not getattr, which would load a lazy module
        members = object.__getattribute__(module, "__dict__")
        file = members.get("__file__")
        # Iterating over a namespace package's `__path__` would search for its folders again.
        folders = list(getattr(members.get("__path__"), "_path", None) or [])
        if isinstance(file, str):
            return [_relative(file, root)] if "." not in name else []
        places = [_relative(str(folder), root) for folder in folders]
    except Exception:  # code under test puts any object into sys.modules
        return []
    if "." in name:
        return [place for place in places if place]
    return places or [""]


def _relative(path: str, root: str) -> str:
    """Return a path relative to the project's folder; empty for Suture's own and for paths outside of it."""
    path = _make_absolute(path, root)
    if (path + os.sep).startswith(PRIVATE_FOLDER + os.sep):
        return ""
    return path[len(root) + 1 :] or "." if (path + os.sep).startswith(root + os.sep) else ""


def _make_absolute(path: str, root: str) -> str:
    # Not os.path.abspath: a test may have left the process in a folder that no longer exists.
    return os.path.normpath(os.path.join(root, path))
