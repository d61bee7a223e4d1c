"""Typed data between two sandboxed processes: Python values as flat JSON that contains nothing executable.

A value is a JSON scalar or a list `[tag, ...]`. A container is `["r", id]` and lives in a list of nodes `[id,
tag, ...]`, so that aliasing and cycles survive and nothing nests. Only exact types are data: a subclass of
`int`, or an object with an `__eq__` of its own, is foreign. Each end decides what to do with foreign values
(`foreign` of `Encoder`, `handle` of `decode`).

This file runs inside the sandbox, on a bare interpreter, and imports only a little of the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

MAX_FRAME_BYTES = 16 << 20
"""Both ends hold a whole frame in memory, and the candidate announces the length of its own frames."""
SMALL_INT = 1 << 63
"""Larger integers cross in hexadecimal: Python refuses to read or write long decimal numbers."""

# Mutable containers are filled after all objects exist; the others refer to lower ids or to mutable ones.
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

# Immutable types of the standard library: how to split a value into arguments that rebuild it.
LIBRARY: dict[str, Callable[[Any], tuple[Any, ...] | None]] = {
    "decimal.Decimal": lambda v: (str(v),),
    "fractions.Fraction": lambda v: (v.numerator, v.denominator),
    "datetime.date": lambda v: (v.year, v.month, v.day),
    "datetime.timedelta": lambda v: (v.days, v.seconds, v.microseconds),
    # As ISO 8601 text; values with another kind of time zone are foreign.
    "datetime.datetime": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "datetime.time": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "uuid.UUID": lambda v: (v.hex,),
}
BY_TEXT = {"datetime.datetime": "fromisoformat", "datetime.time": "fromisoformat"}
"""The constructor for types that are rebuilt from text."""
BASES: tuple[Any, ...] = (int, float, str, bytes, tuple, frozenset, list, dict, set)
"""Data types; the data in an instance of one of their subclasses crosses too."""
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
"""How many parts follow each tag; a list with another number of parts is not a value."""
NODE_TAGS = frozenset((*MUTABLE, *COLLECTIONS, *FROZEN))


class BadFrame(ValueError):
    """Received bytes are not a value."""


class NotData(TypeError):
    """A value cannot cross the wire."""


def dump(message: Any) -> bytes:
    """Return a message as bytes.

    Raises:
        NotData: The message is larger than a frame may be.
    """
    frame = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(frame) > MAX_FRAME_BYTES:
        raise NotData(f"{len(frame)} bytes are too many for one frame (at most {MAX_FRAME_BYTES})")
    return frame


def load(frame: bytes) -> dict[str, Any]:
    """Return the message that some bytes contain.

    Raises:
        BadFrame: The bytes are not a message.
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
    """Return the data in an instance of a subclass of a data type, such as a named tuple; else `None`."""
    if type(value) in (*BASES, bool) or library_name(value).startswith("collections."):
        return None
    base = next((kind for kind in BASES if issubclass(type(value), kind)), None)
    if base is None:
        return None
    if base is dict:
        return dict(dict.items(value))
    if base in (int, float):
        return getattr(base, "__pos__")(value)  # noqa: B009 - the base's method, even if the subclass overrides it
    if base in (str, bytes):
        return base.__getitem__(value, slice(None))
    return base(base.__iter__(value))


def library_name(value: Any) -> str:
    """Return the dotted name of a standard library type; empty unless `value` is exactly of that type."""
    kind = type(value)
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__name__", "")
    real = getattr(sys.modules.get(module), name, None) if isinstance(module, str) else None
    return f"{module}.{name}" if real is kind else ""


def tag_of(value: Any) -> str | None:
    """Return the node tag of a container; `None` for any other value."""
    tag = TAG_OF.get(type(value))
    if tag is None:
        module, _, name = library_name(value).rpartition(".")
        if module == "collections" and name in COLLECTIONS:
            return name
    return tag


def parts(tag: str, value: Any) -> tuple[Any, ...]:
    """Return the contents of a container in order; keys and values of a mapping alternate."""
    if tag in MAPPINGS:
        return tuple(part for pair in value.items() for part in pair)
    if tag == "slice":
        return (value.start, value.stop, value.step)
    return () if tag == "bytearray" else tuple(value)


class FrameStream:
    """The program's end of a channel, on file descriptors that a stray print cannot reach.

    It takes over stdin and stdout, and leaves the program an empty stdin and stderr as its stdout.
    """

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        self._read, self._write = os.read, os.write

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or `None` after the last one."""
        head = self._exactly(4)
        body = self._exactly(int.from_bytes(head, "big")) if head is not None else None
        return None if body is None else load(body)

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            NotData: The message is too large.
        """
        body = dump(message)
        view = memoryview(len(body).to_bytes(4, "big") + body)
        while view:
            view = view[self._write(self._out, view) :]

    def _exactly(self, size: int) -> bytes | None:
        chunks = []
        while size:
            chunk = self._read(self._in, min(size, 1 << 20))
            if not chunk:
                return None
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    @staticmethod
    def flush_prints() -> None:
        """Flush what the program printed."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                continue  # the program closed or replaced it
