"""The limits of reading a project, its git repository and its patterns, each with its reason.

All of these bound the work that the files of a stranger's project can cause.
"""

# Reading a project
MAX_PROJECT_BYTES = 64 * 2**20
"""Of all files of a project. Each run keeps them in memory, and copies them into the sandbox."""
MAX_PROJECT_FILES = 5000
"""A user with a larger project names a part of it."""
MAX_PROJECT_ENTRIES = 100_000
"""Names that are listed, whether they belong to the project or not."""
MAX_FOLDER_DEPTH = 64
"""Nested folders. Python's own recursion limit is 1,000."""
MAX_EXCLUDED_FILES = 500
"""Names of excluded files in the ledger."""
MAX_IGNORED_ENTRIES = 2000
"""Names in one ignored folder that are considered as modules; the folder may as well hold data."""
MAX_IGNORE_FILE_BYTES = 2**20
"""Of one `.gitignore`."""
MAX_SCANNED_MODULE_BYTES = 4 * 2**20
"""Of a module that is searched for secrets. Generated modules are smaller."""

# Patterns and diffs
MAX_MATCH_STEPS = 20_000_000
"""Some seconds of matching. A project of 5,000 files with 300 patterns needs less than a tenth of it."""
MAX_GLOB_CHARS = 4096
"""Of one pattern. No path is longer."""
MAX_LINE_COMPARISONS = 3_000_000
"""For one pair of texts; about 0.3 s on a slow core."""
MAX_ANCHOR_DEPTH = 40
"""Nested anchors of the patience diff. Below it, a range counts as changed as a whole, which bounds the
time."""

# Git
GIT_TIMEOUT_S = 30.0
"""Of one git command: enough for a large repository on a cold disk."""
MAX_GIT_OUTPUT_BYTES = 256 * 2**20
"""Of one git command: a tree of a few hundred bytes can describe any number of files."""
MAX_GIT_MEMORY_BYTES = 4 * 2**30
"""Of private memory. Packs are mapped into memory and do not count."""
MAX_REPOSITORY_ENTRIES = 200_000
"""Entries of a `.git` folder that are checked before git runs."""
MAX_REPOSITORY_FOLDERS = 16
"""Other folders that a repository refers to: the one that a worktree belongs to, and those it borrows
from."""
MAX_POINTER_FILE_BYTES = 64 * 2**10
"""Of a file by which a repository refers to another folder."""
MAX_GIT_ERROR_CHARS = 300
"""Of a message of git that is repeated to the user."""
MAX_COMMITS = 16
"""Of the history that is searched. Bisecting them takes four runs of the failing tests."""
MAX_HISTORY_BYTES = 4 * 2**20
"""Of all earlier texts together, because they are stored with the task."""
