"""Limits of the editor interfaces. Where no reason is given, they were chosen by judgement and not measured."""

MAX_FILE_BYTES = 16 * 2**20
"""The largest file that is read to compare it with the editor."""
MAX_SESSION_FILE_BYTES = 2**20
"""The largest file of a session."""
MAX_LISTED_SESSIONS = 50
"""Sessions that are listed, the newest ones."""
MAX_COUNTEREXAMPLES = 3
"""Failures that are shown of one candidate."""
MAX_DIFF_CHARS = 200_000
"""Length of a file in a diff; a longer file is only named."""
MAX_RELATED = 5
"""Further locations that are shown of one failing test."""
MAX_PROGRESS_CHARS = 200
"""Length of a progress line."""
MAX_MESSAGE_CHARS = 1500
"""Length of the message of a diagnostic."""
