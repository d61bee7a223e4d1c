"""Texts taken apart into words, for full-text search.

Both engines take texts apart in ways of their own (`os.path` is a host's name to PostgreSQL), so they are
given words that are apart already.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+")
PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""`KeyError` is two words, and one."""
MOST_WORDS = 4000
"""Of one row: PostgreSQL's index takes a megabyte, and nobody searches beyond."""
MOST_LETTERS = 80


def searched_words(*texts: str) -> str:
    """What a column `searched` holds of some texts: their words in lower case, with blanks between.

    Args:
        texts: Anything, code and messages of errors too.
    """
    return " ".join(words_of(" ".join(texts))[:MOST_WORDS])


def words_of(content: str) -> list[str]:
    """The words of a text in lower case, in order."""
    found: list[str] = []
    for word in WORD.findall(content):
        parts = PARTS.split(word)
        found += [part.lower()[:MOST_LETTERS] for part in ((word, *parts) if len(parts) > 1 else parts)]
    return found
