"""Noticing changes of the registries of the standard library that decide what tests observe.

Additions do not count as changes: programs register levels, dialects and error handlers of their own. Neither do
entries of ordinary tables such as `mimetypes.types_map`. A correct repair may be the first to reach honest code that
sets one.
"""

from __future__ import annotations

import builtins
import re
import sys
from _codecs import lookup_error
from _csv import get_dialect, list_dialects
from collections.abc import Collection, Iterator
from typing import Any

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
ERROR_HANDLERS = ("strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace")
DIALECT_ATTRIBUTES = (
    "delimiter", "quotechar", "escapechar", "doublequote", "skipinitialspace", "lineterminator", "quoting", "strict",
)  # fmt: skip
PATTERN = type(re.compile(""))
PATTERN_CACHES = ("_cache", "_cache2")


class Registries:
    """A snapshot of registries, to be compared with their later state.

    Args:
        libraries: Modules of the standard library that the tests import.
    """

    def __init__(self, libraries: Collection[str]) -> None:
        # `assertLogs` looks up a level by its name. The name that a log shows may be coloured.
        self._levels = getattr(sys.modules.get("logging"), "_nameToLevel", {})
        self._old_levels = dict(self._levels)
        self._handlers = [(name, lookup_error(name)) for name in ERROR_HANDLERS]
        self._dialects = {name: _read_dialect(name) for name in list_dialects() if "csv" in libraries}

    def find_changes(self) -> Iterator[str]:
        """Yield the name of each registered object that was replaced or removed."""
        for name, level in self._old_levels.items():
            now = self._levels.get(name)
            if type(now) is not type(level) or now != level:
                yield f"the logging level {name}"
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
