"""Tuning numbers of prompts, roles, replies and tools, with their units and the reason for each."""

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
"""Functions that the repairs of one candidate take turns with."""

# Limits of roles
MAX_SUBTASKS = 4
"""Parts of a plan."""
MAX_LESSONS = 5
"""Lessons of one run."""
MAX_DEBUGGER_STEPS = 5
"""Two or three steps show nearly everything that a small model can use."""
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
"""Lines of the repeated group; a table of a program's own is seldom so uniform."""
EXAMPLES_PER_PROPERTY = 25
"""Inputs that are generated for each property."""
MAX_CHECKS = 24
"""A small model that has begun to list cases may never end."""
MAX_INSPECTED_TESTS = 400
"""Tests of one reply that are inspected, usable or not."""
MAX_CHECK_CHARS = 2000
"""Length of one check with its setup."""
MAX_GENERATED_NUMBER = 100
"""Bound of numbers for which the strategy gives none."""
MAX_GENERATED_ITEMS = 6
"""Bound of lengths for which the strategy gives none."""
