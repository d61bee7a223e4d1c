"""What a call answered, as a text: equal answers have equal texts, in whichever process they were made."""

from __future__ import annotations

import re
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
LONGEST = 4000
DEEPEST = 40


def digest_of(answer: Any) -> str:
    """The `repr` of an answer, cut where it is long; a set's items in one order, and no address in it."""
    text = repr(answer)
    if "{" in text or " at 0x" in text:
        text = ADDRESS.sub("", _steady(answer, 0))
    return text[:LONGEST]


def _steady(value: Any, depth: int) -> str:
    """Of two equal sets the items may come in two orders, after how each was made."""
    kind = type(value)
    if kind not in (set, frozenset, list, tuple, dict) or not value:
        return repr(value)
    if depth > DEEPEST:
        return "..."
    if kind is dict:
        pairs = [_steady(key, depth + 1) + ": " + _steady(item, depth + 1) for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    parts = [_steady(item, depth + 1) for item in value]
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    if kind is tuple:
        return "(" + ", ".join(parts) + (",)" if len(parts) == 1 else ")")
    joined = "{" + ", ".join(sorted(parts, key=lambda part: (len(part), part))) + "}"
    return joined if kind is set else "frozenset(" + joined + ")"
