"""Encoding Python values as plain JSON and decoding them again; wire.py describes the format and its tags.

A value that is not data is *foreign*: a generator, an object of the project's own class. The two callables
`write_foreign` and `read_foreign` say what happens to it, because the two ends differ: the candidate's side
keeps the object and sends a number for it (its *handle*), and the judge's side builds a proxy for that number.

This file runs inside the sandbox, on a bare interpreter. The host uses `is_well_formed`, which checks the
shape of a value without building anything.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from suture.judge.split.wire import (
    COLLECTIONS_TAGS,
    CONSTRUCTOR_ARGUMENTS,
    FIELD_COUNTS,
    IMMUTABLE_TYPES,
    MAPPING_TAGS,
    MUTABLE_TYPES,
    NODE_TAGS,
    SMALL_INT,
    TEXT_CONSTRUCTORS,
    BadFrame,
    NotData,
    get_base_data,
    get_container_tag,
    get_library_name,
    get_parts,
)


class Encoder:
    """Encodes values as JSON and gives every container a number, its id.

    Args:
        write_foreign: Returns the JSON of a foreign value, or raises `NotData`.
        known: Objects that both ends already have; the id of each is its position.
        with_subclasses: Whether to encode an instance of a data type's subclass, such as a named tuple, as
            its data and its handle. Otherwise it is foreign like any other object.
    """

    def __init__(
        self,
        write_foreign: Callable[[Any], list[Any]],
        known: Iterable[Any] = (),
        *,
        with_subclasses: bool = False,
    ) -> None:
        self._write_foreign = write_foreign
        self._with_subclasses = with_subclasses
        self._base_data: dict[int, tuple[Any, Any]] = {}
        """id() of an instance of a subclass -> (the instance, its data). Keeping both keeps the id() unique."""
        self.objects = list(known)
        self._known_count = len(self.objects)
        self._ids = {id(item): position for position, item in enumerate(self.objects)}
        self._visited: set[int] = set()

    def encode(self, value: Any) -> Any:
        """Return the JSON of a value; `new_nodes` returns the containers that it refers to."""
        self._number_containers(value)
        return self._write(value)

    def new_nodes(self) -> list[list[Any]]:
        """Return the nodes of all containers that the other end does not have."""
        return [self._node(position) for position in range(self._known_count, len(self.objects))]

    def changed_nodes(self, nodes: list[list[Any]]) -> list[list[Any]]:
        """Return the nodes of the known mutable objects that differ from `nodes`, and all new nodes."""
        for position in range(self._known_count):
            self._number_containers(self.objects[position])
        old_texts = {node[0]: repr(node) for node in nodes}  # unlike `==`, `repr` distinguishes True from 1
        known_nodes = [
            self._node(position)
            for position in range(self._known_count)
            if get_container_tag(self.objects[position]) not in IMMUTABLE_TYPES
        ]
        return [node for node in known_nodes if repr(node) != old_texts.get(node[0])] + self.new_nodes()

    def _number_containers(self, root: Any) -> None:
        """Give an id to every container that is reachable from a value.

        An immutable container gets its id after its parts, because the decoder can only build it from parts
        that exist. A mutable one gets its id before them, so that cycles end. The explicit stack lets values
        nest deeper than Python's recursion limit.
        """
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            value, parts_are_numbered = stack.pop()
            if parts_are_numbered:
                self._assign_id(value)
                continue
            tag = get_container_tag(value)
            if tag is None:
                base_data = self._get_base_data(value)
                if get_container_tag(base_data) is not None:
                    stack.append((base_data, False))
                continue
            if id(value) in self._visited:
                continue
            self._visited.add(id(value))
            if tag in IMMUTABLE_TYPES:
                stack.append((value, True))
            else:
                self._assign_id(value)
            stack.extend((part, False) for part in get_parts(tag, value))

    def _get_base_data(self, value: Any) -> Any:
        if not self._with_subclasses:
            return None
        if id(value) not in self._base_data:
            self._base_data[id(value)] = value, get_base_data(value)
        return self._base_data[id(value)][1]

    def _assign_id(self, value: Any) -> None:
        if id(value) not in self._ids:
            self._ids[id(value)] = len(self.objects)
            self.objects.append(value)

    def _node(self, position: int) -> list[Any]:
        value = self.objects[position]
        tag = get_container_tag(value)
        if tag is None:
            raise NotData(f"an object of type {type(value).__name__} changed its class")
        node: list[Any] = [position, tag]
        if tag == "bytearray":
            return [*node, value.hex()]
        if tag == "deque":
            node.append(value.maxlen)
        return node + [self._write(part) for part in get_parts(tag, value)]

    def _write(self, value: Any) -> Any:
        value_type = type(value)
        if value is None or value_type is bool:
            return value
        if value_type is int:
            return value if -SMALL_INT < value < SMALL_INT else ["i", hex(value)]
        if value_type is str:
            # JSON would join two lone surrogates into a single character.
            has_surrogates = not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
            return ["u", value.encode("utf-8", "surrogatepass").hex()] if has_surrogates else value
        if id(value) in self._ids:
            return ["r", self._ids[id(value)]]
        return self._write_rare(value)

    def _write_rare(self, value: Any) -> Any:
        value_type = type(value)
        if value_type is float:
            return ["f", value.hex()]
        if value_type is complex:
            return ["c", value.real.hex(), value.imag.hex()]
        if value_type is bytes:
            return ["b", value.hex()]
        if value_type is range:
            return ["range", *(self._write(bound) for bound in (value.start, value.stop, value.step))]
        if value is ...:
            return ["..."]
        library_name = get_library_name(value)
        get_arguments = CONSTRUCTOR_ARGUMENTS.get(library_name)
        arguments = get_arguments(value) if get_arguments is not None else None
        if arguments is not None:
            return [library_name, *(self._write(argument) for argument in arguments)]
        base_data = self._get_base_data(value)
        if base_data is not None:
            _, handle, type_name, *_ = self._write_foreign(value)
            return ["k", handle, type_name, self._write(base_data)]
        return self._write_foreign(value)


def decode(
    value: Any,
    nodes: list[list[Any]],
    read_foreign: Callable[[list[Any]], Any],
    known: Mapping[int, Any] | None = None,
    read_number: Callable[[Any], Any] | None = None,
) -> tuple[Any, list[Any]]:
    """Decode a value.

    Args:
        value: The result of `Encoder.encode`.
        nodes: The nodes of the containers that the value refers to by their ids.
        read_foreign: Returns the object for the JSON of a foreign value.
        known: Id -> object that exists already; those that `nodes` contains are updated in place.
        read_number: Returns the object for a float or a complex number; by default the number itself.

    Returns:
        (value, objects): the decoded value, and all known and decoded containers in the order of their ids.

    Raises:
        BadFrame: The input is not an encoded value.
    """
    try:
        return _Decoder(nodes, read_foreign, known or {}, read_number).run(value)
    except BadFrame:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise BadFrame(f"not a value: {fault}") from fault


class _Decoder:
    """Decodes one value; the arguments are those of `decode`.

    Containers may refer to each other in cycles. So all mutable ones are created empty, then the immutable
    ones are built, and then the mutable ones are filled.
    """

    def __init__(
        self,
        nodes: list[list[Any]],
        read_foreign: Callable[[list[Any]], Any],
        known: Mapping[int, Any],
        read_number: Callable[[Any], Any] | None,
    ) -> None:
        self._nodes = nodes
        self._read_foreign = read_foreign
        self._read_number = read_number
        self._known_ids = frozenset(known)
        self._objects = dict(known)
        self._unfilled: list[tuple[Any, Any]] = []
        """Pairs (empty instance of a list, dict or set subclass, its data)."""

    def run(self, value: Any) -> tuple[Any, list[Any]]:
        for node in self._nodes:
            self._create_empty(node)
        for node in self._nodes:
            if node[1] in IMMUTABLE_TYPES:
                self._build_immutable(node)
        for node in self._nodes:
            if node[1] not in IMMUTABLE_TYPES:
                self._fill(node)
        decoded = self._read(value)
        for instance, base_data in self._unfilled:
            (instance.extend if isinstance(instance, list) else instance.update)(base_data)
        return decoded, [self._objects[position] for position in range(len(self._objects))]

    def _create_empty(self, node: list[Any]) -> None:
        position, tag = node[0], node[1]
        if position in self._known_ids:
            if tag in IMMUTABLE_TYPES or get_container_tag(self._objects[position]) != tag:
                raise BadFrame("an argument came back as something else")
        elif tag in MUTABLE_TYPES:
            self._objects[position] = MUTABLE_TYPES[tag]()
        elif tag == "deque":
            self._objects[position] = collections.deque(maxlen=node[2])
        elif tag in COLLECTIONS_TAGS:
            self._objects[position] = getattr(collections, tag)()

    def _build_immutable(self, node: list[Any]) -> None:
        parts = [self._read(part) for part in node[2:]]
        self._objects[node[0]] = slice(*parts) if node[1] == "slice" else IMMUTABLE_TYPES[node[1]](parts)

    def _fill(self, node: list[Any]) -> None:
        target, tag = self._objects[node[0]], node[1]
        if tag == "bytearray":
            target[:] = bytes.fromhex(node[2])
            return
        target.clear()
        parts = [self._read(part) for part in node[3 if tag == "deque" else 2 :]]
        if tag in MAPPING_TAGS:
            for key, item in zip(parts[::2], parts[1::2], strict=True):
                target[key] = item
        elif tag == "set":
            target.update(parts)
        else:
            target.extend(parts)

    def _read_subclass(self, value: list[Any]) -> Any:
        """Return an instance of a data type's subclass; a mutable one is filled after all objects exist."""
        base_data = self._read(value[3])
        is_mutable = type(base_data) in MUTABLE_TYPES.values()
        instance = self._read_foreign([*value[:3], type(base_data)() if is_mutable else base_data])
        if is_mutable:
            instance.clear()
            self._unfilled.append((instance, base_data))
        return instance

    def _read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag = value[0]
        if tag == "r":
            return self._objects[value[1]]
        if tag in ("h", "it", "o"):
            return self._read_foreign(value)
        if tag == "k":
            return self._read_subclass(value)
        scalar = _read_scalar(tag, value[1:], self._read)
        if self._read_number is None or type(scalar) not in (float, complex):
            return scalar
        return self._read_number(scalar)


def _read_scalar(tag: str, fields: list[Any], read: Callable[[Any], Any]) -> Any:
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
    if tag not in CONSTRUCTOR_ARGUMENTS:
        raise BadFrame(f"unknown tag {tag!r}")
    module, _, name = tag.rpartition(".")
    library_type = getattr(__import__(module), name)  # most values need none of these modules
    constructor = getattr(library_type, TEXT_CONSTRUCTORS[tag]) if tag in TEXT_CONSTRUCTORS else library_type
    return constructor(*(read(field) for field in fields))


def is_well_formed(value: Any, nodes: Any) -> bool:
    """Whether a value and its nodes have the right shape; nothing is built to find out."""
    if not isinstance(nodes, list) or not _is_well_formed_value(value):
        return False
    return all(_is_well_formed_node(node) for node in nodes)


def _is_well_formed_node(node: Any) -> bool:
    return (
        isinstance(node, list)
        and len(node) >= 2
        and type(node[0]) is int
        and node[0] >= 0
        and isinstance(node[1], str)
        and node[1] in NODE_TAGS
        and all(_is_well_formed_value(part) for part in node[2:])
    )


def _is_well_formed_value(value: Any, depth: int = 0) -> bool:
    if value is None or type(value) in (bool, int, str):
        return True
    # A tagged list may contain tagged scalars, such as the large bounds of a range, but nothing deeper.
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or depth > 1:
        return False
    tag, *fields = value
    if tag in FIELD_COUNTS:
        if len(fields) != FIELD_COUNTS[tag]:
            return False
    elif tag not in CONSTRUCTOR_ARGUMENTS:
        return False
    return all(_is_well_formed_value(field, depth + 1) for field in fields)
