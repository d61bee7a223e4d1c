"""Finding the modules that tests import, whose functions decide what their asserts compare."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

IMPORT_RE = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([^\n#;(]+))", re.MULTILINE)
MODULE_RE = re.compile(rb"[A-Za-z_][\w.]*")
MODULES_WITH_EFFECTS = frozenset(
    (
        "antigravity",
        "idlelib",
        "lib2to3",
        "readline",
        "site",
        "test",
        "this",
        "tkinter",
        "turtle",
        "turtledemo",
    )
)
"""Modules that do something when they are imported, or that take long."""


def find_test_imports(sources: Iterable[bytes]) -> frozenset[str]:
    """Return the full names of the modules that some test files import.

    The files are searched with patterns, because parsing large suites takes seconds. A superfluous name does no harm.
    """
    names: set[str] = set()
    for source in sources:
        for origin, listed in IMPORT_RE.findall(source):
            parts = [origin] if origin else listed.split(b",")
            names |= {match[0].decode() for part in parts if (match := MODULE_RE.search(part))}
    return frozenset(names)


def select_libraries(names: Iterable[str]) -> frozenset[str]:
    """Return the modules of the standard library that can be imported without an effect."""
    return frozenset(
        name
        for name in names
        if (top := name.partition(".")[0]) in sys.stdlib_module_names and top not in MODULES_WITH_EFFECTS
    )
