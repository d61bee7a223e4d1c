"""Copies of a test's arguments, which the candidate changes in place of the arguments themselves.

A copy that differs from its argument is kept, so that the candidate finds its own changes when it gets the
same argument again: after `push(q, 1)`, `pop(q)` returns 1, although the test's `q` is still empty.

Runs inside the sandbox, in the judge.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from suture.judge.split.argument_protection import ArgumentUse
from suture.judge.split.codec import Encoder, decode
from suture.judge.split.program_variables import Scope, Variable
from suture.judge.split.wire import IMMUTABLE_TYPES, get_container_tag, get_parts

ATOMS = (str, bytes, int, float, complex, type(None), ModuleType, CodeType, FrameType)
"""Types whose instances lead to no argument, or to everything."""
SIZED_TYPES = (dict, list, set, tuple)


@dataclass(frozen=True)
class _Copy:
    """A container of the test and its copy.

    Attributes:
        parts: The parts of `original` when the two were last equal, or when `copy` last took over its parts.
    """

    original: Any
    copy: Any
    parts: tuple[Any, ...]

    def is_current(self) -> bool:
        """Whether the test has not changed the original since."""
        parts = _list_parts(self.original)
        return len(parts) == len(self.parts) and all(map(operator.is_, parts, self.parts))


class ArgumentCopies:
    """The copies of one test's arguments.

    Args:
        write_foreign: Encodes what is not data; see `Encoder`.
        read_foreign: Decodes what is not data; see `decode`.
        read_number: Decodes floats and complex numbers; see `decode`.
    """

    def __init__(
        self,
        write_foreign: Callable[[Any], list[Any]],
        read_foreign: Callable[[list[Any]], Any],
        read_number: Callable[[Any], Any],
    ) -> None:
        self._write_foreign = write_foreign
        self._read_foreign = read_foreign
        self._read_number = read_number
        self._copies: dict[int, _Copy] = {}
        """id() of an original -> its copy."""
        self._differing: set[int] = set()
        """id() of each original whose copy the candidate changed."""

    def copy(self, arguments: Any) -> tuple[Any, list[Any]]:
        """Return arguments with each container replaced by its copy, and the mutable originals.

        A copy contains what the candidate left in it, unless the test changed the original since.

        Raises:
            NotData: An argument is not data.
        """
        encoder = Encoder(self._write_foreign)
        value = encoder.encode(arguments)
        copies = [self._copies.get(id(original)) for original in encoder.objects]
        known = {position: copy.copy for position, copy in enumerate(copies) if copy is not None}
        nodes = [
            node
            for node, copy in zip(encoder.new_nodes(), copies, strict=True)
            if copy is None or not copy.is_current()
        ]
        copied, objects = decode(value, nodes, self._read_foreign, known, self._read_number)
        self._differing -= {id(encoder.objects[node[0]]) for node in nodes}
        self._remember(encoder.objects, objects)
        return copied, [item for item in encoder.objects if id(item) in self._copies]

    def find_differing(self, originals: list[Any], changed_copies: Iterable[Any]) -> list[Any]:
        """Return the originals whose copies differ from them after a call.

        Args:
            originals: The mutable arguments of the call.
            changed_copies: The copies that the call changed.
        """
        changed = {id(copy) for copy in changed_copies}
        self._differing |= {id(item) for item in originals if id(self._copies[id(item)].copy) in changed}
        return [item for item in originals if id(item) in self._differing]

    def restore(self, value: Any, originals: list[Any], exposed: list[Any]) -> Any:
        """Let the exposed originals take over the content of their copies.

        Args:
            value: An answer.
            originals: The mutable arguments of the call.
            exposed: Those of the originals that may change.

        Returns:
            The answer, with originals in place of copies that do not differ from them.
        """
        self._differing -= {id(item) for item in exposed}
        originals_by_copy = {
            id(self._copies[id(item)].copy): item for item in originals if id(item) not in self._differing
        }
        encoder = Encoder(self._write_foreign)
        encoded = encoder.encode((value, [self._copies[id(item)].copy for item in exposed]))
        known = {
            position: originals_by_copy[id(item)]
            for position, item in enumerate(encoder.objects)
            if id(item) in originals_by_copy
        }
        (restored, _), objects = decode(
            encoded, encoder.new_nodes(), self._read_foreign, known, self._read_number
        )
        if any(id(item) in self._differing for item in originals):
            self._remember(objects, encoder.objects)
        else:  # the next call makes new copies, so that those of millions of calls need no memory
            for item in originals:
                del self._copies[id(item)]
        return restored

    def _remember(self, originals: list[Any], copies: list[Any]) -> None:
        for original, copy in zip(originals, copies, strict=True):
            if get_container_tag(original) not in IMMUTABLE_TYPES:
                self._copies[id(original)] = _Copy(original, copy, _list_parts(original))


def _list_parts(container: Any) -> tuple[Any, ...]:
    if type(container) is bytearray:
        return tuple(container)
    return get_parts(get_container_tag(container) or "", container)


def find_exposed(changed: list[Any], use: ArgumentUse, frame: FrameType | None, filename: str) -> list[Any]:
    """Return the changed arguments of a call that are pinned, or inspected and not compared with answers.

    Args:
        frame: The innermost frame of the call.
        filename: The file name that the frames of the test show.
    """
    frames = []
    while frame is not None:
        if frame.f_code.co_filename == filename:
            frames.append(frame)
        frame = frame.f_back
    exposed = _select_reachable(map(id, changed), _get_values(use.inspected, frames))
    compared = _select_reachable(exposed, _get_values(use.compared, frames))
    for targets, sources in use.compared_items:
        other_items = exposed - _select_reachable(exposed, _get_values(targets, frames))
        compared |= _select_reachable(other_items, _get_values(sources, frames))
    pinned = [variable for test_frame in frames for variable in use.pinned.get(test_frame.f_lineno, ())]
    exposed = (exposed - compared) | _select_reachable(map(id, changed), _get_values(pinned, frames))
    return [item for item in changed if id(item) in exposed]


def _get_values(variables: Iterable[Variable], frames: list[FrameType]) -> list[Any]:
    """Return the present values of variables."""
    values = []
    for frame in frames:
        own_scope, names = _get_scope(frame), frame.f_locals
        for scope, name in variables:
            base, _, attribute = name.partition(".")
            if attribute:
                if base in names:
                    values += _list_attribute_values(names[base], attribute)
            elif (scope == own_scope or name in frame.f_code.co_freevars) and name in names:
                values.append(names[name])
            elif not scope and name in frame.f_globals:
                values.append(frame.f_globals[name])
    return values


def _list_attribute_values(owner: Any, name: str) -> list[Any]:
    """Return an attribute's values in an object and its classes, without running any code of theirs."""
    namespaces = (getattr(part, "__dict__", {}) for part in (owner, *type(owner).__mro__))
    return [namespace[name] for namespace in namespaces if name in namespace]


def _get_scope(frame: FrameType) -> Scope:
    """Return the scope of a frame; comprehensions and lambdas belong to the scope around them."""
    return tuple(name for name in frame.f_code.co_qualname.split(".") if not name.startswith("<"))


def _select_reachable(wanted: Iterable[int], values: list[Any]) -> set[int]:
    """Return those of the objects with the given id() that some values lead to."""
    missing = set(wanted)
    reachable: set[int] = set()
    visited: set[int] = set()
    # Small values come last, so that they are visited first: a list of all cases may be long, and most calls
    # pass what a loop variable refers to.
    unvisited = sorted(values, key=lambda value: -len(value) if type(value) in SIZED_TYPES else 0)
    while missing and unvisited:
        value = unvisited.pop()
        if id(value) in visited or isinstance(value, ATOMS):
            continue
        value_class = value if isinstance(value, type) else type(value)
        if str(value_class.__module__).startswith("suture."):  # stand-ins for objects of the candidate
            continue
        visited.add(id(value))
        if id(value) in missing:
            missing.discard(id(value))
            reachable.add(id(value))
        if isinstance(value, FunctionType):  # its globals would lead to everything
            unvisited += [value.__closure__, value.__defaults__, value.__kwdefaults__]
        elif not isinstance(value, type):
            unvisited += gc.get_referents(value)
        elif value.__module__ == "__main__":  # a class of the test
            unvisited += vars(value).values()
    return reachable
