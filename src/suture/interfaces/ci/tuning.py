"""Limits of the CI interface. Where no reason is given, they were chosen by judgement and not measured."""

MAX_COMMITS = 50
"""Commits of a branch that are searched for heals, if its base is unknown or far away."""
MAX_EVENT_BYTES = 16 * 2**20
"""The largest event file of GitHub that is read."""
MAX_BRANCH_CHARS = 255
"""The longest accepted branch name."""
MAX_PERSON_CHARS = 200
"""How much of a person's name is compared with `ci.bots`."""
REQUEST_TIMEOUT_S = 30.0
"""Seconds that a code host may take to answer."""
PAGE_SIZE = 100
"""Entries per page, the maximum that both services return."""
MAX_PAGES = 5
"""Pages that are read of a list of comments, branches or issues."""
MAX_ATTEMPTS = 3
"""How often a request is sent that the service refuses for now, or that it could not answer."""
MAX_WAIT_S = 60.0
"""Longest wait before a request is sent again; a job that sleeps longer costs more than a job that is run again."""
RATE_LIMIT_WAIT_S = 60.0
"""Wait that GitHub asks for where a rate limit names no time."""
RETRY_WAIT_S = 2.0
"""Wait after an error of the service itself."""
MAX_RESPONSE_BYTES = 8 * 2**20
"""A service that sends more does not answer as documented; its answer must not fill the memory."""
MAX_ERROR_CHARS = 300
"""How much of a code host's error is shown."""
MAX_DESELECTED = 500
"""Tests that are deselected by name; each adds an argument to the test command."""
MAX_LISTED_PATHS = 5
"""Forbidden paths that a refusal names."""
MAX_LISTED_NAMES = 10
"""Names that a line of a report lists."""
MAX_BLOCK_CHARS = 20_000
"""Length of one block; a comment on GitHub holds 65,536 characters."""
MAX_SPAN_CHARS = 200
"""Length of inline code."""
MAX_SENTENCE_CHARS = 600
"""Length of a finding in Markdown, which names at most a few tests or values."""
MAX_SUMMARY_FINDINGS = 50
"""Findings in Markdown; a comment on GitHub holds 65,536 characters."""
MAX_ANNOTATIONS = 10
"""Annotations of each kind; GitHub shows no more of a step."""
MAX_TITLE_CHARS = 100
"""Characters of a title that file names may take."""
MAX_FIXED_TESTS = 10
"""Tests that a commit message lists."""
MAX_RESULTS = 1000
"""Results in a SARIF log, and findings in JUnit XML."""
MAX_TEXT_CHARS = 2000
"""Maximum length, in characters, of one string in a SARIF log or in JUnit XML."""
MAX_REPORT_BYTES = 16 * 2**20
"""The largest report of a heal that is read; it names each test."""
