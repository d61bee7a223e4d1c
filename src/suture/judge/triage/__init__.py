"""Whether failing tests fail because of the code at all, asked before anyone tries to repair it."""

from suture.judge.triage.broken_tests import has_endless_loops
from suture.judge.triage.triage import RerunFailures, TriageResult, triage_endless_tests, triage_failures

__all__ = ["RerunFailures", "TriageResult", "has_endless_loops", "triage_endless_tests", "triage_failures"]
