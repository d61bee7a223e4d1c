"""All numbers of the search, with their units and, where one is known, the measurement or reason behind each.

Names that end in `_s` are wall-clock seconds unless the docstring says CPU, `_SHARE` is a share of the search's
seconds, and `_FACTOR` multiplies a score. A number without a stated reason was chosen by judgement and not measured. A
*start* is a partial repair that is extended to a compound change (see `ordering.compound_changes`). *Rivals* are
candidates that are tried after a plausible one, to be compared with it.
"""

from __future__ import annotations

# --- Localisation: how suspicious a line is ---------------------------------------------------------------

SPECTRUM_WEIGHT = 0.8
"""Share of coverage (Ochiai and DStar) in the score of a line. The three weights add up to 1."""
DSTAR_SHARE = 0.2
"""Share of DStar in that; the rest is Ochiai. Chosen by judgement; not measured."""
FRAME_WEIGHT = 0.1
"""Share of tracebacks in the score of a line."""
CALLED_WEIGHT = 0.1
"""Share of direct calls from tests in the score of a line."""
HEADER_FACTOR = 0.9
"""Factor on the score of a function's first line, relative to its worst line: guards and defaults are added there."""
IMPORTED_FACTOR = 0.4
"""Factor on the score of a line that ran on import, relative to one that ran in a failing test."""
BINDING_FACTOR = 0.8
"""Factor on the score of a statement that binds a name on import, relative to the worst line of a function that reads
it."""
TABLE_LINES = 10
"""Lines of a statement that binds a name on import, such as a table, beyond which its lines share its score: a test
reads only a few of them."""
MIN_CLUE_SHARE = 0.05
"""Share of the failing tests that must show an exception before it counts as a clue."""
OFF_TRACEBACK_FACTOR = 0.5
"""Factor on a clue's weight on lines that no traceback of its tests went through."""
OTHER_PART_FACTOR = 0.25
"""Factor on a clue's weight for changes that do not replace the operator or name in the exception."""
NAMED_SUSPICION = 1.0
"""Without coverage: suspicion of a line that failing tests name, or near one where they failed."""
SAME_FILE_SUSPICION = 0.6
"""Without coverage: suspicion of other lines of a file that failing tests name."""
OTHER_FILE_SUSPICION = 0.3
"""Without coverage: suspicion of lines of all other files."""
NEARBY_LINES = 3
"""Lines before and after a reported line that count as near it."""

# --- Ordering: single changes -----------------------------------------------------------------------------

SUSPICION_EXPONENT = 1.5
"""How much more the suspicion of a line counts than the kind of change."""
MAX_SINGLES = 4000
"""Single changes that a search holds: any further one is no likelier than two changes together."""
GENERATION_SHARE = 0.2
"""Maximum share of the search's seconds for generating single changes."""
MAX_GENERATION_S = 12.0
"""Maximum seconds for generating single changes, so that the order does not depend on a longer limit: the share of the
60 s of a measured search."""
YIELD_EVERY = 50
"""Changes that are generated before other tasks of the event loop may run."""
SPARE_HELD = 1000
"""Changes held beyond twice the wanted number, so that selecting the likeliest is seldom necessary."""
EARLY_SAMPLE = 10_000
"""Changes of the most suspicious lines after which the likeliest are tried while the others are generated."""
EARLY_CANDIDATES = 100
"""Changes that are tried early."""
EXPENSIVE_COLLECT_CPU_S = 0.5
"""CPU seconds of collecting the tests from which on reimporting for one candidate is expensive."""
CHEAP_PER_EXPENSIVE = 8
"""Changes that are patched into a running process between two that need a reimport."""

# --- Ordering: reverts of recent changes ------------------------------------------------------------------

MAX_HUNKS = 40
"""Hunks of the commit that broke the tests which are reverted."""
CONTEXT_LINES = 2
"""Lines around a hunk that must still be there, so that it is reverted at the right place."""
UNCHANGED_LINE_FACTOR = 0.2
"""Factor on the score of a line that the breaking commit left alone, relative to one that it changed: the commit may
reveal an old fault."""
REVERT_PRIOR = 0.9
"""A change that is known to have broken the tests is likelier at fault than any line of the coverage."""

# --- Ordering: compound changes ---------------------------------------------------------------------------

MAX_PARTNERS = 250
"""Partners kept for one start: changes that are combined with it."""
MAX_PARTNERS_EXAMINED = 15_000
"""Changes of the most suspicious lines among which the partners of a start are selected."""
PROGRESS_WEIGHT = 0.5
"""Weight of a start with which no test passes yet, in tests that pass."""
STARTS_PER_ROUND = 6
"""Starts that are extended in one round."""
NON_PASSING_STARTS_PER_ROUND = 2
"""Starts of one round with which no test passes yet, if there are others."""
MAX_STARTS = 60
"""Starts of one search that are extended."""
MAX_EQUAL_STARTS = 2
"""Starts with the same test results that are extended."""
SETTLING_TRIALS = 60
"""Candidates tried after an improvement before the next round: a better start may follow."""
MAX_WAITING = 3000
"""Compound changes that wait to be tried."""
START_DECAY = 0.9
"""Factor on the score of a compound change for each better start in the same round."""
RANK_DECAY = 0.98
"""Factor on the score of a compound change for each better one of the same start."""
COMPOUND_AFTER = 1500
"""Tried candidates after which every second one is a compound change. It is a count and not a share of the time,
because the order must depend neither on the limit nor on the load of the machine: with three tenths of the time,
`examples/broken` was found among 576 candidates with a limit of 50 s, and among 976 with one of 18 s. A search of
60 s tried 1,000 to 2,000 in these three tenths."""
LIKELIEST_SINGLES = 200
"""Single changes that are tried before any compound change."""
MAX_PAIRED_SINGLES = 200
"""Single changes any two of which are tried together, once all others are used up: at most 19,900 pairs."""
SINGLES_PER_COMPOUND = 2
"""Single changes tried for each compound change before that."""
# --- Engine: when a search ends ---------------------------------------------------------------------------

LINGER_SHARE = 0.5
"""After the first plausible repair the search continues, to compare, for this share of the trial time."""
MIN_LINGER_S = 1.5
"""Minimum seconds that the search continues after the first repair, unless it has tried `MIN_RIVALS` candidates."""
MAX_RIVALS_S = 3.0
"""Seconds after the first plausible repair in which rivals at its place are tried while there are any."""
MIN_RIVALS = 160
"""Candidates tried after the first plausible one, unless they take longer than `LINGER_SHARE` allows.

In 40 searches of HumanEvalFix that lasted at least 1.5 s longer, the repair that ranked best in the end was among the
first 32 of them. 23 searches found a second plausible repair: 21 among the first 100, the last one as number 159."""
SUSPICIOUS_SHARE = 0.5
"""Share of the search's seconds after which a repair with warnings ends the search too."""
MAX_RIVALS_PER_LOCATION = 60
"""Rivals of one location that are tried out of turn."""
MAX_PASSING_PER_LOCATION = 12
"""Plausible repairs of one location after which other locations have their turn again."""
MAX_GUARD_CHECKS = 16
"""Repairs whose guarded blocks are checked for being run."""
GUARD_CHECK_S = 2.0
"""Seconds for checking whether guarded blocks are run."""

# --- Engine: trials in Python -----------------------------------------------------------------------------

LOCATE_SHARE = 0.34
"""Maximum share of the search's seconds for localisation."""
FULL_SUITE_SHARE = 0.7
"""Maximum share of the search's seconds until all tests have run in their order; the other process tries candidates by
then."""
POLL_S = 0.1
"""Seconds between two checks whether a process has run all tests; the run itself takes tenths."""
GRACE_S = 1.0
"""Seconds beyond the search's own in which a trial that is cut off may end."""
PROCESS_SPARE_S = 60.0
"""Seconds that the trial processes outlive the search: the search itself ends them."""
PATIENT_CPU_S = 8.0
"""CPU seconds of a test when a candidate that did well until it timed out is tried again."""
MAX_PATIENT_TRIALS = 6
"""Maximum number of candidates that are tried again with `PATIENT_CPU_S`."""
PATIENT_SHARE = 0.3
"""Share of the search's seconds after which candidates that timed out are tried again even while others wait."""

# --- Engine: recovery from syntax errors ------------------------------------------------------------------

PARSE_SEARCH_SHARE = 0.15
"""Maximum share of the search's seconds for finding sources that parse."""
TEXT_RUNS_SHARE = 0.5
"""Share of the search's seconds after which no further parsable source is run."""
MAX_TEXTS_RUN = 32
"""Parsable sources on which the tests are run (Python)."""
MAX_TREE_TEXTS_RUN = 60
"""Parsable sources on which the tests are run in other languages: a grammar gives less precise errors than CPython."""
TREE_TEXT_RIVALS = 8
"""Parsable sources that are run after the first that passes, in other languages: each costs a start of the command."""
MAX_TEXTS_SEARCHED = 3
"""Parsable sources on which a further search starts."""
TEXT_SEARCH_SHARE = 0.5
"""Share of the remaining time that each search on a parsable source gets; the last one gets all of it."""
MIN_TEXT_SEARCH_S = 1.0
"""Remaining seconds below which no further search starts on a parsable source. Chosen by judgement; not measured."""
MIN_TEXT_RUN_S = 1.0
"""Minimum timeout, in seconds, of the tests on one parsable source, however little time remains. Chosen by judgement;
not measured."""
TEXT_RUN_TIMEOUT_S = 10.0
"""Timeout, in seconds, of the tests on one parsable source: one with which something never ends is not a repair."""
TREE_TEXT_PATIENCE = 3.0
"""In other languages, the timeout of the tests on a parsable source is at least this multiple of the command's time on
the broken file."""

UNCERTAIN_RECOVERY_SHARE = 0.5
"""Share of the search's seconds for a file that parses for us but not for its language; the rest is for an
ordinary search, which may repair that too."""
MIN_SEARCH_S = 1.0
"""Seconds below which no second search begins."""

# --- Ranking ----------------------------------------------------------------------------------------------

WARNING_FACTOR = 0.4
"""Factor on a repair's score for each warning."""
IDLE_BLOCK_FACTOR = 0.1
"""Factor on a repair's score for each guarded block that no test runs: it was written to be run. This is evidence only
relative to rivals at the same place."""
BROKEN_EXAMPLE_FACTOR = 0.2
"""Factor on a repair's score for a broken example in a docstring or comment."""
CRASH_FACTOR = 0.1
"""Factor on the score of a repair that ends a call with an error, such as an index out of range, where most other
behaviours return a value. The repairs of `(a[m] + a[m + 1]) / 2` for which one test decides between `/ 3` and `a[m -
1]` are of this kind."""
AGREEMENT_SHARE = 0.4
"""The part of a score that depends on how far other repairs behave alike."""
MAX_COMPARED_CALLS = 6
"""Calls that are shown to distinguish repairs: a person reads few."""
MAX_SHOWN_ANSWER_CHARS = 200
"""Maximum characters of a call that is shown to distinguish repairs, and of each answer; the middle of a longer one is
cut."""
NATURALNESS_SPREAD = 0.3
"""How much the naturalness of the new code changes a score: from 1 - spread / 2 to 1 + spread / 2."""
DISTANCE_PENALTY = 0.5
"""Maximum penalty, for a change that is as far from the original expression as possible."""
REDUNDANT_OPERATION_FACTOR = 0.3
"""Factor on a repair's score for each operation without effect: `+ 0` is never written on purpose."""
MAX_COMPARED_REPAIRS = 16
"""Maximum number of repairs that are compared on the same calls; they share `COMPARE_S`."""
COMPARE_S = 6.0
"""Seconds for comparing repairs on new inputs, after the search has ended."""
COMPILED_COMPARE_S = 30.0
"""Seconds for comparing repairs on new inputs where each repair is compiled first."""
CLOSE_RIVAL_SHARE = 0.25
"""Share of a repair's score that a rival must have; less likely ones say little against it."""
MAX_NEAR_INPUTS = 60
"""Calls of one function with arguments near those of the tests."""
MAX_BOUNDARY_INPUTS = 24
"""Calls of one function with arguments that the changed code mentions."""
MAX_CALLED_FUNCTIONS = 8
"""Functions that are called (Python)."""
MAX_TREE_FUNCTIONS = 4
"""Functions that are called, in other languages."""
MAX_COMPILED_FUNCTIONS = 2
"""Functions that are called where every repair has to be compiled for each."""
MAX_TRIPWIRES = 4
"""Locations that are checked for being reached by the calls; each costs as much as a candidate."""
CALL_TIMEOUT_S = 0.5
"""Timeout of one call, in other languages."""

# --- Expression distance ----------------------------------------------------------------------------------

MAX_VALUE_SETS = 1000
"""Sets of values that are drawn where not all combinations can be tried."""
VALUES_PER_SET = 3
"""Values of one drawn set: parts that are compared must be equal now and then."""
FAILURE_RATE = 0.05
"""Probability that a part raises an exception in a drawn set."""
COMPARED_VALUE_RATE = 0.35
"""Probability that a part has exactly the value it is compared with: sometimes all of five conditions must hold."""
MAX_PARTS = 6
"""Unknown parts of an expression up to which it is evaluated."""
MAX_TEXT_LENGTH = 1000
"""Maximum length of an expression that is evaluated: the project wrote it."""
MAX_NUMBER = 1 << 64
"""The largest number that is evaluated."""
