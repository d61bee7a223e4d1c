"""What a call answered, as text: a key that is equal where the answers are equal, and words to show.

Runs behind the wall, in the judge: the standard library only.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

from suture.judge.split.assert_recorder import shorten

ANSWER_NAME = "__suture_told__"
"""The name under which a program leaves what is compared: an answer, and the arguments after the call."""
MOST_ITEMS = 1000
"""Of a generator, which may never end."""
DEEPEST = 40
"""Levels of a value that are compared: it is walked by recursion, and what lies deeper counts as alike."""


def digest_answer(answer: Any, given: Any) -> list[str]:
    """A digest of an answer and of the arguments after the call; and the answer's `repr`, cut if long.

    Equal values have equal digests, whatever the order of a set's or a mapping's parts.
    """
    if hasattr(type(answer), "__next__"):
        answer = list(islice(answer, MOST_ITEMS))
    key = f"{_key(answer)} {_key(given)}"
    return [hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest(), shorten(answer)]


def _key(value: Any, depth: int = 0) -> str:
    if depth > DEEPEST:
        return "..."
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    if isinstance(value, dict):
        pairs = [f"{_key(key, depth + 1)}:{_key(item, depth + 1)}" for key, item in value.items()]
        return f"dict({','.join(sorted(pairs))})"
    if isinstance(value, set | frozenset):
        return f"set({','.join(sorted(_key(item, depth + 1) for item in value))})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({','.join(_key(item, depth + 1) for item in value)})"
    return repr(value)
