"""Detecting changes to the code that decides whether a test passes: pytest, unittest and their like."""

from __future__ import annotations

import os
import sys
from types import CodeType, FunctionType, MethodType
from typing import Any

OWNERS = frozenset(("_pytest", "pytest", "pluggy", "unittest", "doctest", "builtins", "xdist", "execnet"))
ASSERTION_PACKAGES = frozenset(("testing", "_testing", "hypothesis", "hamcrest", "assertpy"))
"""Parts of the names of assertion packages, whose functions must not come from the project."""
DESCRIPTORS = (property, staticmethod, classmethod)
DECIDING_VALUES = (float, type)
"""Class attributes that decide too, such as a tolerance or the exception type that is raised."""


class TestMachinery:
    """A snapshot of the test machinery, to be compared with its later state."""

    def __init__(self, config: Any, root: str) -> None:
        self._root = root + os.sep
        self._manager = config.pluginmanager
        self._values = []  # type: list[tuple[str, Any, str, Any, Any]]
        self._classes = []  # type: list[tuple[str, Any, frozenset[str]]]
        self._modules = frozenset(sys.modules)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in OWNERS:
                self._record_module(name, module)
        for own in ("hook", "pluginmanager"):
            self._values.append((f"config.{own}", vars(config), own, vars(config).get(own), None))
        self._record_values("pluginmanager", vars(self._manager))
        self._references = [(parts.get, own, value) for _, parts, own, value, _ in self._values]
        self._codes = [(_function(value), code) for *_, value, code in self._values if code is not None]
        self.early = self._find_project_modules(self._modules)
        """Modules of the project that were already loaded, with their files."""

    def _record_module(self, name: str, module: Any) -> None:
        owned = vars(module)
        self._values.append((name, sys.modules, name, module, None))
        self._record_values(name, owned)
        for own, value in list(owned.items()):
            if isinstance(value, type) and vars(value).get("__module__") == name and name != "builtins":
                parts = vars(value)
                self._classes.append((f"{name}.{own}", value, frozenset(parts)))
                self._record_values(f"{name}.{own}", parts)

    def _record_values(self, name: str, parts: Any) -> None:
        for own, value in list(parts.items()):
            if callable(value) or isinstance(value, DESCRIPTORS + DECIDING_VALUES):
                self._values.append((f"{name}.{own}", parts, own, value, _code(value)))

    def changed_meanwhile(self) -> dict[str, str]:
        """Return the same as `changed`, but fast if nothing changed: it is called after each test."""
        for get, own, value in self._references:
            if get(own) is not value:
                return self.changed()
        for function, code in self._codes:
            if function.__code__ is not code:
                return self.changed()
        for _, owner, known in self._classes:
            if len(vars(owner)) != len(known):
                return self.changed()
        return {}

    def changed(self) -> dict[str, str]:
        """Return name -> file of each value that was replaced, removed, or added to a class."""
        found = {
            name: parts.get(own)
            for name, parts, own, value, code in self._values
            if parts.get(own) is not value or (code is not None and _code(value) is not code)
        }
        for name, owner, known in self._classes:
            for own in vars(owner).keys() - known:
                value = vars(owner)[own]
                if callable(value) or isinstance(value, DESCRIPTORS):
                    found[f"{name}.{own}"] = value
        return {name: self._file(value) for name, value in found.items()}

    def added(self) -> dict[str, str]:
        """Return name -> file of what the project put into later test modules and among pytest's hooks."""
        found = {}
        for name, module in list(sys.modules.items()):
            parts = name.split(".")
            is_new = parts[0] in OWNERS and name not in self._modules
            if is_new or parts[0].startswith("pytest_") or not ASSERTION_PACKAGES.isdisjoint(parts):
                found.update(self._find_foreign_functions(name, module))
        for name, hook in list(vars(self._manager.hook).items()):
            for one in hook.get_hookimpls() if hasattr(hook, "get_hookimpls") else ():
                file = self._file(one.function)
                if not os.path.isabs(file):
                    found[f"the hook {name}"] = file
        return found

    def _find_foreign_functions(self, name: str, module: Any) -> dict[str, str]:
        """Return functions of a module and of its classes that the project defines in another file."""
        owned = dict(getattr(module, "__dict__", {}))
        if self._own(str(owned.get("__file__"))):
            return {}
        named = [(f"{name}.{own}", value) for own, value in owned.items()]
        for own, value in owned.items():
            if isinstance(value, type) and vars(value).get("__module__") == name:
                named += [(f"{name}.{own}.{inner}", part) for inner, part in list(vars(value).items())]
        files = {
            one: self._file(value)
            for one, value in named
            if callable(value) or isinstance(value, DESCRIPTORS)
        }
        return {one: file for one, file in files.items() if file and not os.path.isabs(file)}

    def _find_project_modules(self, names: Any) -> dict[str, str]:
        files = {name: str(getattr(sys.modules[name], "__file__", None)) for name in names}
        return {name: own for name, file in files.items() if (own := self._own(file))}

    def _file(self, value: Any) -> str:
        """Return the file that defines a value: relative in the project, else absolute; empty if unknown."""
        code = _code(value)
        if code is not None:
            return self._own(code.co_filename) or os.path.abspath(code.co_filename)
        if not isinstance(value, type):
            return ""
        module = sys.modules.get(str(vars(value).get("__module__")))
        path = str(getattr(module, "__file__", None) or "/")
        return self._own(path) or os.path.abspath(path)

    def _own(self, path: str) -> str:
        """Return a path relative to the project's folder; empty for a path outside of it."""
        inside = path.startswith(self._root) and "site-packages" not in path
        return path[len(self._root) :] if inside and not path.startswith(PLUGIN_FOLDER) else ""


PLUGIN_FOLDER = os.path.dirname(__file__)


def _code(value: Any) -> Any:
    """Return a function's code object, which stays the same while the function does; `None` for other values.

    No attribute of other values is read: `pytest.mark` creates a mark for each attribute name that is read,
    and refuses names that a project does not know.
    """
    function = _function(value)
    code = function.__code__ if isinstance(function, FunctionType) else None
    return code if isinstance(code, CodeType) else None


def _function(value: Any) -> Any:
    function = value.fget if isinstance(value, property) else value
    return function.__func__ if isinstance(function, (staticmethod, classmethod, MethodType)) else function
