"""Writing typed data for the wire and reading it back (see wire.py).

This file runs inside the sandbox, on a bare interpreter. The host uses `is_well_formed`, which checks the
shape of a value without building anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from suture.judge.split.wire import (
    BY_TEXT,
    COLLECTIONS,
    FROZEN,
    LIBRARY,
    MAPPINGS,
    MUTABLE,
    NODE_TAGS,
    SCALAR_TAGS,
    SMALL_INT,
    BadFrame,
    NotData,
    library_name,
    parts,
    plain_part,
    tag_of,
)


class Encoder:
    """Turns values into JSON and remembers the id of each object.

    Args:
        foreign: Writes a value that is not data, or raises `NotData`.
        known: Objects that both ends already have; their ids are their positions.
        with_kin: Whether an instance of a data type's subclass is written with its data and not only its
            handle.
    """

    def __init__(
        self, foreign: Callable[[Any], list[Any]], known: Iterable[Any] = (), *, with_kin: bool = False
    ) -> None:
        self._foreign = foreign
        self._with_kin = with_kin
        self._plain: dict[int, tuple[Any, Any]] = {}
        self.objects = list(known)
        self._first_new = len(self.objects)
        self._ids = {id(thing): position for position, thing in enumerate(self.objects)}
        self._seen: set[int] = set()

    def encode(self, value: Any) -> Any:
        """Return the JSON of a value; its containers become nodes."""
        self._discover(value)
        return self._write(value)

    def nodes(self) -> list[list[Any]]:
        """Return every node that the other end does not have."""
        return [self._node(position) for position in range(self._first_new, len(self.objects))]

    def changed(self, nodes: list[list[Any]]) -> list[list[Any]]:
        """Return the known mutable nodes that differ from `nodes`, and all new ones."""
        for position in range(self._first_new):
            self._discover(self.objects[position])
        before = {node[0]: repr(node) for node in nodes}  # unlike `==`, `repr` distinguishes True from 1
        again = [self._node(i) for i in range(self._first_new) if tag_of(self.objects[i]) not in FROZEN]
        return [node for node in again if repr(node) != before.get(node[0])] + self.nodes()

    def _discover(self, root: Any) -> None:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            value, leaving = stack.pop()
            if leaving:
                self._assign(value)
                continue
            tag = tag_of(value)
            if tag is None:
                plain = self._plain_part(value)
                stack.extend([(plain, False)] if tag_of(plain) is not None else [])
                continue
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            if tag in FROZEN:
                stack.append((value, True))
            else:
                self._assign(value)
            stack.extend((part, False) for part in parts(tag, value))

    def _plain_part(self, value: Any) -> Any:
        if not self._with_kin:
            return None
        if id(value) not in self._plain:
            self._plain[id(value)] = value, plain_part(value)
        return self._plain[id(value)][1]

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
            # JSON would join two lone surrogates into a single character.
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
        fields = take_apart(value) if take_apart is not None else None
        if fields is not None:
            return [library_name(value), *(self._write(part) for part in fields)]
        plain = self._plain_part(value)
        if plain is not None:
            return ["k", *self._foreign(value)[1:3], self._write(plain)]
        return self._foreign(value)


def decode(
    value: Any,
    nodes: list[list[Any]],
    handle: Callable[[list[Any]], Any],
    known: list[Any] | None = None,
    nan: float = math.nan,
) -> tuple[Any, list[Any]]:
    """Read a value back.

    Args:
        value: The result of `Encoder.encode`.
        nodes: The flat list that the value's indices point into (see wire.py).
        handle: Reads foreign values.
        known: Objects that both ends already have; those that changed are updated in place.
        nan: The object that stands for nan.

    Returns:
        The value, and all objects by id.

    Raises:
        BadFrame: The input is not a value.
    """
    try:
        return _Decoder(nodes, handle, known or [], nan).run(value)
    except BadFrame:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise BadFrame(f"not a value: {fault}") from fault


class _Decoder:
    def __init__(
        self, nodes: list[list[Any]], handle: Callable[[list[Any]], Any], known: list[Any], nan: float
    ) -> None:
        self.nodes = nodes
        self.handle = handle
        self.nan = nan
        self.known = len(known)
        self.objects: dict[int, Any] = dict(enumerate(known))
        self.unfilled: list[tuple[Any, Any]] = []

    def run(self, value: Any) -> tuple[Any, list[Any]]:
        for node in self.nodes:
            self._shell(node)
        for node in self.nodes:
            if node[1] in FROZEN:
                self._freeze(node)
        for node in self.nodes:
            if node[1] not in FROZEN:
                self._fill(node)
        found = self._read(value)
        for kin, base in self.unfilled:
            (kin.extend if isinstance(kin, list) else kin.update)(base)
        return found, [self.objects[position] for position in range(len(self.objects))]

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

    def _kin(self, value: list[Any]) -> Any:
        """Return an instance of a data type's subclass; a mutable one is filled after all objects exist."""
        base = self._read(value[3])
        is_mutable = type(base) in MUTABLE.values()
        kin = self.handle([*value[:3], type(base)() if is_mutable else base])
        if is_mutable:
            kin.clear()
            self.unfilled.append((kin, base))
        return kin

    def _read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag = value[0]
        if tag == "r":
            return self.objects[value[1]]
        if tag in ("h", "it", "o"):
            return self.handle(value)
        if tag == "k":
            return self._kin(value)
        made = _scalar(tag, value[1:], self._read)
        return self.nan if type(made) is float and made != made else made


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
    kind = getattr(__import__(module), name)
    make = getattr(kind, BY_TEXT[tag]) if tag in BY_TEXT else kind
    return make(*(read(field) for field in fields))


def is_well_formed(value: Any, nodes: Any) -> bool:
    """Whether a value and its nodes have the right shape; nothing is built to find out."""
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
