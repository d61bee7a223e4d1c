"""Judging candidates: what a candidate must pass, how its tests run, and what their verdict is worth.

This package owns test runners and their reports, the split verdict and nonce mode, triage of failing tests,
trial runs, signs of tampering, coverage, mutation testing, minimisation and certificates. It must not propose
code, and no candidate may choose how it is judged.
"""

from suture.judge.extraction.call_examples import extract_calls, find_unread_calls
from suture.judge.extraction.doctest_examples import extract_asserts
from suture.judge.extraction.prose_examples import extract_examples, find_unread_examples
from suture.judge.protected_files import (
    find_protected_files,
    find_protected_paths,
    find_tidiable_files,
    is_dependency_file,
)
from suture.judge.suite import Suite, prepare_suite
from suture.judge.triage import (
    RerunFailures,
    TriageResult,
    has_endless_loops,
    triage_endless_tests,
    triage_failures,
)
from suture.judge.verdicts import check_candidate, grade_program

__all__ = [
    "RerunFailures",
    "Suite",
    "TriageResult",
    "check_candidate",
    "extract_asserts",
    "extract_calls",
    "extract_examples",
    "find_protected_files",
    "find_protected_paths",
    "find_tidiable_files",
    "find_unread_calls",
    "find_unread_examples",
    "grade_program",
    "has_endless_loops",
    "is_dependency_file",
    "prepare_suite",
    "triage_endless_tests",
    "triage_failures",
]
