"""Fingerprint the state of objects and modules, to find out whether something has changed it since it was made.

None of the project's code runs for this: no `__repr__`, no property, no `__eq__`.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from .child_processes import ROOT

MAX_PARTS = 500
"""Parts of a state that are read, because the calls of all traced tests are recorded. Chosen by judgement; not
measured."""
SINGLES = (int, float, complex, str, bytes, type(None))
CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def fingerprint_object(value: Any) -> int | None:
    """Return a number that stays the same as long as nothing changes an object of the project, or what it holds.

    It is `None` if the object has too many parts.
    """
    state = _State()
    state.add(value)
    return None if state.is_cut else hash(tuple(state.parts))


class ModuleStates:
    """Compares the state of modules with that at the first call in them."""

    def __init__(self) -> None:
        self._namespaces: dict[int, list[Any]] = {}
        self._first: dict[int, int] = {}

    def have_changed(self, variables: dict[str, Any]) -> bool:
        """Return whether a module, or one from which it imports, has a state other than at the first call in it.

        Args:
            variables: The global variables of the module.
        """
        key = id(variables)
        if key not in self._namespaces:
            self._namespaces[key] = _find_namespaces(variables)
        state = _State()
        for namespace in self._namespaces[key]:
            for name, value in list(vars(namespace).items()):
                if not name.startswith("__") and _holds_state(value):
                    state.parts.append(name)
                    state.add(value)
        current = hash(tuple(state.parts))
        return self._first.setdefault(key, current) != current


class _State:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self.parts: list[Any] = []
        self.is_cut = False

    def add(self, value: Any) -> None:
        """Add a value with its parts, as far as `MAX_PARTS` allows."""
        kind = type(value)
        if len(self.parts) >= MAX_PARTS:
            self.is_cut = True
            return
        if kind in SINGLES or kind is bool:
            self.parts.append((kind.__name__, value))
            return
        if id(value) in self._numbers:
            self.parts.append(self._numbers[id(value)])
            return
        self._numbers[id(value)] = len(self._numbers)
        self.parts.append(kind.__name__)
        base = next((base for base in CONTAINERS if issubclass(kind, base)), None)
        if base is not None:
            self.parts.append(base.__len__(value))
            items = dict.items(value) if base is dict else base.__iter__(value)
            for item in list(islice(items, MAX_PARTS)):
                if self.is_cut:
                    break
                for part in item if base is dict else (item,):
                    self.add(part)
        if is_project_object(value):
            for name, item in iter_attributes(value):
                if self.is_cut:
                    break
                self.parts.append(name)
                self.add(item)
        elif base is None:
            self.parts.append(id(value))


def iter_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that an object itself holds, in its `__dict__` or in slots."""
    for base in type(value).__mro__:
        for name, slot in list(vars(base).items()):
            if name == "__dict__" and base is not object:
                yield from list(object.__getattribute__(value, "__dict__").items())
            elif type(slot) is MemberDescriptorType:
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # a slot without a value
                    continue


def _holds_state(value: Any) -> bool:
    return issubclass(type(value), (*SINGLES, *CONTAINERS)) or is_project_object(value)


def is_project_object(value: Any) -> bool:
    """Return whether the class of a value belongs to the project; classes and modules do not count."""
    kind = type(value)
    return not issubclass(kind, (type, ModuleType)) and _is_in_project(sys.modules.get(kind.__module__))


def _is_in_project(module: Any) -> bool:
    path = vars(module).get("__file__") if issubclass(type(module), ModuleType) else None
    return isinstance(path, str) and path.startswith(ROOT + os.sep)


def _find_namespaces(variables: dict[str, Any]) -> list[Any]:
    """Return a module, the project's modules from which it has imported something, and the classes of all of these."""
    modules = {variables.get("__name__"): sys.modules.get(variables.get("__name__", ""))}
    for value in list(variables.values()):
        if issubclass(type(value), ModuleType):
            modules[vars(value).get("__name__")] = value
        elif type(value) is FunctionType or issubclass(type(value), type):
            modules[value.__module__] = sys.modules.get(value.__module__)
    own = [module for module in modules.values() if module is not None and _is_in_project(module)]
    classes = [
        value
        for module in own
        for value in list(vars(module).values())
        if issubclass(type(value), type) and value.__module__ == module.__name__
    ]
    return [*own, *classes]
