"""Judging candidates: checks with their provenance, the suite, the verdict and its counterexamples.

This room owns how a verdict is reached: the split verdict (tests behind one wall, code behind another), nonce
mode where tests need live objects, signed reports of a user's pytest, exit status for any other command. It
must not propose code, and no candidate may choose how it is judged.
"""

from suture.judge.extraction.assert_checks import asserts_in
from suture.judge.extraction.call_examples import calls_in, unread_calls
from suture.judge.extraction.prose_examples import examples_in, unread_examples
from suture.judge.protected_files import is_made_here, refused_files
from suture.judge.suite import Suite, prepare_suite
from suture.judge.triage import FailedAgain, Triage, shows_endless_loops, triage, triage_of_tests
from suture.judge.verdicts import check_candidate, grade

__all__ = [
    "FailedAgain",
    "Suite",
    "Triage",
    "asserts_in",
    "calls_in",
    "check_candidate",
    "examples_in",
    "grade",
    "is_made_here",
    "prepare_suite",
    "refused_files",
    "shows_endless_loops",
    "triage",
    "triage_of_tests",
    "unread_calls",
    "unread_examples",
]
