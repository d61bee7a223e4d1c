"""The judge's tuning numbers: limits and tolerances, each with its unit and the reason for its value.

A number without a stated reason was chosen by judgement and not measured. Programs that run inside the sandbox
cannot import this table and keep their own numbers.
"""

# Programs inside the sandbox

ADDRESS_SPACE_MB = 1 << 20
"""Address space of a compiler or of node, which reserve gigabytes that they never use.

The memory that they do use is limited by the setting `total_memory_mb`.
"""
MIN_COMPILER_PROCESSES = 512
"""Each process of a compiler or of node runs about a dozen threads, which count as processes."""
COMPILER_CACHE_MB = 1024
"""Disk that a compiler's own cache needs, if the memory limit leaves room for it."""
CORES_PER_PROGRAM = 4
"""CPU seconds that a program in a compiled language may use per wall-clock second."""
PROGRAM_LIFETIME_S = 24 * 3600
"""Lifetime of a program with which the host exchanges messages; each exchange has its own limit."""

# Test runners and reports

MAX_OUTPUT_CHARS = 8000
"""Characters of a run's output that a verdict keeps: the first and the last half of them."""
MAX_EXCEPTION_CHARS = 500
"""Characters of the exception that kept pytest from collecting a test."""
MAX_MESSAGE_CHARS = 4000
"""Characters of its message with all lines."""
MAX_MACHINERY_NAME_CHARS = 200
"""Characters of the name of a changed part of the test machinery; code under test may have chosen it."""
LIMIT_TOLERANCE_S = 0.5
"""Seconds by which a run may end before the limit of its only test: both limits are the whole time then."""
MAX_RECORDED_RUN_BYTES = 48 << 20
"""Size of a recorded run: its collected files alone may have 32 MiB before they are packed."""
MAX_ALL_RECORDED_RUNS_BYTES = 256 << 20
"""Size of the recorded runs of all projects together."""
MAX_RECORDED_RUN_AGE_S = 30 * 86400.0
"""Age of a recorded run that was not used since."""
MAX_GO_PACKAGES = 400
"""Package names that a project's files may request; the project wrote them, and each one is compiled."""
GO_COMPILE_ROUNDS = 8
"""Runs that fill the Go build cache; each can return only part of it."""
GO_COMPILE_TIMEOUT_S = 300.0
"""Maximum wall-clock seconds of one run that fills the Go build cache."""
MAX_GO_CACHE_BYTES = 512 << 20
"""Unpacked size of the Go build cache. The archive comes out of the sandbox, so its size is only a claim."""

# Split verdict

MAX_FAULT_CHARS = 4000
"""Characters of a program's own message about its failure; code under test may have written it."""
MAX_EXCEPTION_BASES = 10
"""Class names of an exception that are accepted; an honest candidate sends at most 8 (`MAX_BASE_NAMES`)."""
JUDGE_GRACE_S = 5.0
"""Seconds for the judge to interpret the candidate's death, even if the test's own time is up."""
NONCE_GRACE_S = 5.0
"""Seconds that the sandbox lets a program in nonce mode live beyond the test's limit. The host enforces that limit
itself, so the sandbox's own limit must come later; the difference covers the time before and after the wait."""
MAX_IDLE_JUDGES = 4
"""Judges that wait for work in one sandbox; each occupies a slot of the sandbox."""
JUDGE_RELEASE_S = 2.0
"""Seconds within which a judge must be done with the last verdict."""
MAX_ANSWER_BYTES = 4 << 20
"""Size of one answer that a call driver sends back."""
MAX_PROTECTED_RUNS = 20
"""Runs of one check with protected arguments. Each may show one more variable that the check inspects; the tests
of the corpus need at most four. Chosen by judgement; not measured."""
MAX_UNANSWERED_CALLS = 3
"""Number of calls without an answer after which the remaining calls of a candidate are not made."""
CLOCK_TOLERANCE_S = 0.05
"""Seconds by which two clocks may differ on whether an answer was in time."""
MAX_VALUE_DEPTH = 64
"""Levels of an answer; the walk is recursive, and answers come from untrusted code."""
MAX_VALUE_CHARS = 400
"""Characters of a value in a counterexample."""

# Extraction of checks from text

MAX_CHECK_ID_CHARS = 100
"""Characters of a check's id; a longer assert is cut and gets a hash."""
MAX_QUOTE_CHARS = 60
"""Characters of a passage that is quoted because no check was made from it."""
MAX_EXAMPLE_CALLS = 200
"""Calls that are read in one statement or test file; one written by a person contains about a dozen."""
MAX_NAMED_INPUT_CHARS = 1000
"""Characters of the input in `Input: x = 1 Output: 3`."""
MAX_METHOD_CALLS = 10
"""Chained method calls after a call."""
MAX_EXPRESSION_CHARS = 2000
"""Characters within which a literal or a call must end."""
MAX_LITERAL_ENDS = 40
"""Positions that are tried as the end of a result in another language, longest first."""
MAX_WRAPPER_CHARS = 80
"""Characters before a call in which its assert, its `expect` or its prompt must begin."""

# Smoke checks

STEPS_SHARE = 0.9
"""Share of the time limit that all steps together may use; the rest is for the start and the report."""
MAX_SHOWN_RUNS = 40
"""Commands, and as many requests, of one statement that are checked."""
MAX_STATEMENT_CHARS = 100_000
"""Characters of a statement that are searched for shown runs."""

# Mutation testing of a change

SELECTED_MUTANTS = 12
"""Mutants to run, if there are as many. It is not a setting: a user could choose a flattering number, and a replay
would not agree with it."""
MAX_MUTATED_STATEMENTS = 40
"""Statements that mutants are generated from. A long change has hundreds of thousands of mutants."""
MIN_NOTICED_SHARE = 0.5
"""Share of the mutants of the changed lines below which the tests say too little about a repair."""
MIN_JUDGED_MUTANTS = 4
"""Minimum number of mutants for which `MIN_NOTICED_SHARE` is judged; a share of fewer says nothing."""
MAX_GENERATED_MUTANTS = 4_000
"""Maximum number of mutants from which `SELECTED_MUTANTS` are chosen: a long change has many more."""
MUTANTS_PER_ROUND = 4
"""Mutants that run at once. The clock is checked after each round, so larger rounds overshoot more."""
MUTANTS_PER_YIELD = 16
"""Mutants that are generated, in a few milliseconds, before the event loop gets its turn."""
MIN_MUTANT_TIMEOUT_S = 10.0
"""Minimum wall-clock seconds for a mutant's run, however short the run of the suite was."""
MUTANT_TIMEOUT_FACTOR = 5
"""How many times longer than the suite a mutant's run may take. Many mutants never end."""

MIN_MUTANT_CPU_S = 0.5
"""Minimum CPU seconds after which one test on a mutant counts as endless, in a process that has collected the tests.
Chosen by judgement: most tests take milliseconds."""

# Minimisation of a change

MAX_RESTORED_BLOCKS = 3
"""Removed blocks of an author's change without whose removal the tests run again: each costs a run, and few changes
remove code at more places."""
MAX_TRIED_PARTS = 2_000
"""Subsets of a change that are examined. Most do not parse and cost no run, but they cost time too."""
MAX_NAME_CHARS = 100
"""Characters of a string literal that may name a file or a function; longer ones are prose."""
COMPARED_INPUTS = 60
"""Inputs near those of the tests on which a part of a change is compared with the whole."""
COMPARED_EDGE_INPUTS = 18
"""Inputs at the edges of their types on which a part of a change is compared with the whole."""
MAX_COMPARED_FUNCTIONS = 8
"""Functions of a change on which a part of it is compared with the whole. Each takes some of certification's
seconds."""
BASELINE_TIMEOUT_S = 20.0
"""Wall-clock seconds to record the tests' calls; the time that certification has left may be less."""
COMPARISON_TIMEOUT_S = 15.0
"""Wall-clock seconds to compare the answers; the time that certification has left may be less."""

# Triage of failing tests

MIN_RERUN_TIMEOUT_S = 5.0
"""Minimum wall-clock seconds for a rerun, however short the first run was."""
MIN_FRESH_RUN_TIMEOUT_S = 30.0
"""Minimum wall-clock seconds for a rerun that starts an interpreter, which takes more than 5 s on a machine with nine
busy processes for each core."""
RERUN_TIMEOUT_FACTOR = 3
"""How many times longer than the first run a rerun may take."""
ENDLESS_PROBE_TIMEOUT_S = 5.0
"""Wall-clock seconds in which a test whose source shows an endless loop may prove that it ends."""
MAX_ISOLATED_RERUNS = 8
"""Tests that are rerun alone. Of more failing tests the first ones stand for the rest."""
MAX_FLAKY_RERUNS = 8
"""Further runs in which a test must show that it is flaky. One that fails in a quarter of its runs shows it in 90 % of
cases."""
MAX_FLAKY_PROOF_RERUNS = 24
"""Runs on the unchanged files in which a test must fail once if a certificate calls it flaky and it fails with the
change. Of certificates with a test that fails in 3 % of its runs, whatever the code is, at most 9 % are refuted
wrongly; with eight runs it would be 25 % at worst."""
MAX_FLAKY_COMPLETE_RERUNS = 3
"""Maximum number of runs of all tests in which a test that fails only after others, or in a random order, must show
that it is flaky."""

# Investigation of flaky tests

STATISTICS_RUNS = 5
"""Runs of a flaky test in the whole suite, and alone, before anything is fixed: one that fails in a third of its runs
fails in 87 % of such series."""
FIXED_RUNS = 3
"""Runs for each value of a fixed condition. With an even chance, a test that the condition does not decide ends three
times the same way in a quarter of cases."""
MIN_FIXED_VALUES = 3
"""Values of a fixed condition for which a test must end the same way each time. That happens by chance in one of 64
cases, and half of these end alike."""
MAX_FIXED_VALUES = 8
"""Maximum number of values of a condition that are tried until the test has both passed and failed."""
RANDOM_ORDERS = 3
"""Random orders of the whole suite, in an investigation and in the acceptance of a repair."""
SHARED_VALUES = 3
"""Values of the conditions that are not the cause, in the acceptance of a repair."""
MAX_OTHER_TESTS = 4
"""Tests that together disturb another one; a longer list explains nothing."""
MAX_OTHER_TESTS_RUNS = 60
"""Runs to find the tests that disturb another one. Finding one among a thousand tests takes about 21."""
MAX_INVESTIGATED_TESTS = 3
"""Flaky tests of one run that are investigated; the others are only named."""
INVESTIGATION_SHARE = 0.5
MAX_INVESTIGATION_S = 120.0
"""Largest share of the remaining time, and seconds, of an investigation; an outcome and a model need the rest."""

# Trust in generated checks

CHECK_BATCH = 8
"""Generated checks that run on a candidate in one go; after each batch, time-outs are counted."""
MAX_CHECK_TIMEOUTS = 2
"""Checks in which a candidate may time out before it is skipped: further checks make the same calls."""

# Comparison of candidates

FIRST_CALL_BATCH = 6
"""Calls in the first batch. It is small, to find candidates that never end before much time is lost."""
CALL_BATCH = 18
"""Calls in each further batch."""
MAX_CALL_TIMEOUTS = 2
"""Calls in which a candidate may time out before it gets no further calls: each costs its whole limit."""
MAX_SHOWN_DIFFERENCES = 5
"""Distinguishing calls that a comparison reports."""
MAX_PROPOSED_CALLS = 24
"""Calls of new code that are tried to find results for a person to confirm."""
MAX_PROPOSED_EXAMPLES = 5
MAX_DIFFERING_EXAMPLES = 2
"""Results that a person is asked about, and how many of them at most are calls on which versions differ."""
MAX_RAISING_CALLS = 2
"""Calls that raise an exception and are shown beside the results. Chosen by judgement; not measured."""
MAX_EXAMPLE_CHARS = 120
"""Maximum characters of a call, and of a result, that a person can check at a glance. This limit and the three above
are chosen by judgement."""
PROPOSED_CALL_TIMEOUT_S = 2.0
PROPOSALS_TIMEOUT_S = 20.0
"""Wall-clock seconds of one call that is tried to find a result for a person, and of all of these calls."""
TRIES_PER_INPUT = 40
"""Attempts to generate each input."""
MAX_LIST_ITEMS = 64
"""Items of a list that is made as long as a length that some code names."""
MAX_LITERAL_CHARS = 1000
"""Characters of a string literal of the code that is used as an input."""
MAX_LITERAL_NUMBER = 1 << 64
"""Largest number literal of the code that is used as an input."""

# Changes that serve only the tests' examples

MAX_EXAMPLE_TESTS = 24
"""Fixed tests whose calls are recorded."""
MAX_EXAMPLE_FUNCTIONS = 4
"""Functions of a change whose calls are compared."""
MAX_COMPILED_EXAMPLE_FUNCTIONS = 2
"""Functions of a change whose calls are compared, where each function has to be compiled."""
MAX_TABLE_ROWS = 60
"""Rows of a table in a test of JavaScript, TypeScript or Go that become calls."""
MAX_EXAMPLES = 40
"""Calls of one function by the tests that are made again."""
NEAR_EXAMPLE_INPUTS = 60
"""Inputs near the examples of one function that are generated at random."""
NEAR_CONSTANT_INPUTS = 40
"""Further inputs that the code's constants suggest, such as a year 400 years later."""
EXAMPLE_CALL_TIMEOUT_S = 1.0
"""Wall-clock seconds of one call by the split verdict."""
MIN_NEIGHBOURS = 8
"""Minimum number of inputs near the examples that must be informative.

With this limit and the next two, none of 420 known repairs (QuixBugs, HumanEvalFix, Refactory, `honesty_set`) counts as
memorised, and nine in ten of the changes that memorise (2026-11-27)."""
MAX_RECALLED_SHARE = 0.1
"""Share of the inputs near the examples up to which a few accidental answers, such as equal checksums, do not count as
a repair."""
MIN_LOST_SHARE = 0.9
"""Share of the inputs near the examples that a change no longer answers if it consists of nothing but the examples."""
EXAMPLES_TIMEOUT_S = 15.0
"""Wall-clock seconds for the search for memorised examples; the time that certification has left may be less."""

# Values of the tests that a change may have memorised

MAX_TEST_VALUES = 4000
"""Values of the tests that are compared with new literals; each is hashed by a dozen functions."""
MAX_TEST_DATA_BYTES = 200_000
"""Size of a data file that is read for values. A larger one is a corpus rather than a table of cases."""

# Variable traces

MAX_TRACE_LINES = 60
"""Lines of a rendered trace. Of a longer one the middle is omitted."""
TRACE_SPARE_S = 2.0
"""Seconds before its time limit at which the traced program ends itself, so that its trace is not lost."""

# New capabilities

MAX_CAPABILITY_USES = 20
"""New uses that a result names. A single one is enough to refuse a plain certificate."""
MAX_CAPABILITY_NAME_CHARS = 80
"""Characters of the name of a newly used capability; the candidate wrote it."""
MAX_BOUND_BODIES = 400
"""Bodies of functions and loops of one file that are searched again with the values that they get. Nested calls could
create any number of them."""
MAX_LOOP_VALUES = 20
"""Rounds of a loop over a literal that are searched. These two are chosen by judgement."""

# Linting

MAX_LINT_FINDINGS = 50
"""Findings in a certificate. A change with more of them is described well enough by the first ones."""
