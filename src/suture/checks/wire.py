"""Typed data between two walls: Python values as flat JSON, and nothing that could run.

A value is a JSON scalar or a list `[tag, ...]`; a container is `["r", id]` and lives in a list of nodes
`[id, tag, ...]`, so that aliasing and cycles survive and nothing nests. Only exact types are data: a subclass
of `int`, or an object with an `__eq__` of its own, is foreign. What is foreign is up to the two ends
(`foreign` when writing, `handle` when reading).

This file runs behind the wall, on a bare interpreter; it imports the standard library only, and little of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["MAX_FRAME_BYTES", "BadFrame", "Encoder", "NotData", "decode", "dump", "load", "well_formed"]

MAX_FRAME_BYTES = 16 << 20
SMALL_INT = 1 << 63

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
LIBRARY: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "decimal.Decimal": lambda v: (str(v),),
    "fractions.Fraction": lambda v: (v.numerator, v.denominator),
    "datetime.date": lambda v: (v.year, v.month, v.day),
    "datetime.timedelta": lambda v: (v.days, v.seconds, v.microseconds),
}
SCALAR_TAGS = {"i": 1, "f": 1, "c": 2, "u": 1, "b": 1, "range": 3, "...": 0, "r": 1, "h": 1, "it": 2, "o": 3}
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


class Encoder:
    """Turns values into JSON, and remembers which object got which id.

    Args:
        foreign: Writes what is not data; answers a value, or raises `NotData`.
        known: Objects that both ends have already; their ids are their positions.
    """

    def __init__(self, foreign: Callable[[Any], list[Any]], known: Iterable[Any] = ()) -> None:
        self._foreign = foreign
        self.objects = list(known)
        self._first_new = len(self.objects)
        self._ids = {id(thing): position for position, thing in enumerate(self.objects)}
        self._seen: set[int] = set()

    def encode(self, value: Any) -> Any:
        """The JSON of `value`; its containers become nodes."""
        self._discover(value)
        return self._write(value)

    def nodes(self) -> list[list[Any]]:
        """Every node that the other end does not have."""
        return [self._node(position) for position in range(self._first_new, len(self.objects))]

    def changed(self, nodes: list[list[Any]]) -> list[list[Any]]:
        """The known mutable nodes that are no longer what `nodes` says, and all new ones."""
        for position in range(self._first_new):
            self._discover(self.objects[position])
        before = {node[0]: json.dumps(node) for node in nodes}
        again = [self._node(i) for i in range(self._first_new) if tag_of(self.objects[i]) not in FROZEN]
        return [node for node in again if json.dumps(node) != before.get(node[0])] + self.nodes()

    def _discover(self, root: Any) -> None:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            value, leaving = stack.pop()
            if leaving:
                self._assign(value)
                continue
            tag = tag_of(value)
            if tag is None or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            if tag in FROZEN:
                stack.append((value, True))
            else:
                self._assign(value)
            stack.extend((part, False) for part in parts(tag, value))

    def _assign(self, value: Any) -> None:
        if id(value) not in self._ids:
            self._ids[id(value)] = len(self.objects)
            self.objects.append(value)

    def _node(self, position: int) -> list[Any]:
        value = self.objects[position]
        tag = tag_of(value)
        if tag is None:
            raise NotData(f"an object of type {type(value).__name__} changed its class")
        node: list[Any] = [position, tag]
        if tag == "bytearray":
            return [*node, value.hex()]
        if tag == "deque":
            node.append(value.maxlen)
        return node + [self._write(part) for part in parts(tag, value)]

    def _write(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -SMALL_INT < value < SMALL_INT else ["i", hex(value)]
        if kind is str:
            # JSON would join two lone surrogates into one character.
            clean = value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
            return value if clean else ["u", value.encode("utf-8", "surrogatepass").hex()]
        if id(value) in self._ids:
            return ["r", self._ids[id(value)]]
        return self._write_rare(value, kind)

    def _write_rare(self, value: Any, kind: type) -> Any:
        if kind is float:
            return ["f", value.hex()]
        if kind is complex:
            return ["c", value.real.hex(), value.imag.hex()]
        if kind is bytes:
            return ["b", value.hex()]
        if kind is range:
            return ["range", *(self._write(bound) for bound in (value.start, value.stop, value.step))]
        if value is ...:
            return ["..."]
        take_apart = LIBRARY.get(library_name(value))
        if take_apart is not None:
            return [library_name(value), *(self._write(part) for part in take_apart(value))]
        return self._foreign(value)


def decode(
    value: Any, nodes: list[list[Any]], handle: Callable[[list[Any]], Any], known: list[Any] | None = None
) -> tuple[Any, list[Any]]:
    """Read a value back.

    Args:
        value: What `Encoder.encode` answered.
        nodes: Its nodes.
        handle: Reads what is foreign.
        known: Objects that both ends have already; those that changed are changed in place.

    Returns:
        The value, and all objects by id.

    Raises:
        BadFrame: It is no value.
    """
    try:
        return _Decoder(nodes, handle, known or []).run(value)
    except BadFrame:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise BadFrame(f"not a value: {fault}") from fault


class _Decoder:
    def __init__(self, nodes: list[list[Any]], handle: Callable[[list[Any]], Any], known: list[Any]) -> None:
        self.nodes = nodes
        self.handle = handle
        self.known = len(known)
        self.objects: dict[int, Any] = dict(enumerate(known))

    def run(self, value: Any) -> tuple[Any, list[Any]]:
        for node in self.nodes:
            self._shell(node)
        for node in self.nodes:
            if node[1] in FROZEN:
                self._freeze(node)
        for node in self.nodes:
            if node[1] not in FROZEN:
                self._fill(node)
        return self._read(value), [self.objects[position] for position in range(len(self.objects))]

    def _shell(self, node: list[Any]) -> None:
        position, tag = node[0], node[1]
        if position < self.known:
            if tag in FROZEN or tag_of(self.objects[position]) != tag:
                raise BadFrame("an argument came back as something else")
        elif tag in MUTABLE:
            self.objects[position] = MUTABLE[tag]()
        elif tag in COLLECTIONS:
            self.objects[position] = self._collection(node)

    def _collection(self, node: list[Any]) -> Any:
        import collections

        if node[1] == "deque":
            return collections.deque(maxlen=node[2])
        return getattr(collections, node[1])()

    def _freeze(self, node: list[Any]) -> None:
        items = [self._read(part) for part in node[2:]]
        made = slice(*items) if node[1] == "slice" else FROZEN[node[1]](items)
        self.objects[node[0]] = made

    def _fill(self, node: list[Any]) -> None:
        target, tag = self.objects[node[0]], node[1]
        if tag == "bytearray":
            target[:] = bytes.fromhex(node[2])
            return
        target.clear()
        items = [self._read(part) for part in node[3 if tag == "deque" else 2 :]]
        if tag in MAPPINGS:
            for key, item in zip(items[::2], items[1::2], strict=True):
                target[key] = item
        elif tag == "set":
            target.update(items)
        else:
            target.extend(items)

    def _read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag = value[0]
        if tag == "r":
            return self.objects[value[1]]
        if tag in ("h", "it", "o"):
            return self.handle(value)
        return _scalar(tag, value[1:], self._read)


def _scalar(tag: str, fields: list[Any], read: Callable[[Any], Any]) -> Any:
    if tag == "i":
        return int(fields[0], 16)
    if tag == "f":
        return float.fromhex(fields[0])
    if tag == "c":
        return complex(float.fromhex(fields[0]), float.fromhex(fields[1]))
    if tag == "u":
        return bytes.fromhex(fields[0]).decode("utf-8", "surrogatepass")
    if tag == "b":
        return bytes.fromhex(fields[0])
    if tag == "range":
        return range(*(read(field) for field in fields))
    if tag == "...":
        return ...
    if tag not in LIBRARY:
        raise BadFrame(f"unknown tag {tag!r}")
    module, _, name = tag.rpartition(".")
    return getattr(__import__(module), name)(*(read(field) for field in fields))


def well_formed(value: Any, nodes: Any) -> bool:
    """Whether a value and its nodes have the right shape, found without building anything of them."""
    if not isinstance(nodes, list) or not _well_formed_value(value):
        return False
    return all(_well_formed_node(node) for node in nodes)


def _well_formed_node(node: Any) -> bool:
    return (
        isinstance(node, list)
        and len(node) >= 2
        and type(node[0]) is int
        and node[0] >= 0
        and isinstance(node[1], str)
        and node[1] in NODE_TAGS
        and all(_well_formed_value(part) for part in node[2:])
    )


def _well_formed_value(value: Any, depth: int = 0) -> bool:
    if value is None or type(value) in (bool, int, str):
        return True
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or depth > 1:
        return False
    if value[0] not in SCALAR_TAGS and value[0] not in LIBRARY:
        return False
    if SCALAR_TAGS.get(value[0], len(value) - 1) != len(value) - 1:
        return False
    return all(_well_formed_value(field, depth + 1) for field in value[1:])
