"""What a change does to the tests themselves: which tests it removes, skips or loosens, and what it adds.

This package only reads two versions of the test files. Whether a loosened test mattered is decided by running the
old tests on the new code, which is not its task.
"""

from suture.judge.test_changes.assertion import TestChange, TestChangeCode, TestFileChanges
from suture.judge.test_changes.tree_test_file import compare_tests

__all__ = ["TestChange", "TestChangeCode", "TestFileChanges", "compare_tests"]
