"""The words of a text for full-text search. They have their own module because the search imports SQLAlchemy."""

from __future__ import annotations

import re

from suture.storage.tuning import MAX_INDEXED_WORDS, MAX_WORD_CHARS

WORD = re.compile(r"[^\W_]+")
CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Splits `KeyError` into two words; the whole word is indexed too."""


def index_text(*texts: str) -> str:
    """Return the value of a `search_text` column: the words of some strings in lower case, separated by blanks."""
    return " ".join(split_words(" ".join(texts))[:MAX_INDEXED_WORDS])


def split_words(content: str) -> list[str]:
    """Return the words of a string in lower case, in order."""
    words: list[str] = []
    for word in WORD.findall(content):
        parts = CAMEL_CASE.split(word)
        words += [part.lower()[:MAX_WORD_CHARS] for part in ((word, *parts) if len(parts) > 1 else parts)]
    return words
