"""Addresses as people and records may see them."""

from __future__ import annotations

import re

CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


def without_credentials(text: str) -> str:
    """A text with `***` in place of the user and the password of each address in it."""
    return CREDENTIALS.sub("***@", text)
