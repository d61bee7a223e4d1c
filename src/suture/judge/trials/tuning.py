"""Limits of trial runs, with their units and the reasons for their values.

Names that end in `_cpu_s` are CPU seconds of the test process; other seconds are wall-clock seconds. A number
without a stated reason was chosen by judgement and not measured. The modules in `inside/` run in the sandbox and
keep their own numbers.
"""

from __future__ import annotations

# Baseline run: trials of the unchanged code

MAX_TRACED_FAILING_TESTS = 80
"""Failing tests that are examined: each runs once more, and then once with tracing."""
MAX_TRACED_PASSING_TESTS = 240
"""Passing tests that are traced to locate a fault without a search: half of them near the failing tests, the others
spread over the suite. Chosen by judgement; not measured."""
MIN_BASELINE_S = 3.0
"""Minimum time for the failing tests, however short the search is: without them it has nothing to work with."""
ENDLESS_SHARE = 0.03
"""A failing test counts as endless after this share of the baseline's seconds, in CPU time."""
MIN_ENDLESS_CPU_S = 1.0
"""Minimum of that limit."""
KNOWN_ENDLESS_CPU_S = 0.3
"""The limit of a test that already timed out in the user's run."""
NEARBY_TESTS_SHARE = 0.2
"""Maximum share of the baseline's seconds for tracing passing tests near the failing ones."""
MAX_NEARBY_TESTS_S = 1.5
"""Maximum time for tracing them."""
TRACING_SLOWDOWN = 20.0
"""How many times longer a failing test may take while it is traced; the lines until then count."""
MAX_TRACED_COLLECTION_TESTS = 5000
"""Number of tests above which the collection itself is not traced."""
MIN_PHASE_S = 0.1
"""Minimum time of a phase when the time is nearly up."""
MIN_SILENCE_S = 8.0
"""Minimum time without a message after which a run on the unchanged code is killed."""

# Limits of each test when it runs on a candidate

MIN_TEST_CPU_S = 0.1
"""Minimum limit of one test: pytest itself takes a few hundredths of a second."""
CANDIDATE_SLOWDOWN = 3.0
"""How many times longer than on the unchanged code a test may take on a candidate."""
UNMEASURED_TEST_CPU_S = 2.0
"""What a test that was not measured is assumed to take, in addition to the longest test that was."""

# Target tests: failing tests that each candidate runs first

MAX_TARGET_TESTS = 24
"""Failing tests that a candidate runs before all others."""
MAX_FIRST_FAILURES = 4
"""Failures after which a candidate is dropped if no target test has passed."""
FIRST_FAILURES_CPU_S = 0.06
"""How long target tests may take in all to show that a candidate fixes one of them."""
FURTHER_FAILURES_CPU_S = 0.2
"""How long they may take in all once one has passed, to show how many pass."""
QUICK_TEST_CPU_S = 0.02
"""Only tests that take no longer than this may be moved in front of quicker ones."""
DIFFERENT_FAILURE_WEIGHT = 1.0
"""How much a different place or exception distinguishes two failures. Running no common line counts 1."""

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
"""Minimum time of a trial when the time is nearly up."""
TRACED_TRIAL_S = 1.5
"""Time to record the lines that target tests run with a candidate from which the search continues."""
CLOCK_MARGIN_S = 0.2
"""If a trial ends with less than this time left, the clock ended it and not an endless test."""
WORKER_START_S = 30.0
"""Time for a process to answer, in addition to the time of its command."""

# Calls of functions

CALL_CPU_S = 0.15
"""Limit of one call; a longer one counts as timed out."""
CALL_GRACE_S = 2.0
"""Time after the limit of all calls in which an answer that is on its way still counts."""
CALL_WORKER_SPARE_S = 10.0
"""How much longer than all calls the process that makes them may live."""
