"""Triage: whether failing tests fail because of the code at all, before anything is spent on a repair.

This package owns the rules that recognise faults of the environment, suspect tests, flaky tests and
order-dependent tests, the experiments that show why a test is flaky, and the quarantine that is offered for it. It
changes nothing, and it must not propose code.
"""

from suture.judge.triage.flaky_conditions import AdverseRun, FlakyTestRunner, list_adverse_runs
from suture.judge.triage.flaky_investigation import diagnose_flaky_test, make_flaky_test_runner
from suture.judge.triage.order_dependence import get_test_source, rerun_flaky_tests
from suture.judge.triage.quarantine import make_quarantine_patch
from suture.judge.triage.suspect_tests import has_endless_loops
from suture.judge.triage.triage import RerunFailures, TriageResult, triage_endless_tests, triage_failures

__all__ = [
    "AdverseRun",
    "FlakyTestRunner",
    "RerunFailures",
    "TriageResult",
    "diagnose_flaky_test",
    "get_test_source",
    "has_endless_loops",
    "list_adverse_runs",
    "make_flaky_test_runner",
    "make_quarantine_patch",
    "rerun_flaky_tests",
    "triage_endless_tests",
    "triage_failures",
]
