"""Triage: whether failing tests fail because of the code at all, before anything is spent on a repair.

This package owns the rules that recognise faults of the environment, suspect tests, flaky tests and
order-dependent tests. It changes nothing, and it must not propose code.
"""

from suture.judge.triage.suspect_tests import has_endless_loops
from suture.judge.triage.triage import RerunFailures, TriageResult, triage_endless_tests, triage_failures

__all__ = ["RerunFailures", "TriageResult", "has_endless_loops", "triage_endless_tests", "triage_failures"]
