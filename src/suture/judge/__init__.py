"""Judging candidates: what a candidate must pass, how its tests run, and what their verdict is worth.

This package owns test runners and their reports, the split verdict and nonce mode, triage of failing tests,
trial runs, signs of tampering, coverage, mutation testing, minimisation and certificates. It must not propose
code, and no candidate may choose how it is judged.

Each name here is loaded when it is first used, because what starts a project's tests early needs one module only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
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

__getattr__ = lazy_exports(
    __name__,
    {
        "RerunFailures": "suture.judge.triage",
        "Suite": "suture.judge.suite",
        "TriageResult": "suture.judge.triage",
        "check_candidate": "suture.judge.verdicts",
        "extract_asserts": "suture.judge.extraction.doctest_examples",
        "extract_calls": "suture.judge.extraction.call_examples",
        "extract_examples": "suture.judge.extraction.prose_examples",
        "find_protected_files": "suture.judge.protected_files",
        "find_protected_paths": "suture.judge.protected_files",
        "find_tidiable_files": "suture.judge.protected_files",
        "find_unread_calls": "suture.judge.extraction.call_examples",
        "find_unread_examples": "suture.judge.extraction.prose_examples",
        "grade_program": "suture.judge.verdicts",
        "has_endless_loops": "suture.judge.triage",
        "is_dependency_file": "suture.judge.protected_files",
        "prepare_suite": "suture.judge.suite",
        "triage_endless_tests": "suture.judge.triage",
        "triage_failures": "suture.judge.triage",
    },
)
