"""Finding where a context manager is defined: in the code under test, in a test, or in a library."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from types import AsyncGeneratorType, FunctionType, GeneratorType, MethodType
from typing import Any

GENERATED_MANAGERS = tuple(
    vars(contextlib)[name] for name in ("_GeneratorContextManager", "_AsyncGeneratorContextManager")
)
"""The classes of what a function returns that `contextmanager` decorates."""
EXITS = ("__exit__", "__aexit__")


def find_places(value: Any) -> Iterator[tuple[str, int]]:
    """Yield (path, line) of what defines a manager, or a function or class that returns one.

    The line is 0 if it is not known.
    """
    if type(value) in GENERATED_MANAGERS:
        value = vars(value).get("gen")
    while type(value) in (partial, MethodType):
        value = value.func if type(value) is partial else value.__func__
    if type(value) is GeneratorType:
        yield _locate(value.gi_code)
    elif type(value) is AsyncGeneratorType:
        yield _locate(value.ag_code)
    elif type(value) is FunctionType:
        yield _locate(value.__code__)
        if "__wrapped__" in vars(value):  # by a decorator such as `contextmanager`
            yield from find_places(vars(value)["__wrapped__"])
    else:
        # `isinstance` would ask the object for its class.
        yield from _find_class_places(value if issubclass(type(value), type) else type(value))


def _find_class_places(class_: type) -> Iterator[tuple[str, int]]:
    """Yield the places of a class and of those that it inherits from, up to the one that defines how blocks end."""
    for kind in class_.__mro__[:-1]:
        members = vars(kind)
        exits = [code for name in EXITS for code in _list_codes(members.get(name))]
        codes = exits or [code for member in list(members.values()) for code in _list_codes(member)]
        file = str(getattr(sys.modules.get(str(members.get("__module__"))), "__file__", None) or "/")
        yield from map(_locate, exits)
        if not exits or all(code.co_filename != file for code in exits):
            lines = [code.co_firstlineno for code in codes if code.co_filename == file]
            yield file, min(lines, default=0)
        if not {*EXITS}.isdisjoint(members):
            return


def _list_codes(member: Any) -> list[Any]:
    return [member.__code__] if type(member) is FunctionType else []


def _locate(code: Any) -> tuple[str, int]:
    return str(code.co_filename), int(code.co_firstlineno)
