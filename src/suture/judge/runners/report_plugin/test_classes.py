"""Noticing that the code under test replaces the methods with which classes and cases of the tests compare objects."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from operator import is_
from types import FunctionType, MethodType
from typing import Any

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__bool__")
FUNCTION_TYPES = (FunctionType, MethodType)
REGISTERED_COMPARISONS = "_type_equality_funcs"
"""Attribute of a `unittest.TestCase`: type -> the function that `assertEqual` compares its objects with."""
METHOD_TYPES = (FunctionType, type(object.__eq__), type(None))
"""Types of methods that a class may get from elsewhere, as from a decorator. Others, such as a partial function, do not
get the object, so they cannot compare it."""


class TestClasses:
    """The classes that test files define, as they are after the collection.

    Args:
        find_file: Returns the file that defines a value, or an empty string.
        is_candidate: Whether a file is the candidate's.
    """

    def __init__(self, find_file: Callable[[Any], str], is_candidate: Callable[[str], bool]) -> None:
        self._find_file = find_file
        self._is_candidate = is_candidate
        self._by_module = {}  # type: dict[int, list[tuple[Any, list[Any]]]]

    def add(self, module: Any, text: str) -> Iterator[tuple[str, str]]:
        """Remember the classes of a module, and yield (name, file) of each method that its source does not define.

        Args:
            text: The source of the module's file.
        """
        classes = [value for value in list(vars(module).values()) if isinstance(value, type)]
        own = [class_ for class_ in classes if vars(class_).get("__module__") == module.__name__]
        self._by_module[id(module)] = [(class_, _list_comparisons(class_)) for class_ in own]
        for class_, values in self._by_module[id(module)]:
            for name, value in zip(COMPARISONS, values):
                file, is_defined = self._find_file(value), f"def {name}(" in text
                is_replaced = is_defined and file and self._is_candidate(file)
                if is_replaced or (not isinstance(value, METHOD_TYPES) and (is_defined or name not in text)):
                    yield f"{name} of {class_.__name__}", file

    def find_changes(self, module: Any, *, is_over: bool) -> Iterator[tuple[str, str]]:
        """Yield (name, file) of each method that was replaced since the collection.

        Args:
            is_over: Whether the test has undone what it replaced itself. Until then only the candidate's code counts.
        """
        for class_, values in self._by_module.get(id(module), ()):
            current = _list_comparisons(class_)
            if all(map(is_, current, values)):
                continue
            for name, old, new in zip(COMPARISONS, values, current):
                file = self._find_file(new)
                is_replaced = old is not None and (is_over or (file and self._is_candidate(file)))
                if new is not old and (is_replaced or (is_over and not isinstance(new, METHOD_TYPES))):
                    yield f"{name} of {class_.__name__}", file


def _list_comparisons(class_: Any) -> list[Any]:
    return [*map(vars(class_).get, COMPARISONS)]


def list_own_functions(test: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, function) of what decides for one object of a `unittest.TestCase`, but not for its class."""
    attributes = getattr(test, "__dict__", {})
    comparisons = attributes.get(REGISTERED_COMPARISONS)
    if type(comparisons) is not dict:
        return
    base_classes = [kind for kind in type(test).__mro__ if vars(kind).get("__module__") == "unittest.case"]
    for name, value in list(attributes.items()):
        if type(value) in FUNCTION_TYPES and any(name in vars(kind) for kind in base_classes):
            yield name, value
    for kind, function in list(comparisons.items()):
        if type(kind) is type and vars(kind).get("__module__") is None:  # a builtin class
            yield f"the comparison of {kind.__name__}", function
