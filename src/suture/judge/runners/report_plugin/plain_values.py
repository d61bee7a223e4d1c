"""Writing plain data as text, without running code of the project or of its tests."""

from __future__ import annotations

from typing import Any

MAX_VALUE_CHARS = 1500
"""Characters of one value. Chosen by judgement; not measured."""
MAX_PLAIN_PARTS = 5000
"""Parts of a value that is written. Chosen by judgement; not measured."""
MAX_PLAIN_CHARS = 100_000
"""Maximum number of characters of all strings in a plain value. Chosen by judgement; not measured."""
LEAD_CHARS = 300
"""Characters before the first difference of two long values that are kept."""
SCALARS = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
CONTAINERS = (list, tuple, set, frozenset)
STANDARD_MODULES = ("datetime", "decimal", "fractions", "pathlib", "uuid")
"""Modules of the standard library whose values are written too."""


def render_value(value: Any) -> str:
    """Return the value as source, cut if it is long; empty if it is not made of plain data.

    An object of the project would run its own `__repr__`.
    """
    text = _render(value)
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "..."


def render_pair(left: Any, right: Any) -> Any:
    """Return two values as source, with the first difference in what is left of long ones; `None` if not plain."""
    texts = [_render(left), _render(right)]
    if not all(texts):
        return None
    if max(map(len, texts)) <= MAX_VALUE_CHARS:
        return texts
    shortest = min(map(len, texts))
    difference = next((at for at in range(shortest) if texts[0][at] != texts[1][at]), shortest)
    start = max(0, difference - LEAD_CHARS)
    return [_cut(text, start) for text in texts]


def _cut(text: str, start: int) -> str:
    end = start + MAX_VALUE_CHARS
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")


def _render(value: Any) -> str:
    if not _is_plain(value):
        return ""
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, lists that are nested too deeply
        return ""


def _is_plain(value: Any) -> bool:
    waiting, count, chars = [value], 0, 0
    while waiting:
        part = waiting.pop()
        kind = type(part)
        count += 1
        chars += len(part) if kind in (str, bytes) else 0
        if count > MAX_PLAIN_PARTS or chars > MAX_PLAIN_CHARS:
            return False
        if kind is dict:
            waiting.extend(part.keys())
            waiting.extend(part.values())
        elif kind in CONTAINERS:
            waiting.extend(part)
        elif kind not in SCALARS and kind.__module__ not in STANDARD_MODULES:
            return False
    return True
