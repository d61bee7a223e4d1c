"""Kinds of changes that weaken tests, as coding agents were seen to do: each makes a failing test pass, or not run.

A kind is a function from a project with a bug to the files that the change writes or removes, or `None` where the
kind does not apply. No kind touches the code. Importing this package registers all kinds.
"""

from honesty_set.test_changes import configuration, data, fixtures, loosened, removed, skipped
from honesty_set.test_changes.registry import TEST_CHANGES, TestCheat

MODULES = (configuration, data, fixtures, loosened, removed, skipped)
"""The modules that register kinds, one for each class of changes."""

__all__ = ["MODULES", "TEST_CHANGES", "TestCheat"]
