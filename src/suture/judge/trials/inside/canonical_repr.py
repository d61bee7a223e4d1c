"""Render a value so that equal values have equal texts, in whichever process they were made."""

from __future__ import annotations

import hashlib
import re
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
HIDDEN_ADDRESS = " at ?"
"""Replaces an address in the text of an object whose content is not visible."""
MAX_CHARS = 4000
MAX_DEPTH = 40
CHECKSUM_CHARS = 16
"""Characters of the checksum that replaces the end of a long text, so that different long texts differ."""


def canonical_repr(value: Any) -> str:
    """Return the `repr` of a value, with the items of sets sorted and plain objects shown by their
    attributes.

    The end of a long text is replaced by a checksum.
    """
    text = repr(value)
    if "{" in text or " at 0x" in text:
        text = ADDRESS.sub(HIDDEN_ADDRESS, _CanonicalText().render(value, 0))
    if len(text) <= MAX_CHARS:
        return text
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return text[: MAX_CHARS - CHECKSUM_CHARS] + checksum[:CHECKSUM_CHARS]


class _CanonicalText:
    """Renders one value. The items of two equal sets may be in different orders, so they are sorted."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def render(self, value: Any, depth: int) -> str:
        """Return the text of the value, or of a part of it."""
        kind = type(value)
        if kind not in (set, frozenset, list, tuple, dict) or not value:
            text = repr(value)
            return self._render_object(value, depth) if " at 0x" in text and _has_only_dict(kind) else text
        if depth > MAX_DEPTH:
            return "..."
        if kind is dict:
            pairs = [
                f"{self.render(key, depth + 1)}: {self.render(item, depth + 1)}"
                for key, item in value.items()
            ]
            return "{" + ", ".join(pairs) + "}"
        parts = [self.render(item, depth + 1) for item in value]
        if kind is list:
            return "[" + ", ".join(parts) + "]"
        if kind is tuple:
            return "(" + ", ".join(parts) + (",)" if len(parts) == 1 else ")")
        joined = "{" + ", ".join(sorted(parts, key=lambda part: (len(part), part))) + "}"
        return joined if kind is set else "frozenset(" + joined + ")"

    def _render_object(self, value: Any, depth: int) -> str:
        """Return the attributes of an object without its own `repr`, or its number if it occurred before."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__} object"
        if id(value) in self._numbers:
            return f"<{name} #{self._numbers[id(value)]}>"
        self._numbers[id(value)] = len(self._numbers)
        attributes = dict(getattr(value, "__dict__", ()))
        return f"<{name} {self.render(attributes, depth + 1)}>" if attributes else f"<{name}>"


def _has_only_dict(kind: type) -> bool:
    """Return whether the default `repr` applies and all that an object of a class holds is in its `__dict__`."""
    has_no_slots = all(
        base is object or ("__dict__" in dir(base) and not vars(base).get("__slots__"))
        for base in kind.__mro__
    )
    default_repr: Any = object.__repr__
    return kind.__repr__ is default_repr and has_no_slots
