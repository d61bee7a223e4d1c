"""The limits of the ledger, of run folders and of settings files, each with its unit and its reason.

A run folder may come from somebody else, and a project's settings files always do. These limits bound the
work and the memory that such files can cost.
"""

# Ledgers and run folders
MAX_EVENT_LINE_BYTES = 16 * 2**20
"""Length of one event. The longest one seen has 7,000 bytes; the ids of 60,000 tests may need some millions."""
MAX_LEDGER_BYTES = 128 * 2**20
"""Length of a ledger; one of 60,000 events has 20 MB."""
MAX_JSON_VALUES = 6_000_000
"""JSON values in a ledger or a blob. Each takes some hundred bytes of memory, however short it is. Chosen by
judgement; not measured."""
MAX_TORN_LINES = 1000
"""Lines of a ledger that are not events. Each crash leaves at most one, so a real ledger has only a few."""
MAX_BLOB_BYTES = 256 * 2**20
"""Size of a blob. The largest blob that Suture writes is a task with all its files, of at most 128 MiB."""
MAX_FIRST_EVENT_BYTES = 64 * 2**10
"""Length of the first event of a ledger, which names the run's project. Its values are short, because the
task and the settings are blobs."""
MAX_BUDGET_NUMBER = 10**60
"""Absolute value of an integer in a budget event. A damaged ledger may hold any integer, but Python refuses to
print those of more than 4300 digits. Sums of numbers up to this limit stay far below. Chosen by judgement."""
MAX_EVENT_TIME_S = 250_000_000_000
"""Seconds since the epoch, which is the year 9892. Python's calendar ends with the year 9999."""
MAX_SUMMARY_CHARS = 200
"""Characters of an event's data that a one-line summary shows. Chosen by judgement; not measured."""
MAX_HTML_DIFF_CHARS = 20_000
"""Characters of a diff that a notebook shows. Chosen by judgement; not measured."""

# Settings files
MAX_SETTINGS_FILE_BYTES = 64 * 2**10
"""Size of a `suture.toml` or a `.env`. A file with every setting has a tenth of it."""
MAX_PYPROJECT_BYTES = 2**20
"""Size of a `pyproject.toml`, which also configures other tools. Chosen by judgement; not measured."""
MAX_TRUST_FILE_BYTES = 16 * 2**20
"""Size of the list of trusted projects: enough for some 100,000 projects."""
MAX_PROMPT_FILES = 64
"""Prompts of a project. There is one for each role, and there are fewer roles than this."""
MAX_PROMPT_BYTES = 256_000
"""Size of one prompt of a project. Chosen by judgement; not measured."""
MAX_REFERENCED_BYTES = 16 * 2**20
"""Total size of a file or folder that a project's settings name. The user should review it before trusting
the project, and nobody can review more."""
MAX_REFERENCED_FILES = 1000
"""Maximum number of files in a folder that a project's settings name, for the same reason."""
MAX_UNCOLLECTED_OBJECTS = 50_000
"""New objects after which a process of Suture searches for garbage. At Python's own number, 700, a tenth of the time to
start is spent on searching the imported modules, which are not garbage."""
