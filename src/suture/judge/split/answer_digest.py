"""Digests of answers, so that the answers of two candidates can be compared without sending them anywhere.

Runs inside the sandbox, in the judge, and uses the standard library only.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

from suture.judge.split.assert_recorder import shorten_repr

ANSWER_NAME = "__suture_answer__"
"""The name under which a program leaves the pair (answer, arguments after the call)."""
MAX_ITEMS = 1000
"""Items taken from a generator, which may never end."""
MAX_DEPTH = 40
"""Levels of a value that are compared; the walk is recursive, and deeper parts count as equal."""


def digest_answer(answer: Any, arguments: Any) -> list[str]:
    """Return `[digest, text]`: a digest of an answer and of the arguments after the call, and the answer's `repr`.

    Equal values have equal digests: 1 and 1.0, and sets and mappings in any order.
    """
    if hasattr(type(answer), "__next__"):
        answer = list(islice(answer, MAX_ITEMS))
    canonical = f"{_render_canonical(answer)} {_render_canonical(arguments)}"
    return [hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(), shorten_repr(answer)]


def _render_canonical(value: Any, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    if isinstance(value, dict):
        pairs = [
            f"{_render_canonical(key, depth + 1)}:{_render_canonical(item, depth + 1)}"
            for key, item in value.items()
        ]
        return f"dict({','.join(sorted(pairs))})"
    if isinstance(value, set | frozenset):
        return f"set({','.join(sorted(_render_canonical(item, depth + 1) for item in value))})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({','.join(_render_canonical(item, depth + 1) for item in value)})"
    return repr(value)
