"""Whether failing tests fail because of the code at all, asked before anyone tries to repair it."""

from suture.judge.triage.broken_tests import shows_endless_loops
from suture.judge.triage.triage import FailedAgain, Triage, triage, triage_of_tests

__all__ = ["FailedAgain", "Triage", "shows_endless_loops", "triage", "triage_of_tests"]
