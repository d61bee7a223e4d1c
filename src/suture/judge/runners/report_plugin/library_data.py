"""Noticing changes of the tables and registries of the standard library that tests read.

Additions do not count as changes: programs register levels, dialects and types of their own.
"""

from __future__ import annotations

import builtins
import re
import sys
from _codecs import lookup_error
from _csv import get_dialect, list_dialects
from collections.abc import Collection, Iterator
from operator import is_
from types import FunctionType, MethodType
from typing import Any

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
CHANGING_MODULES = frozenset(
    ("sys", "os", "posix", "nt", "gc", "warnings", "linecache", "site", "sqlite3", "asyncore", "__main__")
)
"""Modules whose tables ordinary programs change: settings of the process, caches, and conversions of SQL values."""
PRIVATE_TABLES = (("logging", "_levelToName"), ("logging", "_nameToLevel"))
"""Tables that tests read through functions such as `assertLogs`."""
ERROR_HANDLERS = ("strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace")
DIALECT_ATTRIBUTES = (
    "delimiter", "quotechar", "escapechar", "doublequote", "skipinitialspace", "lineterminator", "quoting", "strict",
)  # fmt: skip
FUNCTION_TYPES = (FunctionType, MethodType)
PLAIN_TYPES = (str, bytes, int, float, tuple, frozenset)
PATTERN = type(re.compile(""))
PATTERN_CACHES = ("_cache", "_cache2")
REGISTERED_COMPARISONS = "_type_equality_funcs"
"""Attribute of a `unittest.TestCase`: type -> the function that `assertEqual` compares its objects with."""


class LibraryData:
    """A snapshot of tables and registries, to be compared with their later state.

    Args:
        libraries: Modules of the standard library that the tests import.
    """

    def __init__(self, libraries: Collection[str]) -> None:
        self._tables = []  # type: list[tuple[str, Any, list[Any], list[Any]]]
        """(full name, dictionary, its keys, its values)."""
        self._lists = []  # type: list[tuple[str, Any, list[Any]]]
        """(full name, list or set, its items)."""
        for module, name in PRIVATE_TABLES:
            self._add(f"{module}.{name}", getattr(sys.modules.get(module), name, None))
        for name in libraries:
            if name in sys.modules and name.partition(".")[0] not in CHANGING_MODULES:
                self._add_members(name, sys.modules[name])
        self._handlers = [(name, lookup_error(name)) for name in ERROR_HANDLERS]
        self._dialects = {name: _read_dialect(name) for name in list_dialects() if "csv" in libraries}

    def _add_members(self, name: str, module: Any) -> None:
        for key, value in list(vars(module).items()):
            if key[:1] != "_":
                self._add(f"{name}.{key}", value)
            if isinstance(value, type) and vars(value).get("__module__") == name:
                for attribute, part in list(vars(value).items()):
                    if attribute[:1] != "_":
                        self._add(f"{name}.{key}.{attribute}", part)

    def _add(self, name: str, value: Any) -> None:
        if type(value) is dict:
            self._tables.append((name, value, [*value], [*value.values()]))
        elif type(value) in (list, set):
            self._lists.append((name, value, [*value]))

    def find_changes(self) -> Iterator[str]:
        """Yield the name of each table or registry of which an entry was replaced or removed."""
        for name, table, keys, values in self._tables:
            current = [*map(table.get, keys)]
            if not all(map(is_, current, values)) and not all(map(_is_same, current, values)):
                yield name
        for name, items, old in self._lists:
            current = [*items]
            if len(current) == len(old) and all(map(is_, current, old)):
                continue
            is_kept = _holds_in_order(current, old) if type(items) is list else _holds(current, old)
            if not is_kept:
                yield name
        for name, handler in self._handlers:
            if lookup_error(name) is not handler:
                yield f"the codec error handler {name}"
        for name, dialect in self._dialects.items():
            if _read_dialect(name) != dialect:
                yield f"the csv dialect {name}"


def _read_dialect(name: str) -> tuple[Any, ...]:
    try:
        dialect = get_dialect(name)
    except Exception:  # it was removed
        return ()
    return tuple(getattr(dialect, attribute) for attribute in DIALECT_ATTRIBUTES)


def _is_same(value: Any, old: Any) -> bool:
    return value is old or (type(value) is type(old) and type(old) in PLAIN_TYPES and bool(value == old))


def _holds_in_order(items: list[Any], old: list[Any]) -> bool:
    waiting = iter(items)
    return all(any(item is wanted for item in waiting) for wanted in old)


def _holds(items: list[Any], old: list[Any]) -> bool:
    return {*map(id, old)} <= {*map(id, items)}


def find_forged_patterns() -> Iterator[str]:
    """Yield each string for which the cache of `re` has a pattern of another string or with other flags."""
    for name in PATTERN_CACHES:
        cache = vars(re).get(name)
        for key, pattern in list(cache.items()) if type(cache) is dict else ():
            kind, text, flags = key if type(key) is tuple and len(key) == 3 else (None, None, None)
            is_cached = kind in (str, bytes) and type(text) is kind and type(flags) is int
            if type(pattern) is not PATTERN or not is_cached:
                continue  # a key of other types is not looked up for a string
            if pattern.pattern != text or not _has_flags(pattern, text, flags):
                yield "the cache of re"
                return


def _has_flags(pattern: Any, text: Any, flags: Any) -> bool:
    """Return whether a pattern has the flags that it is cached for, as far as its text does not set some itself."""
    sets_flags = "(?" in text if type(text) is str else b"(?" in text
    unicode_flag = re.UNICODE if type(text) is str and not flags & re.ASCII else 0
    return sets_flags or pattern.flags == int(flags | unicode_flag)


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
