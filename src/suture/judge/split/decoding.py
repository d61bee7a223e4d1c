"""Reading typed data from the wire (see wire.py), and looking at its shape without building anything.

This file runs behind the wall, on a bare interpreter; `well_formed` is also the host's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    BadFrame,
    tag_of,
)


def decode(
    value: Any,
    nodes: list[list[Any]],
    handle: Callable[[list[Any]], Any],
    known: list[Any] | None = None,
    nan: float = math.nan,
) -> tuple[Any, list[Any]]:
    """Read a value back.

    Args:
        value: What `Encoder.encode` answered.
        nodes: The flat list that its indices point into (see wire.py).
        handle: Reads what is foreign.
        known: Objects that both ends have already; those that changed are changed in place.
        nan: What a nan becomes.

    Returns:
        The value, and all objects by id.

    Raises:
        BadFrame: It is no value.
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
        self.late: list[tuple[Any, Any]] = []

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
        for kin, base in self.late:
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
        """An object that is data too; one that can change is filled in when all there is to it exists."""
        base = self._read(value[3])
        is_late = type(base) in MUTABLE.values()
        kin = self.handle([*value[:3], type(base)() if is_late else base])
        if is_late:
            kin.clear()
            self.late.append((kin, base))
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
