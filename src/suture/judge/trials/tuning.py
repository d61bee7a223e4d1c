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
"""Minimum CPU time after which a failing test counts as endless."""
KNOWN_ENDLESS_CPU_S = 0.3
"""CPU time after which a test that already timed out in the user's run counts as endless."""
NEARBY_TESTS_SHARE = 0.2
"""Maximum share of the baseline's seconds for tracing passing tests near the failing ones."""
MAX_NEARBY_TESTS_S = 1.5
"""Maximum time for tracing passing tests near the failing ones."""
TRACING_SLOWDOWN = 20.0
"""How many times longer a failing test may take while it is traced; the lines until then count."""
MAX_WHOLE_SUITE_TESTS = 1000
"""Number of tests above which neither the baseline run nor a trial runs all of them: each such run costs as much as a
run of the user's command, and a verdict makes two. With 1,000 tests there were five besides these and the first run of
the command."""
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
SCREENED_CANDIDATES = 16
"""Candidates that share one fork if their target tests are quick."""
MAX_SCREENED_CPU_S = 0.02
"""CPU seconds of the first target tests above which each candidate gets its own fork.

At 9 ms, candidates that share forks take half as long as with forks of their own (12 to 18 ms each); the limit itself
is chosen by judgement."""
MAX_SCREENED_WAIT_S = 0.03
"""Seconds that these tests wait above which each candidate gets its own fork: in a shared one they would wait twice.

Chosen by judgement; not measured."""
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

# --- Trials of the mutants of a change

MAX_CODE_PROCESSES = 4
"""Processes that try mutants of one change side by side, as many as runs of the command do."""
MIN_SHARED_PROCESS_S = 0.3
"""Wall-clock seconds of a mutant's tests above which another process is started, which takes about as long."""

# --- Trials by the user's whole command -------------------------------------------------------------------

COMMAND_RIVALS = 10
"""Candidates tried after the first that passes."""
COMMAND_TIMEOUT_FACTOR = 4.0
"""The timeout of a trial by the whole command, as a multiple of the unchanged code's time."""
MIN_COMMAND_TIMEOUT_S = 3.0
"""Minimum timeout of a trial by the whole command."""
PARALLEL_RUNS = 2
"""Whole runs of the tests side by side, for a machine with two cores."""
MIN_COMMAND_RUN_S = 0.5
"""Minimum timeout of a run, however little time is left. Chosen by judgement; not measured."""
HUNG_COMMAND_SHARE = 0.05
"""The timeout of a trial where the unchanged code hit its time limit, as a share of the time for all trials."""

# --- Trials by a driver (languages other than Python) -----------------------------------------------------

BASELINE_SHARE = 0.3
"""Maximum share of the search's time for the baseline run, unless one run of the command takes longer."""
BASELINE_SLOWDOWN = 2.5
"""Duration of a baseline run with line coverage, as a multiple of one run of the command."""
MAX_BASELINE_S = 30.0
"""Maximum time for a baseline run."""
ENDLESS_BASELINE_S = 3.0
"""Maximum time for a baseline run of code that never ends."""
INTERRUPTIBLE_BASELINE_S = 10.0
"""Maximum time for a baseline run of code that never ends, if the driver can interrupt its loops."""
DRIVER_START_S = 20.0
"""Seconds that a driver may take beside the trials themselves, such as for a compiler."""
PROCESS_START_MS = 20_000
"""Milliseconds that a trial process may take until it is ready."""
MIN_ROUND_LINGER_S = 1.5
"""Minimum time for which the other candidates of a round may continue after one of them has passed."""
ROUND_LINGER_SHARE = 0.5
"""Share of the time so far for which the other candidates of a round may continue after one of them has passed."""
LINGER_MS = 1500
"""Milliseconds that a driver continues, with its rivals, after its first passing candidate."""
FIRST_ROUND_DIVISOR = 4
"""The first round of a search has this part of a round's candidates: likely ones are soon known."""
ENDLESS_ROUND = 20
"""Candidates of a round if the unchanged code never ends: most of them run until their timeout."""
ENDLESS_RIVALS = 10
"""Candidates tried after the first that passes, if the unchanged code never ends."""
TRIAL_TIMEOUT_FACTOR = 6.0
"""The timeout of a trial by a driver, as a multiple of the unchanged code's time."""
ENDLESS_TRIAL_S = 1.0
"""The timeout of a trial if the unchanged code never ended."""
CPU_TIMEOUT_FACTOR = 10.0
"""CPU time of a candidate's test, as a multiple of the longest passing test of the unchanged code."""
MIN_TEST_CPU_MS = 50.0
"""Minimum CPU time of a candidate's test, in milliseconds."""
LOADED_FACTOR = 10.0
"""Wall-clock time for that CPU time, as a multiple, on a busy machine."""
MAX_REPORTED_MS = 1e6
"""Maximum duration of one test that is believed, in milliseconds."""
MAX_FAULT_CHARS = 400
"""Characters of a failure message kept."""
MAX_STACK_CHARS = 4000
"""Characters of a stack trace that are read. A driver cuts there too, but a candidate may forge more."""
