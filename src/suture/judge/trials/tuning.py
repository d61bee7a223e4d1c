"""Limits of trial runs, with their units and the reasons for their values.

Names that end in `_cpu_s` are CPU seconds of the test process; other seconds are wall-clock seconds. The
modules in `inside/` run in the sandbox and keep their own numbers.
"""

from __future__ import annotations

# Baseline run: trials of the unchanged code

MAX_TRACED_FAILING_TESTS = 80
"""Failing tests that are examined: each runs once more, and then once with tracing."""
MIN_BASELINE_S = 3.0
"""Time for the failing tests, however short the search is: without them there is nothing to work with."""
MIN_ENDLESS_CPU_S = 1.0
"""CPU seconds after which a failing test counts as endless, at least."""
ENDLESS_SHARE = 0.03
"""The same limit as a share of the baseline's seconds."""
KNOWN_ENDLESS_CPU_S = 0.3
"""CPU seconds of a test that already timed out in the user's run."""
NEARBY_TESTS_SHARE = 0.2
"""Share of the baseline's seconds, at most, for tracing passing tests near the failing ones."""
MAX_NEARBY_TESTS_S = 1.5
"""Seconds for the same, at most."""
TRACING_SLOWDOWN = 20.0
"""How many times longer a failing test may take while it is traced; the lines until then count."""
MAX_TRACED_COLLECTION_TESTS = 5000
"""Number of tests above which the collection itself is not traced."""
MIN_PHASE_S = 0.1
"""Time that a phase gets, at least, when the time is nearly up."""

# Limits of each test when it runs on a candidate

MIN_TEST_CPU_S = 0.1
"""CPU seconds of one test, at least: pytest itself takes a few hundredths."""
CANDIDATE_SLOWDOWN = 3.0
"""How many times longer than on the unchanged code a test may take on a candidate."""
UNMEASURED_TEST_CPU_S = 2.0
"""CPU seconds of a test that was not measured, in addition to the longest test that was."""

# Target tests: failing tests that each candidate runs first

MAX_TARGET_TESTS = 24
"""Failing tests that a candidate runs before all others."""
MAX_FIRST_FAILURES = 4
"""Failures after which a candidate is dropped if no target test has passed."""
FIRST_FAILURES_CPU_S = 0.06
"""CPU seconds of target tests that a candidate may take to show that it fixes one."""
FURTHER_FAILURES_CPU_S = 0.2
"""CPU seconds of target tests once one has passed, to tell by how many."""
QUICK_TEST_CPU_S = 0.02
"""CPU seconds of a test that may be moved in front of quicker ones."""
DIFFERENT_FAILURE_WEIGHT = 1.0
"""Weight of another place or exception, relative to running completely different lines."""

# Trials of candidates

SILENCE_S = 4.0
"""Seconds without a message, in addition to the running test's limit, after which a trial is killed."""
MAX_COVERING_TESTS = 300
"""Tests that cover a changed line and are run. Of more, an evenly spaced sample is; the verdict runs all."""
MAX_WHOLE_SUITE_S = 12.0
"""Duration of the suite above which a trial only runs covering tests; the verdict runs all."""
NO_COVERING_RUN_BELOW_S = 1.0
"""Duration of the suite below which all tests run at once, without the covering tests first."""
MAX_RESTARTS = 3
"""Restarts of a trial process that candidates end. After that, no candidate of the project is tried."""
MIN_TRIAL_S = 0.1
"""Time that a process gets, at least, when the time is nearly up."""
TRACED_TRIAL_S = 1.5
"""Time to record the lines that target tests run with a candidate from which the search continues."""
CLOCK_MARGIN_S = 0.2
"""If a trial ends so close to its end of time, the clock ended it and not an endless test."""
WORKER_START_S = 30.0
"""Time for a process to answer, in addition to the time of its command."""

# Calls of functions

CALL_CPU_S = 0.15
"""CPU seconds of one call; a longer one counts as timed out."""
CALL_GRACE_S = 2.0
"""Time after the limit in which an answer that is on its way still counts."""
