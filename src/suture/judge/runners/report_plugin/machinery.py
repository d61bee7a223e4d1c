"""Detecting changes to the code that decides whether a test passes: pytest, unittest and their like."""

from __future__ import annotations

import builtins
import importlib
import keyword
import os
import signal
import sys

# The compiled function, which nothing can change; it has no type stub.
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from gc import get_referents
from operator import is_, itemgetter
from types import CodeType, FunctionType, MethodType
from typing import Any

from .registries import Registries, find_forged_patterns

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
DECIDING_PACKAGES = frozenset(
    ("_pytest", "pytest", "pluggy", "unittest", "doctest", "builtins", "xdist", "execnet")
)
"""Packages that decide whether a test passes, or that run tests in other processes."""
ASSERTION_PACKAGES = frozenset(("testing", "_testing", "hypothesis", "hamcrest", "assertpy"))
"""Parts of the names of assertion packages, whose functions must not come from the project."""
SELF_CHANGING = frozenset(
    ("warnings._showwarnmsg_impl", "warnings.showwarning", "threading.excepthook", "sys.unraisablehook")
)
"""Functions that pytest itself replaces for each phase of a test."""
DESCRIPTORS = (property, staticmethod, classmethod)
"""Class attributes that wrap a function, and are not always callable themselves."""
SIGNALS = [int(number) for number in signal.Signals]
PLUGIN_FOLDER = os.path.dirname(__file__)
DECIDING_VALUES = (*DESCRIPTORS, float, type)
"""Types of attributes that decide whether a test passes, besides functions. A number may be a tolerance, and a type the
exception that is raised."""
CONSTANTS = (str, bytes, int, tuple, frozenset)
"""Types of values in the modules that tests import, with which they may compare, such as `string.digits`."""
COMPILED_AFTER = 100
"""Number of comparisons of a snapshot after which they are compiled. Compiling takes as long as it saves in some 300
comparisons, and most runs are of a few tests."""


class TestMachinery:
    """A snapshot of the test machinery, to be compared with its later state.

    Args:
        root: The project's folder.
        libraries: Modules of the standard library that the tests import, such as `math` and `json`.
        imported: All packages that the tests import.
    """

    def __init__(self, config: Any, root: str, libraries: Collection[str], imported: Iterable[str]) -> None:
        self._root = root + os.sep
        self._manager = config.pluginmanager
        self._imported_by_tests = frozenset(imported)
        self._namespaces = []  # type: list[tuple[str, Any, tuple[str, ...], tuple[Any, ...]]]
        """(full name, namespace, names in it, their values)."""
        self._classes = []  # type: list[tuple[str, Any, frozenset[str]]]
        """(full name, class, names of its attributes)."""
        self._names_by_function = {}  # type: dict[int, str]
        """Identity of a function -> its full name; empty until the first function gets other code."""
        self._new_codes = {}  # type: dict[str, str]
        self._paths = {}  # type: dict[str, str]
        """File name of code -> what `find_file` returns for it."""
        self._import_libraries(libraries)
        self._modules = frozenset(sys.modules)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in DECIDING_PACKAGES or name in libraries:
                self._record_module(name, module)
            if name in libraries:
                constants = {key for key, value in vars(module).items() if type(value) in CONSTANTS}
                self._record(name, vars(module), sorted(key for key in constants if key[:1] != "_"))
        self._registries = Registries(libraries)
        self._record("config", vars(config), ["hook", "pluginmanager"])
        self._record_values("pluginmanager", vars(self._manager))
        self._interpreter_hooks = _list_interpreter_hooks()
        self._readers = [*make_readers((space, keys) for _, space, keys, _ in self._namespaces)]
        # A class keeps its dictionary; another object may get a new one.
        self._class_namespaces = [vars(value) for _, value, _ in self._classes if isinstance(value, type)]
        self._objects = [value for _, value, _ in self._classes if not isinstance(value, type)]
        self._builtin_names = frozenset(vars(builtins))
        self._method_names = {}  # type: dict[Any, frozenset[str]]
        self._comparisons = 0
        self._comparers = []  # type: list[tuple[Any, Any, Any]]
        """(function that returns whether a namespace is as it was, its reader, the namespace)."""
        self._last_states = {}  # type: dict[str, list[Any]]
        self.early = self._find_project_modules(self._modules)
        """Modules of the project that were already loaded, with their files."""

    def _import_libraries(self, libraries: Iterable[str]) -> None:
        for name in libraries:
            with suppress(Exception):  # the test that imports it will report that
                importlib.import_module(name)

    def _record_module(self, name: str, module: Any) -> None:
        members, package = vars(module), name.partition(".")[0]
        self._record(name, sys.modules, [name])
        self._record_values(name, members)
        for key, value in list(members.items()):
            # The classes of `builtins` are left out, because Python does not allow changes to them.
            if isinstance(value, type):
                attributes = vars(value)
                if attributes.get("__module__") == name and name != "builtins":
                    self._classes.append((f"{name}.{key}", value, frozenset(attributes)))
                    self._record_values(f"{name}.{key}", attributes)
            elif type(value).__module__.partition(".")[0] == package and hasattr(value, "__dict__"):
                # An object such as the default decoder of `json`, which may get functions of its own.
                self._classes.append((f"{name}.{key}", value, frozenset(vars(value))))

    def _record_values(self, name: str, namespace: Any) -> None:
        keys = [
            key
            for key, value in list(namespace.items())
            if (callable(value) or isinstance(value, DECIDING_VALUES))
            and f"{name}.{key}" not in SELF_CHANGING
        ]
        self._record(name, namespace, keys)

    def _record(self, name: str, namespace: Any, keys: list[str]) -> None:
        values = tuple(namespace.get(key) for key in keys)
        self._namespaces.append((name, namespace, tuple(keys), values))

    def note_new_code(self, function: Any, code: Any) -> None:
        """Remember that a function gets other code.

        Few runs change a function, and finding the names of all takes a twentieth of a short run.
        """
        self._names_by_function = self._names_by_function or {
            id(_get_function(value)): f"{name}.{key}"
            for name, _, keys, values in self._namespaces
            for key, value in zip(keys, values)
            if _get_code(value) is not None
        }
        name = self._names_by_function.get(id(function))
        if name is not None:
            self._new_codes[name] = self._find_code_file(code)

    def find_changes_since_last(self, moment: str) -> dict[str, str]:
        """Return the same as `changed` with the project's hooks, or nothing if all is as it was the last time.

        It is called twice for each test, and changes are rare.

        Args:
            moment: The moment of the last call with which to compare, such as the end of a test.
        """
        # A test undoes its own changes of registries in its teardown, and the file of a value is not known.
        registries = dict.fromkeys(self._registries.find_changes(), "") if moment == "teardown" else {}
        state = self._read_state()
        last_state = self._last_states.get(moment)
        if state and last_state and len(state) == len(last_state) and all(map(is_, state, last_state)):
            return registries
        self._last_states[moment] = state
        return {**self.changed(), **self._find_foreign_hooks(), **registries}

    def _read_state(self) -> list[Any]:
        """Return all that may change: values, the sizes of classes (small numbers are one object each), and hooks.

        Nothing is returned if a value was removed.
        """
        state = [*self._new_codes.values(), *map(getsignal, SIGNALS), *sys.meta_path, *sys.path_hooks]
        state += [getattr(sys, "excepthook", None), getattr(sys, "displayhook", None)]
        state += map(len, self._class_namespaces)
        state += map(len, map(vars, self._objects))
        for hook in list(vars(self._manager.hook).values()):
            if hasattr(hook, "get_hookimpls"):
                state += hook.get_hookimpls()
        self._comparisons += 1
        if self._comparisons == COMPILED_AFTER and hasattr(compile_comparer, "__builtins__"):  # Python 3.10
            self._comparers = self._compile_comparers()
        try:
            if self._comparers and vars(builtins).keys() == self._builtin_names:
                for is_same, read, namespace in self._comparers:
                    if not is_same():
                        state += [namespace, *read(namespace)]
            else:
                for read, namespace in self._readers:
                    state += read(namespace)
        except (KeyError, NameError):
            return []
        return state

    def _compile_comparers(self) -> list[tuple[Any, Any, Any]]:
        """Return a comparer for each namespace. Together they take a quarter of the time of reading all values."""
        values_by_id = {}  # type: dict[int, dict[str, Any]]
        for _, namespace, keys, values in self._namespaces:
            values_by_id.setdefault(id(namespace), {}).update(zip(keys, values))
        return [
            (compile_comparer(namespace, values_by_id[id(namespace)]), read, namespace)
            for read, namespace in self._readers
        ]

    def changed(self) -> dict[str, str]:
        """Return name -> file of each value that was replaced, removed, or added to a class."""
        new_values = {
            f"{name}.{key}": namespace.get(key)
            for name, namespace, keys, values in self._namespaces
            for key, value in zip(keys, values)
            if not _is_same(namespace.get(key), value)
        }
        for name, class_, attributes in self._classes:
            for key in vars(class_).keys() - attributes:
                value = vars(class_)[key]
                if callable(value) or isinstance(value, DESCRIPTORS):
                    new_values[f"{name}.{key}"] = value
        known_hooks = {id(value) for _, value in self._interpreter_hooks}
        for name, value in _list_interpreter_hooks():
            if id(value) not in known_hooks and value is not None:
                has_file = isinstance(value, type) or _get_code(value) is not None
                new_values[name] = value if has_file else type(value)
        files = {name: self.find_file(value) for name, value in new_values.items()}
        registries = [*self._registries.find_changes(), *find_forged_patterns()]
        return {**self._new_codes, **files, **dict.fromkeys(registries, "")}

    def added(self) -> dict[str, str]:
        """Return name -> file of what the project put among the hooks, into tests and into modules of the machinery.

        These are modules of `DECIDING_PACKAGES` that were loaded after the snapshot, packages that the tests
        import, and all modules of pytest plugins and of assertion packages.
        """
        session = self._manager.get_plugin("session")
        files = {
            f"{type(owner).__name__}.{key}": self.find_file(value)
            for owner in [session, *getattr(session, "items", ())]
            for key, value in self._find_own_methods(owner)
        }
        for name, module in list(sys.modules.items()):
            parts = name.split(".")
            is_new = parts[0] in DECIDING_PACKAGES and name not in self._modules
            is_new = is_new or parts[0] in self._imported_by_tests
            if is_new or parts[0].startswith("pytest_") or not ASSERTION_PACKAGES.isdisjoint(parts):
                files.update(self._find_foreign_functions(name, module))
        return {**files, **self._find_foreign_hooks()}

    def _find_foreign_hooks(self) -> dict[str, str]:
        """Return name -> file of the hooks that the project implements, or that are of unknown origin."""
        files = {}
        for name, hook in list(vars(self._manager.hook).items()):
            for implementation in hook.get_hookimpls() if hasattr(hook, "get_hookimpls") else ():
                file = self.find_file(implementation.function)
                # Members of modules of unknown origin do not count (`_find_foreign_functions`): compiled functions and
                # callable objects are usual there.
                if not os.path.isabs(file):
                    files[f"the hook {name}"] = file
        return files

    def _find_own_methods(self, owner: Any) -> Iterator[tuple[str, Any]]:
        """Yield the attributes of the session or of a test that replace methods of its class."""
        class_, attributes = type(owner), getattr(owner, "__dict__", {})
        if class_ not in self._method_names:
            members = [member for kind in class_.__mro__ for member in vars(kind).items()]
            methods = {name for name, value in members if isinstance(value, FunctionType)}
            self._method_names[class_] = frozenset(methods)
        for name in self._method_names[class_].intersection(attributes):
            yield name, attributes[name]

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
            full_name: self.find_file(value)
            for full_name, value in named_values
            if callable(value) or isinstance(value, DESCRIPTORS)
        }
        return {full_name: file for full_name, file in files.items() if file[:1] not in ("", os.sep)}

    def _find_project_modules(self, names: Any) -> dict[str, str]:
        files = {name: str(getattr(sys.modules[name], "__file__", None)) for name in names}
        return {name: path for name, file in files.items() if (path := self._get_project_path(file))}

    def find_file(self, value: Any) -> str:
        """Return the file that defines a value: relative in the project, else absolute; empty if unknown.

        A class whose module has no file gets `/`, an absolute path, and so counts as outside of the project.
        """
        code = _get_code(value)
        if code is not None:
            return self._find_code_file(code)
        if not isinstance(value, type):
            return ""
        module = sys.modules.get(str(vars(value).get("__module__")))
        path = str(getattr(module, "__file__", None) or "/")
        return self._get_project_path(path) or os.path.abspath(path)

    def _find_code_file(self, code: Any) -> str:
        name = str(code.co_filename)
        if name not in self._paths:
            self._paths[name] = self._get_project_path(name) or os.path.abspath(name)
        return self._paths[name]

    def _get_project_path(self, path: str) -> str:
        """Return a path relative to the project's folder; empty for a path outside of it."""
        is_inside = path.startswith(self._root) and "site-packages" not in path
        return path[len(self._root) :] if is_inside and not path.startswith(PLUGIN_FOLDER) else ""


def make_readers(namespaces: Iterable[tuple[Any, Iterable[str]]]) -> Iterator[tuple[Any, Any]]:
    """Yield (a compiled function that returns the values of some names in a namespace, the namespace)."""
    names_by_id = {}  # type: dict[int, tuple[Any, list[str]]]
    for namespace, names in namespaces:
        names_by_id.setdefault(id(namespace), (namespace, []))[1].extend(names)
    for namespace, names in names_by_id.values():
        if names:  # the first one twice: for a single name, `itemgetter` would return no tuple
            yield itemgetter(names[0], *names), namespace


def compile_comparer(namespace: Any, values: dict[str, Any], own_builtins: Any = None) -> Any:
    """Return a function that returns whether a namespace still has some values.

    The names are global variables of the function, and the namespace is the dictionary of its global variables: Python
    caches where it finds these. A removed name raises `NameError`, unless it was added to the builtins.

    Args:
        own_builtins: The builtins of the namespace, if they are a copy to which nothing relevant can be added.
    """
    names, expected = [*values], [*values.values()]
    read_names = itemgetter(names[0], *names)  # the first one twice, as in `make_readers`

    def read_all() -> bool:
        return all(map(is_, read_names(namespace), (expected[0], *expected)))

    # A class shows its dictionary through a proxy.
    variables = namespace if type(namespace) is dict else get_referents(namespace)[0]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in values):
        return read_all
    parameters = [f"suture_value_{number}" for number in range(len(values))]
    comparisons = [f"{name} is {parameter}" for name, parameter in zip(values, parameters)]
    code = eval(f"lambda {', '.join(parameters)}: {' and '.join(comparisons)}").__code__
    is_same = FunctionType(code, variables, "is_same", tuple(values.values()))
    used_builtins = getattr(is_same, "__builtins__", None)
    is_known = any(used_builtins is known for known in (vars(builtins), __builtins__, own_builtins))
    return is_same if is_known else read_all


def _is_same(value: Any, old: Any) -> bool:
    return value is old or (type(value) is type(old) and type(old) in CONSTANTS and bool(value == old))


def _list_interpreter_hooks() -> list[tuple[str, Any]]:
    """Return (name, value) of what Python itself calls: signal handlers, import hooks, exception hooks."""
    hooks = [(f"the handler of signal {number}", getsignal(number)) for number in SIGNALS]
    hooks += [("sys.meta_path", finder) for finder in sys.meta_path]
    hooks += [("sys.path_hooks", finder) for finder in sys.path_hooks]
    hooks += [(f"sys.{name}", getattr(sys, name, None)) for name in ("excepthook", "displayhook")]
    return [(name, value) for name, value in hooks if not _is_own(value)]


def _is_own(value: Any) -> bool:
    """Whether a value is a function of this plugin, which stops endless tests with a signal."""
    code = _get_code(value)
    return code is not None and code.co_filename.startswith(PLUGIN_FOLDER)


def _get_code(value: Any) -> Any:
    """Return a function's code object, which stays the same while the function does; `None` for other values.

    No attribute of other values is read: `pytest.mark` creates a mark for each attribute name that is read,
    and refuses names that a project does not know.
    """
    function = value if type(value) is FunctionType else _get_function(value)
    code = function.__code__ if isinstance(function, FunctionType) else None
    return code if isinstance(code, CodeType) else None


def _get_function(value: Any) -> Any:
    function = value.fget if isinstance(value, property) else value
    while isinstance(function, partial):
        function = function.func
    return function.__func__ if isinstance(function, (staticmethod, classmethod, MethodType)) else function
