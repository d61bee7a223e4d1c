"""Signs that a change games the tests instead of repairing the code: what its source shows in addition to passing
tests.

This package owns the signs in changes of Python files and the values of the tests that they refer to. Signs are
warnings. They decide no verdict, and what they mean to a result is up to `loop` and to certificates. Capabilities
(what a change reaches for) are in `judge.capabilities`, and what calls show is in `judge.differential`.
"""

from suture.judge.signs.change_signs import FileSign, find_change_signs, find_verdict_signs
from suture.judge.signs.dead_code import count_dead_code
from suture.judge.signs.python_signs import (
    MIN_ADDED_TEST_LITERALS,
    collect_literals,
    find_python_signs,
    find_tampering_warnings,
)
from suture.judge.signs.tampering_warning import (
    CALL_CODES,
    LIMITING_CODES,
    MEMORISING_CODES,
    WEAK_CODES,
    TamperingCode,
    TamperingWarning,
    render_tampering_warning,
)
from suture.judge.signs.test_support import find_test_support_signs
from suture.judge.signs.test_values import TestValues, is_specific, read_test_texts

__all__ = [
    "CALL_CODES",
    "LIMITING_CODES",
    "MEMORISING_CODES",
    "MIN_ADDED_TEST_LITERALS",
    "WEAK_CODES",
    "FileSign",
    "TamperingCode",
    "TamperingWarning",
    "TestValues",
    "collect_literals",
    "count_dead_code",
    "find_change_signs",
    "find_python_signs",
    "find_tampering_warnings",
    "find_test_support_signs",
    "find_verdict_signs",
    "is_specific",
    "read_test_texts",
    "render_tampering_warning",
]
