"""Which tests of a report a test in a source file stands for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)
"""Matches the parameters in the id of a test of pytest."""
PLACEHOLDER = re.compile(r"%[a-z%#]|\$[\w.]+|\$\{[^}]*\}")
"""Matches what a runner of JavaScript replaces in the title of a test with a table."""


def select_ids(path: str, test: str, ids: Iterable[str]) -> frozenset[str]:
    """Return the ids that belong to a test of a file.

    Args:
        path: The test file.
        test: The test as its source names it; empty for all tests of the file.
        ids: Ids such as `FILE::CLASS::TEST[PARAMETERS]`, `FILE::GROUP > TEST` and, in Go, `PACKAGE::TEST/CASE`.
    """
    return frozenset(name for name in ids if _belongs(path, test, name))


def _belongs(path: str, test: str, check_id: str) -> bool:
    owner, _, name = check_id.partition("::")
    if path.endswith(".go"):
        folder = "" if owner == "." else owner
        return posixpath.dirname(path) == folder and test in ("", name.partition("/")[0])
    if owner != path:
        return False
    if not test or name == test or (path.endswith(".py") and PARAMETERS.sub("", name) == test):
        return True
    pieces = PLACEHOLDER.split(test)
    return len(pieces) > 1 and re.fullmatch(".*".join(map(re.escape, pieces)), name, re.DOTALL) is not None
