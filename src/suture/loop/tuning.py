"""Tuning constants of the loop: each with its unit, and the reason or measurement that is known for it."""

from __future__ import annotations

# --- Intake ---------------------------------------------------------------------------------------------

MAX_TEST_FILE_BYTES = 4 * 2**20
"""Largest test file, `conftest.py` or sample data that a task is built from."""
MAX_TEST_NAME_CHARS = 100
"""Longest file name of a test that is given with a new project."""
MAX_BUG_REPORT_CHARS = 6000
"""Characters of a bug report that are kept; a longer one is cut in the middle."""
MAX_REQUESTED_FILES = 30
"""File names read from a statement; chosen without a measurement."""
MAX_STATEMENT_SCAN_CHARS = 100_000
"""Characters of a statement that are searched for file names. Chosen by judgement; not measured."""
REQUEST_WORDS_CHARS = 80
"""Characters before a file name in which words that ask for the file are looked for. Chosen by judgement; not
measured."""
MAX_CALL_CHARS = 500
"""Characters within which the closing bracket of a call in a statement is looked for."""

# --- Suite ----------------------------------------------------------------------------------------------

MAX_RUN_SHARE = 0.6
"""Share of the run's remaining time that one run of the tests may take: a repair of them needs another run."""

# --- Policy ---------------------------------------------------------------------------------------------

MIN_CANDIDATES_TO_COMPARE = 5
"""Candidates that generated tests must have been tried on before a run without other tests gives up."""
ROUNDS_WITHOUT_NEW_CODE = 2
"""Rounds without new code after which a run is stuck; after half as many it changes its approach."""
SAME_FAILURE_ROUNDS = 4
"""A run is stuck after more consecutive rounds than this with the same failure and no progress."""
NUDGE_ROUNDS = 3
"""Consecutive rounds with the same failure and no progress after which a run changes its approach."""

# --- Judging --------------------------------------------------------------------------------------------

CONCURRENT_CHECKS = 4
"""Candidates that are judged at the same time."""
CONCURRENT_RUNS_TIME = 2.0
"""Two runs of the suite start side by side only if there is time for this many runs one after the other. On a
busy machine both may take as long as that, and neither would finish."""
STUCK_RUN_FACTOR = 4.0
STUCK_RUN_EXTRA_S = 5.0
"""The second of two runs counts as hanging, not as short of time, after `STUCK_RUN_FACTOR` times the duration
of the first run and `STUCK_RUN_EXTRA_S` seconds."""
MAX_REMEMBERED_VERDICTS = 4
"""Verdicts that stay in memory: that on the user's own code, and those of the current candidate's runs. One of 20,000
tests takes some 10 MB."""
MAX_FLAKY_SHARE = 0.5
"""Tests that fail on a candidate, as a share of those that pass, up to which they are run again. Chosen by judgement;
not measured."""
MIN_CLEAN_SHARE = 0.5
"""Share of the runs under adverse conditions that must end, all of them cleanly, before a repair of a flaky test
counts. Chosen by judgement."""
FLAKY_REPAIR_SHARE = 0.5
"""Largest share of the remaining time in which the repair of a flaky test runs under adverse conditions. Chosen by
judgement; not measured."""
REPORTING_RESERVE_S = 1.0
"""Seconds at the end of the run that are kept for reporting the result of a single run of the suite."""
MAX_JUDGED_REPAIRS = 8
"""Repairs of a search that the suite of deciding checks judges, the most likely first; judging stops at the first
that passes."""
MAX_CHOICE_MUTATION_S = 20.0
"""Seconds for mutants before a model is asked about a repair without rivals."""
MAX_SHOWN_VERSIONS = 5
"""Repairs between which a model chooses. A search seldom finds more that behave differently."""
MAX_SHOWN_TESTS = 3
"""Failing tests whose source a model is shown when it chooses between repairs."""
UNPARSED_EXCERPT_LINES = 60
"""Lines around a change that a model is shown of a file in a language other than Python."""
MAX_SANDBOX_FAULTS = 2
"""Sandbox failures after which no further repair of a search is judged."""
MAX_DIVERGENCE_FACTS = 3
"""Failures whose calls are traced: each costs a run, and a prompt has room for few."""
MAX_DIVERGENCE_CHANGES = 2
"""Partial repairs, the best first, with which a traced call is compared."""

# --- Search ---------------------------------------------------------------------------------------------

SEARCH_DEFAULT_S = 60.0
"""Seconds of a search where the run has no time limit: its worker process must be given an end."""
CAPABLE_TRIAL_S = 8.0
"""Seconds of trials before a capable model is asked: about as long as its first reply takes. The search alone heals 1
of 25 bug-fix commits in 120 s, but 19 of 20 QuixBugs programs among at most 720 candidates, of which two slow cores
try a hundred in a second."""
CAPABLE_TREE_TRIAL_S = 15.0
"""Seconds of trials before a capable model is asked, in languages other than Python, where a round of trials begins
with a compiler or a test runner."""
SEARCH_SHARE = 0.5
"""Largest share of the remaining seconds that a search may use where a model can be asked afterwards."""
VERDICT_RUNS = 2
"""Runs of the tests that a found repair needs, in units of the first run: the two runs of its verdict, side
by side, and one run of its certification."""
VERDICT_RESERVE_S = 5.0
"""Seconds kept in addition: ranking, the certificate and the delivery take some, however short the tests are."""
VERDICT_ONLY_RUNS = 1.5
VERDICT_ONLY_S = 2.0
"""Time that a verdict alone needs, in units of the first run and in seconds; a certificate says what there was no time
to measure."""
VERIFICATION_RUNS = 6
VERIFICATION_S = 30.0
"""Time that `resume` adds to a spent limit to verify a repair that was found, in units of the first run and in seconds:
the tests are collected again, two runs judge the repair, and one certifies it. This is twice what they take, because
the machine was too busy the first time."""
MAX_RESERVE_SHARE = 0.6
"""Largest share of the remaining seconds that is kept from the search for verdict and certification."""
SINGLE_RUN_FACTOR = 1.2
SINGLE_RUN_S = 4.0
"""Time that ranking and one run of the tests need, in units of the first run and in seconds; with less, nothing
can be delivered."""
MAX_SINGLE_RUN_SHARE = 0.85
"""Largest share of the remaining seconds that is kept for one run; where it takes more, no repair can be
judged at all."""
UNKNOWN_DURATION_SHARE = 0.3
"""Minimum share of the remaining seconds that is kept if no test passed, because then it is unknown how long the tests
take."""
POOL_GRACE_S = 60.0
"""Seconds that the worker processes of a search may outlive the run's limit; the run itself ends them."""
MIN_RANKING_S = 2.0
"""Seconds for ranking even where the search has used its own: unranked repairs are worth little."""
MAX_HISTORY_RUN_S = 30.0
"""Seconds of one run of the failing tests on an earlier commit; slower tests do not make a search faster."""

# --- First run of the tests -----------------------------------------------------------------------------

HEAL_RUNS = 4
"""Runs of the tests that a heal takes: the first run, a search, and the two of a verdict."""
BUSY_MACHINE_FACTOR = 2
"""Factor by which a run may take longer on a busy machine before it is cut off again."""

# --- Judging a user's program -------------------------------------------------------------------------

MAX_GATE_REASONS = 10
"""Findings, and failing tests, that the program is told after a turn. Chosen by judgement; not measured."""

# --- Writing a test for a bug report --------------------------------------------------------------------

MAX_TEST_ATTEMPTS = 3
"""Tests that are requested until one fails on the present code; a person's hint starts the count again."""
TEST_RETRY_TEMPERATURE = 0.6
"""Sampling temperature of the attempts after the first, which is greedy."""

# --- What the ledger and the results list: chosen by judgement; not measured ----------------------------

MAX_LISTED_TESTS = 500
MAX_LISTED_LINES = 40
MAX_LISTED_CHECKS = 50
MAX_LISTED_FINDINGS = 20
MAX_LISTED_RIVALS = 5
MAX_LISTED_PARTIAL_REPAIRS = 5
MAX_LISTED_NEAR_MISSES = 3
MAX_LISTED_STATEMENT_CHARS = 2000
MAX_COMPARED_ATTEMPTS = 4
"""Earlier candidates that the debugger can compare with the failing one."""
MAX_CONFIRMED_CLUES = 3
"""Partial repairs on which all tests are run, without a model, until one of them breaks none. Chosen by judgement."""
QUICK_CLUE_RUN_S = 10.0
"""Seconds of the tests above which they run on the best partial repair only. Chosen by judgement."""
MAX_TEST_OUTPUT_CHARS = 300
MAX_RECIPE_BYTES = 64 * 2**10
