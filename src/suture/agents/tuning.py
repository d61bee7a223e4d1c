"""Tuning numbers of prompts, roles, replies and tools, with their units.

Numbers whose text mentions neither a measurement nor another reason were chosen by judgement and not measured.
"""

from __future__ import annotations

# Prompts
MAX_PROMPT_FILE_BYTES = 256_000
"""Size of a user's prompt file."""
MAX_FACT_CHARS = 600
"""Length of one counterexample in a prompt."""
MAX_LINE_CHARS = 300
"""Length of one line of output; the middle of a longer line is cut."""
LONG_CODE_CHARS = 4000
"""About 1,200 tokens of code: for more, the model is asked only for the changed parts."""
MAX_SUSPECTS = 3
"""Functions, the likeliest first, that the repairs of one candidate ask for in turn, one per reply."""

# Limits of roles
MAX_SUBTASKS = 4
"""Parts of a plan."""
MAX_LESSONS = 5
"""Lessons of one run."""
MAX_DEBUGGER_STEPS = 5
"""Replies before the diagnosis. Two or three steps show nearly everything that a small model can use."""
MAX_SUBTASK_STEPS = 4
"""Replies for one part of a plan."""
PROPERTIES_PER_CALL = 3
"""Properties that one call asks for."""
MAX_TEST_FILE_CHARS = 100_000
"""Length of a generated test file of a project."""
MAX_REPRODUCER_CHARS = 8000
"""Length of a reproducing test, which a person must read and approve."""
MAX_PROJECT_FILE_CHARS = 200_000
"""Length of one file of a generated project."""
MAX_PROJECT_FILES = 40
"""Files of a generated project."""

# Tools
MAX_TOOL_CODE_CHARS = 4000
"""Length of code that the debugger runs or traces."""
MAX_DIFF_CHARS = 3000
"""Length of a shown diff of two attempts."""
MAX_CONSECUTIVE_MALFORMED = 2
"""Consecutive replies without an action, after which the model is assumed not to know the format."""
MAX_OBSERVATION_CHARS = 4000
"""Length of a tool's result in the prompt; the middle is cut."""
MAX_TOOL_FILE_CHARS = 40_000
"""Length of a file that a model writes with tools."""
MAX_TOOL_FILES = 12
"""Files that a model writes with tools."""

# Replies
MAX_CLOSING_FENCES = 6
"""Closing fences that are tried as the end of a block: strings in the code may contain fences."""
MAX_QUOTED_CHARS = 60
"""Length of a quoted line in a message."""
MIN_REPETITIONS = 6
"""Repetitions of the same lines at the end of a reply that count as a loop."""
MAX_REPEATED_LINES = 4
"""Lines of the repeated group. Longer groups may be a table in the program, which is seldom this uniform."""
EXAMPLES_PER_PROPERTY = 25
"""Inputs that are generated for each property."""
MAX_CHECKS = 24
"""Checks of one reply: a small model that has begun to list cases may never end."""
MAX_INSPECTED_TESTS = 400
"""Tests of one reply that are inspected, usable or not."""
MAX_CHECK_CHARS = 2000
"""Length of one check with its setup."""
MAX_GENERATED_NUMBER = 100
"""Bound of numbers for which the strategy gives none."""
MAX_GENERATED_ITEMS = 6
"""Bound of lengths for which the strategy gives none."""

# Calls of a model
MIN_REPLY_TOKENS = 64
"""A reply that may not be longer than this is not worth asking for."""
HELPER_SHARE_DIVISOR = 4
"""A helper gets the remaining reply tokens divided by this number, because a small model may ramble until its
limit. It is not asked where that is below `MIN_REPLY_TOKENS`."""
MAX_PROMPT_RETRIES = 2
"""How often a prompt that a provider calls too long is shortened, by a third each time."""
FUNCTION_BODY_TOKENS = 512
"""Reply limit where only the rest of a function is missing: about eight times what most take. A longer reply
that does not repeat itself is continued."""
RETRY_LENGTH_FACTOR = 2
"""A reply that was cut is asked for again with the setting's limit times this factor."""
MIN_RETRY_GAIN = 1.5
"""A second reply must have room for the length of the cut one times this factor, or it would hardly be complete."""
MAX_ROLE_FAILURES = 2
"""Failures after which a helping role is not asked again in a run."""
MAX_ROLE_CALLS = 2
"""How often a question is asked until its reply can be used."""

# What a prompt shows of the code
MAX_WHOLE_FILE_CHARS = 6000
"""About 1,800 tokens. Of a longer file, only the part around the suspicious lines is shown."""
MAX_EXCERPT_CHARS = 4000
"""About 1,200 tokens of code for a small model, beside the task and what fails."""
MAX_EXCERPT_FUNCTION_CHARS = 3000
"""Of a longer function, only the surroundings of the suspicious line are shown."""
SURROUNDING_LINES = 15
"""Lines before and after a suspicious line."""
MAX_SELECTED_CHARS = 12_000
"""About 3,500 tokens of code. More does not help a small model."""
MAX_RELATED_FUNCTION_CHARS = 1200
"""About 350 tokens: a longer function would take the place of the code to repair."""
MAX_SCANNED_FILES = 200
"""Files that are searched for related functions, those in the same folder first."""
MAX_RELATED_FUNCTIONS = 4
"""Functions in a brief. The prompt decides how many of them it has room for."""
MIN_NAME_SIMILARITY = 0.34
"""Share of words that two functions must have in common to be similar."""
MAX_PROJECT_CHARS = 24_000
"""Characters of an existing project's files that a prompt shows."""
MIN_SCORE_SHARE = 0.5
"""Share of the highest score below which a line is no more suspicious than any other."""

# The agent
MAX_MALFORMED_REPLIES = 3
"""Consecutive replies that name no tool, after which the turn ends: the model does not know the format."""
MAX_REPEATED_COMMANDS = 3
"""Times that the same command may come while nothing changes."""
MAX_LISTED_FILES = 150
"""Paths that the first prompt lists."""
MAX_LEDGER_INPUT_CHARS = 300
"""Characters of a command that its event keeps."""
MAX_HISTORY_REPLY_CHARS = 12_000
"""Characters of a reply that the history keeps."""
RECENT_STEPS = 4
"""Steps whose results stay complete when older results are left out."""
DEFAULT_CONTEXT_TOKENS = 24_000
"""Length of a prompt where the context size of the model is not known."""
MAX_SHELL_S = 60.0
"""Wall-clock seconds of one shell command; the limit of a test run applies if it is shorter."""
MAX_COMMAND_OUTPUT_CHARS = 6000
"""Characters of one observation; the middle of a longer one is cut."""
MAX_SHOWN_LINES = 200
"""Lines of a file that is shown without a range."""
MAX_SEARCH_MATCHES = 40
"""Lines that a search shows."""
MAX_LISTED_FOLDER_PATHS = 200
"""Paths that a listed folder shows."""
MAX_COMMAND_CHARS = 8000
"""Characters of a command's input."""
MAX_NEW_FILE_CHARS = 40_000
"""Characters of a new file, including its path."""

# Commands in a copy of the project
COPY_CPU_CORES = 4
"""CPU seconds of each process for each wall-clock second."""

# A user's own program
PROGRAM_TIME_SHARE = 0.8
"""Share of the remaining time for the program: the rest is for the verdict and its certification."""
MAX_PROGRAM_BYTES = 16 << 20
"""Size of a file of the program itself."""
MAX_PROGRAM_OUTPUT_BYTES = 64 << 10
"""Size of the output that is kept."""
MAX_TEST_NAMES_BYTES = 32 << 10
"""Bytes of the failing tests' names in one variable: the kernel allows 128 KiB for each."""
MAX_PROGRAM_LISTED_PATHS = 100
"""Changed paths that the event of the program lists."""
MAX_LISTED_TESTS = 200
"""Failing tests that are listed by name."""
MAX_ECHOED_CHARS = 200
"""Characters of an agent's input, or of a found line, that an observation repeats. Chosen by judgement; not
measured."""
MAX_NAMED_PATHS = 20
"""Paths that a note in an observation names. Chosen by judgement; not measured."""
MAX_LISTED_FACTS = 20
"""Counterexamples that are rendered; more of them mostly say the same."""
MAX_BRIEFED_OUTPUT_CHARS = 6000
"""Characters of a command's output, from its end: a command says there what failed."""
