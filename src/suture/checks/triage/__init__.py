"""Whether failing tests fail because of the code at all, asked before anyone tries to repair it."""

from suture.checks.triage.triage import Triage, triage, triage_of_tests

__all__ = ["Triage", "triage", "triage_of_tests"]
