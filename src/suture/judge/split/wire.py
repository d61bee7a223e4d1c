"""Typed data between two walls: Python values as flat JSON, and nothing that could run.

A value is a JSON scalar or a list `[tag, ...]`; a container is `["r", id]` and lives in a list of nodes
`[id, tag, ...]`, so that aliasing and cycles survive and nothing nests. Only exact types are data: a subclass
of `int`, or an object with an `__eq__` of its own, is foreign. What is foreign is up to the two ends
(`foreign` in encoding.py, `handle` in decoding.py).

This file runs behind the wall, on a bare interpreter; it imports the standard library only, and little of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

MAX_FRAME_BYTES = 16 << 20
"""Both ends hold a whole frame in memory, and the candidate says how long its own is."""
SMALL_INT = 1 << 63
"""Larger ones cross in hexadecimal: Python refuses to read or write long decimal numbers."""

# Mutable ones are filled in after all exist; the others refer to lower ids, or to mutable ones.
MUTABLE = {
    "list": list,
    "dict": dict,
    "set": set,
    "bytearray": bytearray,
}
COLLECTIONS = ("Counter", "OrderedDict", "defaultdict", "deque")
FROZEN = {"tuple": tuple, "frozenset": frozenset, "slice": slice}
MAPPINGS = ("dict", "Counter", "OrderedDict", "defaultdict")
TAG_OF = {kind: tag for tag, kind in {**MUTABLE, **FROZEN}.items()}

# Immutable types of the standard library: how to take one apart; calling the type puts it together.
LIBRARY: dict[str, Callable[[Any], tuple[Any, ...] | None]] = {
    "decimal.Decimal": lambda v: (str(v),),
    "fractions.Fraction": lambda v: (v.numerator, v.denominator),
    "datetime.date": lambda v: (v.year, v.month, v.day),
    "datetime.timedelta": lambda v: (v.days, v.seconds, v.microseconds),
    # In the words of ISO 8601; with a time zone of some other kind they are foreign.
    "datetime.datetime": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "datetime.time": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "uuid.UUID": lambda v: (v.hex,),
}
BY_TEXT = {"datetime.datetime": "fromisoformat", "datetime.time": "fromisoformat"}
"""Of these types, how an instance is made of what it was taken apart to."""
BASES: tuple[Any, ...] = (int, float, str, bytes, tuple, frozenset, list, dict, set)
"""Of an instance of their subclasses, the data in it crosses too."""
SCALAR_TAGS = {
    "i": 1,
    "f": 1,
    "c": 2,
    "u": 1,
    "b": 1,
    "range": 3,
    "...": 0,
    "r": 1,
    "h": 1,
    "it": 2,
    "o": 3,
    "k": 3,
}
"""How many parts stand beside a tag; with another number it is no value, whoever sent it."""
NODE_TAGS = frozenset((*MUTABLE, *COLLECTIONS, *FROZEN))


class BadFrame(ValueError):
    """What came over the wire is not a value."""


class NotData(TypeError):
    """A value cannot cross the wire."""


def dump(message: Any) -> bytes:
    """A message as bytes.

    Raises:
        NotData: It is larger than a frame may be.
    """
    frame = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(frame) > MAX_FRAME_BYTES:
        raise NotData(f"{len(frame)} bytes are too many for one frame (at most {MAX_FRAME_BYTES})")
    return frame


def load(frame: bytes) -> dict[str, Any]:
    """The message of some bytes.

    Raises:
        BadFrame: They are no message.
    """
    try:
        message = json.loads(frame) if len(frame) <= MAX_FRAME_BYTES else None
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise BadFrame("not a message")
    return message


def _has_plain_zone(value: Any) -> bool:
    return value.tzinfo is None or library_name(value.tzinfo) == "datetime.timezone"


def plain_part(value: Any) -> Any:
    """The data in an instance of a subclass of a data type, such as a named tuple; else `None`."""
    if type(value) in (*BASES, bool) or library_name(value).startswith("collections."):
        return None
    base = next((kind for kind in BASES if issubclass(type(value), kind)), None)
    if base is None:
        return None
    if base is dict:
        return dict(dict.items(value))
    if base in (int, float):
        return getattr(base, "__pos__")(value)  # noqa: B009 - the base's own, whatever the subclass says
    if base in (str, bytes):
        return base.__getitem__(value, slice(None))
    return base(base.__iter__(value))


def library_name(value: Any) -> str:
    """The dotted name of a standard type, or nothing where `value` is not exactly of one."""
    kind = type(value)
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__name__", "")
    real = getattr(sys.modules.get(module), name, None) if isinstance(module, str) else None
    return f"{module}.{name}" if real is kind else ""


def tag_of(value: Any) -> str | None:
    """The node tag of a container, or `None` for anything else."""
    tag = TAG_OF.get(type(value))
    if tag is None:
        module, _, name = library_name(value).rpartition(".")
        if module == "collections" and name in COLLECTIONS:
            return name
    return tag


def parts(tag: str, value: Any) -> tuple[Any, ...]:
    """What a container holds, in order; keys and values of a mapping take turns."""
    if tag in MAPPINGS:
        return tuple(part for pair in value.items() for part in pair)
    if tag == "slice":
        return (value.start, value.stop, value.step)
    return () if tag == "bytearray" else tuple(value)
