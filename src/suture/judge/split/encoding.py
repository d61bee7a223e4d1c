"""Writing typed data for the wire (see wire.py).

This file runs behind the wall, on a bare interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from suture.judge.split.wire import (
    FROZEN,
    LIBRARY,
    SMALL_INT,
    NotData,
    library_name,
    parts,
    plain_part,
    tag_of,
)


class Encoder:
    """Turns values into JSON, and remembers which object got which id.

    Args:
        foreign: Writes what is not data; answers a value, or raises `NotData`.
        known: Objects that both ends have already; their ids are their positions.
        with_kin: Whether the data in an instance of a data type's subclass is written with its handle.
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
        before = {node[0]: repr(node) for node in nodes}  # unlike `==`, it tells True from 1
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
        fields = take_apart(value) if take_apart is not None else None
        if fields is not None:
            return [library_name(value), *(self._write(part) for part in fields)]
        plain = self._plain_part(value)
        if plain is not None:
            return ["k", *self._foreign(value)[1:3], self._write(plain)]
        return self._foreign(value)
