"""The format of typed data between two sandboxed processes: Python values as flat JSON, with nothing executable.

A message is one JSON object, which travels as one frame: four bytes with its length, then its JSON. A value in a
message is a JSON scalar or a tagged list `[tag, field, ...]`:

    ["i", "0x1f..."]        a large int                    ["range", 0, 9, 1]      a range
    ["f", "0x1.8p+0"]       a float                        ["..."]                 the Ellipsis
    ["c", real, imaginary]  a complex, of two floats       ["decimal.Decimal", "1.5"]  see CONSTRUCTOR_ARGUMENTS
    ["b", "6162"]           bytes, in hexadecimal          ["r", 7]                the container with the id 7
    ["u", "eda080"]         string with lone surrogates, as UTF-8 in hexadecimal

A container is a *node* `[id, tag, part, ...]` in a separate list, such as `[7, "list", 1, ["r", 8]]`. So
aliases and cycles survive, and nothing nests.

Only exact types are data. Any other object stays in the candidate's process, which sends a *handle* for it,
a number:

    ["o", handle, type name, truth]      an object; `truth` is None if it has no useful truth value
    ["it", handle, type name]            an iterator
    ["k", handle, type name, data]       an instance of a data type's subclass, such as a named tuple
    ["h", handle]                        in the other direction: the candidate's own object comes back

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

# Mutable containers are filled after all objects exist. The parts of an immutable container must exist before
# it: they are mutable ones, or immutable ones with lower ids.
MUTABLE_TYPES = {"list": list, "dict": dict, "set": set, "bytearray": bytearray}
COLLECTIONS_TAGS = ("Counter", "OrderedDict", "defaultdict", "deque")
IMMUTABLE_TYPES = {"tuple": tuple, "frozenset": frozenset, "slice": slice}
MAPPING_TAGS = ("dict", "Counter", "OrderedDict", "defaultdict")
TAGS_BY_TYPE = {container: tag for tag, container in {**MUTABLE_TYPES, **IMMUTABLE_TYPES}.items()}
NODE_TAGS = frozenset((*MUTABLE_TYPES, *COLLECTIONS_TAGS, *IMMUTABLE_TYPES))

CONSTRUCTOR_ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...] | None]] = {
    "decimal.Decimal": lambda v: (str(v),),
    "fractions.Fraction": lambda v: (v.numerator, v.denominator),
    "datetime.date": lambda v: (v.year, v.month, v.day),
    "datetime.timedelta": lambda v: (v.days, v.seconds, v.microseconds),
    # As an ISO 8601 string; values with another kind of time zone are foreign.
    "datetime.datetime": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "datetime.time": lambda v: (v.isoformat(),) if _has_plain_zone(v) else None,
    "uuid.UUID": lambda v: (v.hex,),
}
"""Immutable type of the standard library -> a function that returns the arguments that rebuild a value."""
TEXT_CONSTRUCTORS = {"datetime.datetime": "fromisoformat", "datetime.time": "fromisoformat"}
"""The constructor of each type that its own constructor does not rebuild from a string."""
BASE_TYPES: tuple[Any, ...] = (int, float, str, bytes, tuple, frozenset, list, dict, set)
"""Data types. An instance of a subclass of one crosses with its data."""
FIELD_COUNTS = {
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
"""How many fields follow each tag; a list with another number of fields is not a value."""


class BadFrame(ValueError):
    """Received bytes are not a message, or a part of a message is not a value."""


class NotData(TypeError):
    """A value cannot cross the wire."""


def dump(message: Any) -> bytes:
    """Return the frame of a message.

    Raises:
        NotData: The message is larger than a frame may be.
    """
    frame = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(frame) > MAX_FRAME_BYTES:
        raise NotData(f"{len(frame)} bytes are too many for one frame (at most {MAX_FRAME_BYTES})")
    return frame


def load(frame: bytes) -> dict[str, Any]:
    """Return the message of a frame.

    Raises:
        BadFrame: The frame is not a message.
    """
    try:
        message = json.loads(frame) if len(frame) <= MAX_FRAME_BYTES else None
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise BadFrame("not a message")
    return message


def _has_plain_zone(value: Any) -> bool:
    return value.tzinfo is None or get_library_name(value.tzinfo) == "datetime.timezone"


def get_base_data(value: Any) -> Any:
    """Return the data in an instance of a data type's subclass, such as a named tuple; else `None`."""
    if type(value) in (*BASE_TYPES, bool) or get_library_name(value).startswith("collections."):
        return None
    base = next((data_type for data_type in BASE_TYPES if issubclass(type(value), data_type)), None)
    if base is None:
        return None
    # The base's own methods are called, because the subclass may override them.
    if base is dict:
        return dict(dict.items(value))
    if base in (int, float):
        return getattr(base, "__pos__")(value)  # noqa: B009 - `base.__pos__` has no type that a checker knows
    if base in (str, bytes):
        return base.__getitem__(value, slice(None))
    return base(base.__iter__(value))


def get_library_name(value: Any) -> str:
    """Return the dotted name of a standard library type; empty unless `value` is exactly of that type."""
    value_type = type(value)
    module, name = getattr(value_type, "__module__", ""), getattr(value_type, "__name__", "")
    # A class can claim any name, so the name is looked up and must lead to this very class.
    named_type = getattr(sys.modules.get(module), name, None) if isinstance(module, str) else None
    return f"{module}.{name}" if named_type is value_type else ""


def get_container_tag(value: Any) -> str | None:
    """Return the node tag of a container; `None` for any other value."""
    tag = TAGS_BY_TYPE.get(type(value))
    if tag is None:
        module, _, name = get_library_name(value).rpartition(".")
        if module == "collections" and name in COLLECTIONS_TAGS:
            return name
    return tag


def get_parts(tag: str, value: Any) -> tuple[Any, ...]:
    """Return the contents of a container in order; keys and values of a mapping alternate."""
    if tag in MAPPING_TAGS:
        return tuple(part for pair in value.items() for part in pair)
    if tag == "slice":
        return (value.start, value.stop, value.step)
    return () if tag == "bytearray" else tuple(value)


class FrameStream:
    """The program's end of the channel to the host.

    It moves stdin and stdout to other file descriptors, so that a stray print cannot disturb the messages.
    The program then has an empty stdin, and what it writes to stdout goes to stderr.
    """

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        self._read, self._write = os.read, os.write  # the candidate may replace those of `os`

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or `None` after the last one."""
        length = self._read_exactly(4)
        body = self._read_exactly(int.from_bytes(length, "big")) if length is not None else None
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

    def _read_exactly(self, size: int) -> bytes | None:
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
