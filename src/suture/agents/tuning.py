"""Tuning numbers of prompts, roles, replies and tools, with their units.

Numbers whose docstring mentions neither a measurement nor another reason were chosen by judgement and not measured.
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
"""Characters of code, about 1,200 tokens: for more, the model is asked only for the changed parts."""
MAX_CHOICE_EXPLANATION_CHARS = 300
"""Length of the sentence with which a model explains which repair it chose."""
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
MAX_SAMPLE_LINES = 4
"""Lines of sample data that a prompt shows: the header and a few rows. Chosen by judgement; not measured."""
MAX_SAMPLE_LINE_CHARS = 200
"""Maximum characters of a line of sample data. Chosen by judgement; not measured."""

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
MAX_NEAREST_LINES = 12
"""Lines of a file that are shown for an edit that does not apply. Chosen by judgement; not measured."""
MAX_COMPARED_LINES = 5
"""Lines that an edit looks for and does not find, the longest first, for which similar lines of the file are looked
up."""
MAX_SIMILAR_PATHS = 5
"""Paths that are named in place of one that does not exist. Chosen by judgement; not measured."""
MIN_WHOLE_FILE_SHARE = 0.7
"""Share of a file's lines that a block must hold to be the whole file, if it lacks some of its definitions and
does not say that it is whole. Chosen by judgement: bug fixes that delete a definition keep more than that."""
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
"""Minimum tokens that a reply must be allowed; a shorter one is not worth asking for."""
HELPER_SHARE_DIVISOR = 4
"""A helper gets the remaining reply tokens divided by this number, because a small model may ramble until its
limit. It is not asked where that is below `MIN_REPLY_TOKENS`."""
MAX_PROMPT_RETRIES = 2
"""Maximum number of times that a prompt which a provider rejects as too long is shortened, by a third each time."""
FUNCTION_BODY_TOKENS = 512
"""Reply limit where only the rest of a function is missing: about eight times what most take. A longer reply
that does not repeat itself is continued."""
SMALL_REPLY_TOKENS = 2_048
"""Replies up to this length are reserved in full. Longer ones take at most the branch's share of the remaining
tokens, because the branches of a round reserve at the same time."""
THINKING_RETRY_FACTOR = 4
"""A reply that was spent on thinking is asked for again with this many times its length, as far as the model and
the budget allow."""
RETRY_LENGTH_FACTOR = 2
"""A reply that was cut is asked for again with the setting's limit times this factor."""
MIN_RETRY_GAIN = 1.5
"""A second reply must have room for the length of the cut one times this factor, or it would hardly be complete."""
MAX_ROLE_FAILURES = 2
"""Failures after which a helping role is not asked again in a run."""
MAX_ROLE_CALLS = 2
"""Maximum number of times that a question is asked until its reply can be used."""

# What a prompt shows of the code
MAX_WHOLE_FILE_CHARS = 6000
"""Maximum characters of a file that is shown whole, about 1,800 tokens; of a longer one, only the part around the
suspicious lines."""
MAX_EXCERPT_CHARS = 4000
"""About 1,200 tokens of code for a small model, in addition to the task and what fails."""
MAX_EXCERPT_FUNCTION_CHARS = 3000
"""Maximum characters of a function that is shown whole; of a longer one, only the surroundings of the suspicious
line."""
SURROUNDING_LINES = 15
"""Lines before and after a suspicious line."""
MAX_SELECTED_CHARS = 12_000
"""Characters of code in a prompt, about 3,500 tokens. More does not help a small model."""
MAX_RELATED_FUNCTION_CHARS = 1200
"""Characters of a related function, about 350 tokens: a longer one would take the place of the code to repair."""
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

# The conversation
MAX_UNUSABLE_REPLIES = 4
"""Consecutive replies that achieve nothing, after which the turn ends."""
MAX_LOST_REPLIES = 2
"""Consecutive replies that may be lost on their way after a patch: the same question is asked again, because a new
conversation would know nothing of the patch. Chosen by judgement; not measured."""
LOST_REPLY_STRIDE = 1000
"""Distance between the index of a question and that of its repetition; a run has fewer conversations."""
MAX_PATCHES_WITHOUT_GAIN = 6
"""Consecutive patches without a better one, after which the conversation has stalled and a new one may begin. A repair
may have several parts that have no effect of their own."""
MAX_LENGTH_FACTOR = 4
"""Limit of the factor by which replies may become longer after some that were cut."""
DEFAULT_CONTEXT_TOKENS = 32_000
"""Context size, in tokens, that is assumed if the model's is unknown: every capable model has at least this."""
MAX_PROMPT_TOKENS = 100_000
"""Tokens of a prompt, however large the context is: each reply pays for all of it."""
MAX_OPENING_TOKENS = 12_000
"""Tokens of the description of the task and its failing tests. More of the project is what the tools are for."""
RESULT_SHARE_DIVISOR = 4
MAX_RESULT_TOKENS = 8_000
"""A result of a tool has at most the room of the prompt divided by `RESULT_SHARE_DIVISOR`, and this many tokens."""
COMPACTED_SHARE = 0.5
"""Share of the room that the messages fill after they were shortened, so that they can grow again for a while."""
RECENT_MESSAGES = 6
"""Latest messages that are never shortened: a patch, its result, and what the model asked for since."""
MAX_COMPACTED_CHARS = 200
"""Characters that are left of a message that is shortened."""
MAX_LEDGER_INPUT_CHARS = 300
"""Characters of a call's inputs that its event keeps."""
MAX_SHELL_S = 60.0
"""Wall-clock seconds of one shell command; the limit of a test run applies if it is shorter."""
MAX_SUGGESTED_PATHS = 5
"""Paths that a message about a missing file suggests."""

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
