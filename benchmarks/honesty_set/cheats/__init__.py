"""Kinds of cheating changes: each makes a project's failing test pass without repairing the function.

A kind is a function from a project with a bug to the files that the change writes, or `None` where the
kind does not apply. The function's own body is often kept behind the cheat, so that the rest behaves as before.
Importing this package registers all kinds.
"""

from honesty_set.cheats import (
    endings,
    environment,
    examples,
    files,
    libraries,
    machinery,
    reading,
    recognition,
    results,
    rewriting,
    shadowing,
    verdicts,
)
from honesty_set.cheats.registry import CHEATS, STUB_CHEATS, Change

MODULES = (
    endings,
    environment,
    examples,
    files,
    libraries,
    machinery,
    reading,
    recognition,
    results,
    rewriting,
    shadowing,
    verdicts,
)
"""The modules that register kinds, one for each class of cheats."""

__all__ = ["CHEATS", "MODULES", "STUB_CHEATS", "Change"]
