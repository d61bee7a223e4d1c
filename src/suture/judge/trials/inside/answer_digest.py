"""What a call answered, as a text: equal answers have equal texts, in whichever process they were made."""

from __future__ import annotations

import hashlib
import re
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
UNSEEN = " at ?"
"""In the place of an address: of what is there, nothing is seen."""
LONGEST = 4000
DEEPEST = 40
SUM_CHARS = 16
"""Of the sum that stands for the end of a longer text, so that two such texts still differ."""


def digest_of(answer: Any) -> str:
    """The `repr` of an answer; a set's items in one order, and what plain objects hold in place of addresses.

    Where it is long, a sum stands for its end.
    """
    text = repr(answer)
    if "{" in text or " at 0x" in text:
        text = ADDRESS.sub(UNSEEN, _Steady().of(answer, 0))
    if len(text) <= LONGEST:
        return text
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return text[: LONGEST - SUM_CHARS] + whole[:SUM_CHARS]


class _Steady:
    """One answer's text: of two equal sets the items may come in two orders, after how each was made."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}

    def of(self, value: Any, depth: int) -> str:
        """The text of one of its values."""
        kind = type(value)
        if kind not in (set, frozenset, list, tuple, dict) or not value:
            text = repr(value)
            return self._state(value, depth) if " at 0x" in text and _is_plain(kind) else text
        if depth > DEEPEST:
            return "..."
        if kind is dict:
            pairs = [f"{self.of(key, depth + 1)}: {self.of(item, depth + 1)}" for key, item in value.items()]
            return "{" + ", ".join(pairs) + "}"
        parts = [self.of(item, depth + 1) for item in value]
        if kind is list:
            return "[" + ", ".join(parts) + "]"
        if kind is tuple:
            return "(" + ", ".join(parts) + (",)" if len(parts) == 1 else ")")
        joined = "{" + ", ".join(sorted(parts, key=lambda part: (len(part), part))) + "}"
        return joined if kind is set else "frozenset(" + joined + ")"

    def _state(self, value: Any, depth: int) -> str:
        """An object that says nothing of itself, by what it holds; one that was met before, by its number."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__} object"
        if id(value) in self._met:
            return f"<{name} #{self._met[id(value)]}>"
        self._met[id(value)] = len(self._met)
        held = dict(getattr(value, "__dict__", ()))
        return f"<{name} {self.of(held, depth + 1)}>" if held else f"<{name}>"


def _is_plain(kind: type) -> bool:
    """Whether all that an object of a class holds is in its `__dict__`."""
    bare = all(base is object or ("__dict__" in dir(base) and not _slots(base)) for base in kind.__mro__)
    says_nothing: Any = object.__repr__
    return kind.__repr__ is says_nothing and bare


def _slots(kind: type) -> bool:
    return bool(vars(kind).get("__slots__"))
