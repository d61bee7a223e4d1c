"""Detecting changes to the code that decides whether a test passes: pytest, unittest and their like."""

from __future__ import annotations

import os
import sys
from types import CodeType, FunctionType, MethodType
from typing import Any

DECIDING_PACKAGES = frozenset(
    ("_pytest", "pytest", "pluggy", "unittest", "doctest", "builtins", "xdist", "execnet")
)
"""Packages that decide whether a test passes, or that run tests in other processes."""
ASSERTION_PACKAGES = frozenset(("testing", "_testing", "hypothesis", "hamcrest", "assertpy"))
"""Parts of the names of assertion packages, whose functions must not come from the project."""
DESCRIPTORS = (property, staticmethod, classmethod)
"""Class attributes that wrap a function, and are not always callable themselves."""
DECIDING_VALUES = (float, type)
"""Attributes that decide too, such as a tolerance or the exception type that is raised."""


class TestMachinery:
    """A snapshot of the test machinery, to be compared with its later state."""

    def __init__(self, config: Any, root: str) -> None:
        self._root = root + os.sep
        self._manager = config.pluginmanager
        # (full name, namespace, name in it, value, code object or `None`) of each value.
        self._values: list[tuple[str, Any, str, Any, Any]] = []
        # (full name, class, names of its attributes) of each class.
        self._classes: list[tuple[str, Any, frozenset[str]]] = []
        self._modules = frozenset(sys.modules)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in DECIDING_PACKAGES:
                self._record_module(name, module)
        for key in ("hook", "pluginmanager"):
            self._values.append((f"config.{key}", vars(config), key, vars(config).get(key), None))
        self._record_values("pluginmanager", vars(self._manager))
        self._references = [(namespace.get, key, value) for _, namespace, key, value, _ in self._values]
        self._codes = [(_get_function(value), code) for *_, value, code in self._values if code is not None]
        self.early = self._find_project_modules(self._modules)
        """Modules of the project that were already loaded, with their files."""

    def _record_module(self, name: str, module: Any) -> None:
        members = vars(module)
        self._values.append((name, sys.modules, name, module, None))
        self._record_values(name, members)
        for key, value in list(members.items()):
            # The classes of `builtins` are left out, because Python lets nobody change them.
            if isinstance(value, type) and vars(value).get("__module__") == name and name != "builtins":
                attributes = vars(value)
                self._classes.append((f"{name}.{key}", value, frozenset(attributes)))
                self._record_values(f"{name}.{key}", attributes)

    def _record_values(self, name: str, namespace: Any) -> None:
        for key, value in list(namespace.items()):
            if callable(value) or isinstance(value, DESCRIPTORS + DECIDING_VALUES):
                self._values.append((f"{name}.{key}", namespace, key, value, _get_code(value)))

    def changed_meanwhile(self) -> dict[str, str]:
        """Return the same as `changed`, but fast if nothing changed: it is called after each test."""
        for get, key, value in self._references:
            if get(key) is not value:
                return self.changed()
        for function, code in self._codes:
            if function.__code__ is not code:
                return self.changed()
        for _, class_, attributes in self._classes:
            if len(vars(class_)) != len(attributes):
                return self.changed()
        return {}

    def changed(self) -> dict[str, str]:
        """Return name -> file of each value that was replaced, removed, or added to a class."""
        new_values = {
            name: namespace.get(key)
            for name, namespace, key, value, code in self._values
            if namespace.get(key) is not value or (code is not None and _get_code(value) is not code)
        }
        for name, class_, attributes in self._classes:
            for key in vars(class_).keys() - attributes:
                value = vars(class_)[key]
                if callable(value) or isinstance(value, DESCRIPTORS):
                    new_values[f"{name}.{key}"] = value
        return {name: self._find_file(value) for name, value in new_values.items()}

    def added(self) -> dict[str, str]:
        """Return name -> file of what the project put among the hooks and into modules of the test machinery.

        These are modules of `DECIDING_PACKAGES` that were loaded after the snapshot, and all modules of pytest
        plugins and of assertion packages.
        """
        files = {}
        for name, module in list(sys.modules.items()):
            parts = name.split(".")
            is_new = parts[0] in DECIDING_PACKAGES and name not in self._modules
            if is_new or parts[0].startswith("pytest_") or not ASSERTION_PACKAGES.isdisjoint(parts):
                files.update(self._find_foreign_functions(name, module))
        for name, hook in list(vars(self._manager.hook).items()):
            for implementation in hook.get_hookimpls() if hasattr(hook, "get_hookimpls") else ():
                file = self._find_file(implementation.function)
                # A hook of unknown origin (an empty `file`) counts as the project's too. Members of modules do not
                # (`_find_foreign_functions`): compiled functions and callable objects are usual there.
                if not os.path.isabs(file):
                    files[f"the hook {name}"] = file
        return files

    def _find_foreign_functions(self, name: str, module: Any) -> dict[str, str]:
        """Return functions of a module and of its classes that the project defines in another file."""
        members = dict(getattr(module, "__dict__", {}))
        if self._get_project_path(str(members.get("__file__"))):
            return {}
        named_values = [(f"{name}.{key}", value) for key, value in members.items()]
        for key, value in members.items():
            if isinstance(value, type) and vars(value).get("__module__") == name:
                attributes = list(vars(value).items())
                named_values += [(f"{name}.{key}.{attribute}", part) for attribute, part in attributes]
        files = {
            full_name: self._find_file(value)
            for full_name, value in named_values
            if callable(value) or isinstance(value, DESCRIPTORS)
        }
        return {full_name: file for full_name, file in files.items() if file and not os.path.isabs(file)}

    def _find_project_modules(self, names: Any) -> dict[str, str]:
        files = {name: str(getattr(sys.modules[name], "__file__", None)) for name in names}
        return {name: path for name, file in files.items() if (path := self._get_project_path(file))}

    def _find_file(self, value: Any) -> str:
        """Return the file that defines a value: relative in the project, else absolute; empty if unknown.

        A class whose module has no file gets `/`, an absolute path, and so counts as outside of the project.
        """
        code = _get_code(value)
        if code is not None:
            return self._get_project_path(code.co_filename) or os.path.abspath(code.co_filename)
        if not isinstance(value, type):
            return ""
        module = sys.modules.get(str(vars(value).get("__module__")))
        path = str(getattr(module, "__file__", None) or "/")
        return self._get_project_path(path) or os.path.abspath(path)

    def _get_project_path(self, path: str) -> str:
        """Return a path relative to the project's folder; empty for a path outside of it."""
        is_inside = path.startswith(self._root) and "site-packages" not in path
        return path[len(self._root) :] if is_inside and not path.startswith(PLUGIN_FOLDER) else ""


PLUGIN_FOLDER = os.path.dirname(__file__)


def _get_code(value: Any) -> Any:
    """Return a function's code object, which stays the same while the function does; `None` for other values.

    No attribute of other values is read: `pytest.mark` creates a mark for each attribute name that is read,
    and refuses names that a project does not know.
    """
    function = _get_function(value)
    code = function.__code__ if isinstance(function, FunctionType) else None
    return code if isinstance(code, CodeType) else None


def _get_function(value: Any) -> Any:
    function = value.fget if isinstance(value, property) else value
    return function.__func__ if isinstance(function, (staticmethod, classmethod, MethodType)) else function
