"""Tuning numbers of the storage package, with their units and the reason for each."""

from __future__ import annotations

# Database connections
CHECKPOINT_LOCK_TIMEOUT_S = 30
"""Seconds that a writer waits for another process that writes the same SQLite file of checkpoints."""
DATABASE_LOCK_TIMEOUT_S = 30
"""Seconds that a writer waits for another process that writes to the database of runs."""
CONNECT_TIMEOUT_S = 5
"""Seconds until an unreachable PostgreSQL server is reported."""
MIGRATION_POLL_S = 0.1
"""Pause between two attempts to take the migration lock."""
LOCK_POLL_S = 0.2
"""Pause between two attempts to take the lock of a shared run."""
RECONNECT_TIMEOUT_S = 30
"""Seconds that a run waits for a server that restarts. The server may also notice the loss of a connection late: it
holds the run's lock until then, which takes 25 s with the keepalives of `store`."""
JOB_OVERLAP_S = 30.0
"""Seconds by which rows older than the last query are read again, because a row carries the time at which its
transaction began."""

# Sizes of rows and queries
MAX_ERROR_CHARS = 2000
"""Length of an error message in `iterations`."""
MAX_ERROR_KIND_CHARS = 80
"""Length of an error kind that is taken from a program's output. Chosen by judgement; not measured."""
MAX_KEY_CHARS = 200
"""Length of a short string column (`tables.SafeWord`). Projected rows are cut in the same way, so that they can be
compared."""
MAX_STATEMENT_CHARS = 2000
"""Length of a task's statement in `tasks`."""
MAX_FINDINGS = 50
"""Inconsistencies that one check lists."""
MAX_FILTER_CHARS = 200
"""Length of a string that runs are filtered by. Chosen by judgement; not measured."""
MAX_INDEXED_WORDS = 4000
"""Words of one row. PostgreSQL's index entry holds at most a megabyte, and a search never needs more."""
MAX_WORD_CHARS = 80
"""Longer words are cut."""

# Memory items
MAX_PATCH_CHARS = 4000
"""Length of a stored patch."""
MAX_TEXT_CHARS = 1200
"""Maximum characters of the other stored texts."""
MAX_SEARCH_TEXT_CHARS = 3000
"""Length of the text that patterns and lessons are found by."""
MIN_SECRET_CHARS = 4
"""A shorter string is not a secret, and would match everywhere."""
MAX_SCRUBBED_LINE_CHARS = 4000
"""Maximum characters of an inspected line. The rest of a longer line is dropped, because it cannot be inspected in
reasonable time."""
MAX_SIGNATURE_CHARS = 200
"""Length of an error signature."""
MAX_LITERAL_CHARS = 2000
"""Length of a value that is parsed in order to compare it with another."""
MAX_SHAPE_NODES = 24
"""Node kinds that describe the syntax of a failing function."""
MAX_CODE_CHARS = 1200
"""Code and output in the search text of a failure."""
MAX_FAILURES_PER_RUN = 5
"""Kinds of failures that one run contributes."""
MAX_CHANGED_LINES = 12
"""Changed lines of a patch that a prompt shows."""
MAX_CHANGED_LINE_CHARS = 120
"""Maximum characters of a changed line in a prompt."""
MAX_PATTERN_STATEMENT_CHARS = 300
"""Statement of a solved task in a prompt."""
MAX_PATTERN_SOLUTION_CHARS = 700
"""Code of a solved task in a prompt."""

# Recall
SEARCH_DEPTH = 40
"""Nearest items of each table, before those that say the same are merged."""
COMPARED_VECTORS = 400
"""Items of each table whose vectors are compared, because their signatures are nearest to the query's. Among 100,000
generated memories they held the 40 nearest of each of 66 queries (`benchmarks/memory.py nearest`)."""
SIGNATURE_INDEX_DEPTH = 200
"""Items among which PostgreSQL chooses the neighbours of a new one in its index of signatures (`ef_construction`). With
64, the default, two of 66 queries missed some of the five nearest among 100,000; with 200, they found 99.96 % of the 40
nearest (`benchmarks/memory.py nearest --url postgresql://...`)."""
READ_SIGNATURES = 512
"""Signatures that are read from SQLite at a time. From 700 on, their tuples start the garbage collector, which takes
45 ms with all modules imported."""
MAX_SIGNATURE_CACHES = 16
"""Selections, such as the failures in Python, whose signatures a process caches; each takes 76 bytes per item."""
MAX_QUERY_CHARS = 200
"""Statement of a task in the event that records a recall. Chosen by judgement; not measured."""
MAX_FINGERPRINTS = 2
"""Kinds of failures of one run that memory is queried for."""
MAX_RECALLED_ITEMS = 20
"""Items that a recall returns."""
MAX_PROMPT_MEMORIES = 2
"""Memories in one prompt."""
MAX_MEMORY_CHARS = 400
"""Maximum number of characters of each memory in a prompt. Both are chosen by judgement; not measured."""

# Vectors
VECTOR_DIMENSIONS = 512
"""Length of a hashed vector, a multiple of 8; it takes 2 KB per item."""
MAX_EMBEDDED_CHARS = 8000
"""Maximum number of characters of an embedded text; a longer one is cut."""

# The index of runs
SETTLING_TIME_S = 3.0
"""A ledger that changed less than this before it was compared is compared again: a copy may still be growing, and some
file systems store times in steps of 2 s."""
MAX_COMPARISON_AGE_S = 86_400.0
"""All ledgers are compared with their rows once a day, in case another program has changed one: 4 microseconds each."""
MAX_UNSAVED_COMPARISONS = 50
"""Ledgers that are compared without need before a query writes into the database to avoid it. Chosen by judgement."""
MAX_PARAMETERS = 500
"""Parameters of one statement; old versions of SQLite accept 999."""
MAX_RUNS_READ_AT_ONCE = 500
"""Up to this number of changed ledgers, a query reads all of them first, which takes half a second."""
MAX_RUNS_READ_EARLY = 100
"""If there are more, it reads this number of the newest ones, and a process in the background reads the others."""
