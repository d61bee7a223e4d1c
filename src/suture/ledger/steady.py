"""Text without what differs between two runs of the very same program."""

from __future__ import annotations

import re

VOLATILE = (
    (re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b"), "at 0x0"),  # the default repr of an object
    (re.compile(r"\bin \d+\.\d+ ?s\b"), "in 0s"),  # the last line of pytest, and of unittest
    (re.compile(r"\b\d+\.\d+s (?=call|setup|teardown)"), "0s "),  # pytest --durations
    (re.compile(r"/tmp/tmp[a-z0-9_]{8}\b"), "/tmp/tmp"),  # the folders of `tempfile`
)


def steady_text(text: str) -> str:
    """The text with addresses of objects, durations of test runs and names of temporary folders made alike.

    It is for comparing and for naming calls, never for showing.
    """
    for pattern, alike in VOLATILE:
        text = pattern.sub(alike, text)
    return text
