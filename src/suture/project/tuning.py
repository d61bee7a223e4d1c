"""The limits of reading a project, its git repository and the replies about it, each with its reason.

All of these bound the work that the files of a stranger's project, or the reply of a model, can cause.
"""

# Reading a project
MAX_PROJECT_BYTES = 128 * 2**20
"""Total size of a project's files. Each run keeps them in memory and copies them into the sandbox. A request to a warm
sandbox may have 256 MiB in total, and so may the stored task."""
MAX_PROJECT_ENTRIES = 1_000_000
"""Names that are listed, whether or not they belong to the project; listing that many takes about 10 s."""
MAX_FOLDER_DEPTH = 64
"""Nested folders. Python's own recursion limit is 1,000."""
MAX_EXCLUDED_FILES = 500
"""Names of excluded files in the ledger."""
MAX_IGNORED_ENTRIES = 2000
"""Names in one ignored folder that are considered as modules; the folder may also contain data."""
MAX_IGNORE_FILE_BYTES = 2**20
"""Size of one `.gitignore`."""
MAX_SCANNED_MODULE_BYTES = 4 * 2**20
"""Size of an ignored module that is searched for secrets. Generated modules are smaller."""
SECRET_HEAD_BYTES = 4096
"""Beginning of a file in which the header of a private key is looked for."""
MAX_SERVICE_ACCOUNT_BYTES = 64 * 2**10
"""Size of a JSON file that may be a service account with a private key; such a file has some 2 KiB."""

# Patterns and diffs
MAX_MATCH_STEPS = 200_000_000
"""Steps of matching (patterns times paths), which take some seconds. A project of 100,000 files with 300 patterns needs
a third of it."""
SECRET_MATCH_STEPS_PER_CHAR = 100_000
"""Steps of matching one file name against the built-in patterns of secret files, for each character of the name."""
MAX_CACHED_PATHS = 200_000
"""Files and folders of which it is remembered whether some globs protect them: at most 20 MB for each set of globs."""
MAX_GLOB_CHARS = 4096
"""Length of one pattern. No path is longer."""
MAX_LINE_COMPARISONS = 3_000_000
"""Comparisons for one pair of files; about 0.3 s on a slow core."""
MAX_ANCHOR_DEPTH = 40
"""Nested anchors of the patience diff. Below them, a whole range counts as changed, which bounds the time."""

# Git
GIT_TIMEOUT_S = 30.0
"""Seconds of one git command: enough for a large repository on a cold disk."""
MAX_GIT_OUTPUT_BYTES = 256 * 2**20
"""Output of one git command: a tree of a few hundred bytes can describe any number of files."""
MAX_GIT_MEMORY_BYTES = 4 * 2**30
"""Private memory of git. Packs are mapped into memory and do not count."""
MAX_GIT_ERROR_BYTES = 64 * 2**10
"""Error output of git that is read."""
MAX_GIT_ERROR_CHARS = 300
"""Length of a message of git that is repeated to the user."""
MAX_REPOSITORY_ENTRIES = 200_000
"""Entries of a `.git` folder that are checked before git runs."""
MAX_REPOSITORY_FOLDERS = 16
"""Other folders that a repository refers to: that of its worktree, and those from which it borrows."""
MAX_POINTER_FILE_BYTES = 64 * 2**10
"""Size of a file by which a repository refers to another folder."""
MAX_COMMITS = 16
"""Commits of the history that is searched. Bisecting them takes four runs of the failing tests."""
MAX_HISTORY_BYTES = 4 * 2**20
"""Total size of all earlier file contents, because they are stored with the task."""
MAX_COMMIT_SUBJECT_CHARS = 200
"""Length of a commit's subject that is stored with the task. Chosen by judgement; not measured."""

# Python source and replies
MAX_REPLY_BLOCKS = 400
"""Fenced blocks, or search/replace blocks, in one reply. Chosen by judgement; not measured."""
MAX_FILE_NAME_LINE_CHARS = 400
"""Length of a line of a reply that may contain the name of a file. Chosen by judgement; not measured."""
MAX_PARSED_CHARS = 4_000_000
"""Characters that are parsed for one reply: enough to parse the reply some hundred times, and its files."""
PARSING_OVERHEAD_CHARS = 100
"""What parsing costs besides the length of a source, so that very many short sources spend the budget, too."""
MAX_SPLICED_STATEMENTS = 1000
"""Statements in one scope of a snippet that is merged into a file. Each is compared with each of the file."""
MAX_SUGGESTED_FUNCTIONS = 40
"""Names of functions that are suggested in place of an unknown one. Chosen by judgement; not measured."""

# Test commands and their configuration
MAX_SHELL_SCRIPT_BYTES = 1 << 16
"""Size of a shell script that is read to find what it starts."""
MAX_REACHED_LINES = 4000
"""Lines of all scripts that a test command reaches."""
MAX_LOADED_GLOBS = 1000
"""Globs of the files that a test command loads. Only the certificate of a stranger may name as many."""
MAX_EXPANDED_WORD_CHARS = 1000
"""Length of a word of a command that is expanded into globs."""
MAX_WORD_GLOBS = 64
"""Globs that one word can expand to: braces multiply them."""
MAX_RUNNER_CONFIG_BYTES = 1 << 18
"""Size of a test runner's configuration file. Chosen by judgement; not measured."""
MAX_CONFIGURED_NAMES = 200
"""Names that are taken from configuration files of test runners. Chosen by judgement; not measured."""
MAX_WORKSPACE_PACKAGES = 200
"""Packages within one project whose scripts are read."""
MAX_SCRIPT_PATTERNS = 20
"""Patterns in one script, such as `test:*`."""
MAX_TASK_FILE_BYTES = 1 << 18
"""Size of a Makefile or the like."""
MAX_TASK_LINES = 2000
"""Lines of a Makefile or the like that are read, and lines of its targets that are followed."""
MAX_TASK_LINE_CHARS = 4000
"""Maximum characters of a line in a Makefile or the like, also after its variables are expanded: they can double it
each time."""
MAX_TASK_INDIRECTIONS = 5
"""Nested variables, and nested includes. They may be cyclic."""
MAX_LANGUAGE_NAME_CHARS = 31
"""Length of the name of a language. Chosen by judgement; not measured."""
MAX_FAILURE_MESSAGE_CHARS = 500
"""Maximum characters of the first line of a failing test's message. Chosen by judgement; not measured."""
MAX_FAILURE_DETAIL_CHARS = 4000
"""Maximum characters of a failure's message with all its lines. Chosen by judgement; not measured."""
MAX_DIAGNOSTICS = 2000
"""Diagnostics of one run of a linter or compiler. A project with more is not repaired in one run; by judgement."""
MAX_DIAGNOSTIC_CHARS = 300
"""Length of the message of a diagnostic, which is a part of its name. Chosen by judgement; not measured."""
MAX_STACK_FRAMES = 30
"""Frames of a stack trace that are read, the innermost ones. Chosen by judgement; not measured."""

# The safety scan
MAX_SCANNED_FILE_CHARS = 200_000
"""Length of one file; a longer one is not scanned, which is a finding."""
MAX_SCANNED_CHARS = 1_000_000
"""Length of all files together; scanning that much takes seconds."""
MAX_FINDINGS = 200
"""Findings of one change; the strictest come first. A person will not answer questions about more."""
MAX_QUOTED_CODE_CHARS = 160
"""Length of the code that a finding quotes: about two lines of a terminal."""
MAX_SOURCE_LINE_CHARS = 1000
"""Length of a line from which code is quoted. Minified code has lines of megabytes."""
MAX_NAME_PARTS = 8
"""Parts of a dotted name that are resolved. A file may contain names of any length."""
MAX_FOLDED_DEPTH = 60
"""Depth of a constant expression that is computed. Concatenations by hand have a few parts; chosen by judgement."""
MAX_FOLDED_SIZE = 1000
"""Characters or items of a computed constant. Longer ones are not names; chosen by judgement."""
MAX_QUERY_STATES = 10_000
"""States of a query that tree-sitter keeps. It drops further ones, which bounds the time."""
MAX_NODE_DEPTH = 400
"""Nested nodes of a syntax tree. The time of a query grows with their number."""
MAX_ERROR_CHILDREN = 1000
"""Children of an error node. Source with more of them is not code, and cannot run."""
QUERY_WINDOW_BYTES = 16_000
"""Part of a file that is queried at once; the time is checked after each part."""
QUERY_TIMEOUT_S = 5.0
"""Time for one file. Code that people write needs a tenth of it."""
MAX_REQUIREMENT_CHARS = 1000
"""Length of a requirement of a package that is parsed."""
MAX_QUOTED_REQUIREMENT_CHARS = 100
"""Length of a requirement that is quoted in place of the name of a package."""
MAX_MANIFEST_PACKAGES = 500
"""Packages that are read from one manifest."""
MAX_MANIFEST_CHARS = 200_000
"""Length of a manifest. Chosen by judgement; not measured."""
MAX_ALLOWED_LIST_BYTES = 1 << 20
"""Size of the user's own list of allowed packages."""
MIN_LONG_PACKAGE_NAME_CHARS = 8
"""Package names with fewer letters are similar if one letter differs; longer ones, if two do."""
