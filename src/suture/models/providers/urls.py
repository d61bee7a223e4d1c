"""URLs in messages and records, without credentials."""

from __future__ import annotations

import re

CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


def mask_credentials(text: str) -> str:
    """Return a text with `***` in place of the user and password of each URL in it."""
    return CREDENTIALS.sub("***@", text)
