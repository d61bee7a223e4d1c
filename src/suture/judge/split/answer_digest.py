"""A digest of a call's answer that is equal for equal answers, and the answer as text.

Runs inside the sandbox, in the judge, and uses the standard library only.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

from suture.judge.split.assert_recorder import shorten_repr

ANSWER_NAME = "__suture_told__"
"""The name under which a program leaves the answer and the arguments after the call."""
MAX_ITEMS = 1000
"""Items taken from a generator, which may never end."""
MAX_DEPTH = 40
"""Levels of a value that are compared; the walk is recursive, and deeper parts count as equal."""


def digest_answer(answer: Any, arguments: Any) -> list[str]:
    """Return a digest of an answer and of the arguments after the call, and the answer's shortened `repr`.

    Equal values have equal digests, whatever the order of a set's or a mapping's parts.
    """
    if hasattr(type(answer), "__next__"):
        answer = list(islice(answer, MAX_ITEMS))
    key = f"{_key(answer)} {_key(arguments)}"
    return [hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest(), shorten_repr(answer)]


def _key(value: Any, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
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
