"""Find where a Python file changes tables, registries and caches of the standard library, which tests read too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Sequence

from suture.judge.capabilities.python.python_patches import DICTIONARY_CHANGES, Place
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.tuning import MAX_NAME_PARTS

CONTENT_CHANGES = frozenset((
    *DICTIONARY_CHANGES, "insert", "remove", "discard", "reverse", "sort", "difference_update", "intersection_update",
    "symmetric_difference_update",
))  # fmt: skip
"""Methods that replace or remove what a dictionary, list or set holds. What is merely appended changes no entry."""
CONTENT_FUNCTIONS = ("operator.setitem", "operator.delitem", "operator.ior")
"""Functions that change the container that is their first argument; those of `dict` and `list` are recognised too."""
CONTAINER_CLASSES = ("dict", "list", "set", "collections.OrderedDict", "collections.deque")
OWN_CONTAINERS = ("os.environ", "os.environb")
"""Containers of the standard library that ordinary programs change."""
CONTAINER_MODULES = ("sys", "collections", "array", "queue")
"""Modules of which the names are classes of containers, and one that has rules of its own."""
KNOWN_KEYS = {
    "http.client.responses": (*range(200, 207), *range(300, 306), *range(400, 413), *range(500, 506)),
    "calendar.mdays": range(13),
}
"""Table -> keys that it has in every version of Python, with the same meaning. A change of any other literal key counts
as an addition."""
DIALECTS = frozenset(("excel", "excel-tab", "unix"))
DIALECT_CALLS = ("csv.register_dialect", "csv.unregister_dialect")
LEVELS = {
    "NOTSET": 0,
    "DEBUG": 10,
    "INFO": 20,
    "WARNING": 30,
    "WARN": 30,
    "ERROR": 40,
    "CRITICAL": 50,
    "FATAL": 50,
}


def find_library_state_uses(node: ast.AST, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a change of what a table or registry of the standard library holds."""
    for owner in _list_changed(node, names):
        name = names.resolve(owner)
        if (
            _is_library_table(name)
            and not _only_adds(node, owner, KNOWN_KEYS.get(name, ()), names)
            and _is_imported(owner, place, names)
        ):
            yield Use(code="patches_code", name=name, line=getattr(node, "lineno", 1), key=name)
    if isinstance(node, ast.Call) and _replaces_entry(node, names):
        name = names.resolve(node.func)
        yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)


def _list_changed(node: ast.AST, names: ModuleNames) -> list[ast.expr]:
    """Return the containers that a node changes."""
    if isinstance(node, ast.Subscript):
        return [] if isinstance(node.ctx, ast.Load) else [node.value]
    if isinstance(node, ast.AugAssign):
        # A list that is extended by `+=` keeps its entries.
        return [node.target] if isinstance(node.target, ast.Name) and not isinstance(node.op, ast.Add) else []
    if not isinstance(node, ast.Call):
        return []
    function = names.resolve(node.func)
    owner, _, method = function.rpartition(".")
    if node.args and (
        function in CONTENT_FUNCTIONS or (owner in CONTAINER_CLASSES and method in CONTENT_CHANGES)
    ):
        return [node.args[0]]
    is_change = isinstance(node.func, ast.Attribute) and node.func.attr in CONTENT_CHANGES
    return [node.func.value] if is_change and isinstance(node.func, ast.Attribute) else []


def _only_adds(node: ast.AST, owner: ast.expr, known: Collection[int], names: ModuleNames) -> bool:
    """Return whether a change of a table stores only literal keys that it may lack."""
    keys = _list_stored_keys(node, owner, names)
    return keys is not None and all(
        key is not None and names.is_constant(key) and names.fold(key) not in known for key in keys
    )


def _list_stored_keys(node: ast.AST, owner: ast.expr, names: ModuleNames) -> Sequence[ast.expr | None] | None:
    """Return the keys that a change of a table stores, or `None` if it may change others too."""
    if isinstance(node, ast.Subscript):
        return [node.slice] if isinstance(node.ctx, ast.Store) else None
    given = node.value if isinstance(node, ast.AugAssign) else None
    if isinstance(node, ast.Call):
        function = node.func
        method = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        arguments = [argument for argument in node.args if argument is not owner]
        if method == "setdefault":
            return []
        if method in ("setitem", "__setitem__"):
            return arguments[:1]
        if method in ("update", "ior", "__ior__") and len(arguments) == 1 and not node.keywords:
            given = arguments[0]
    given = names.assigned.get(given.id) if isinstance(given, ast.Name) else given
    return given.keys if isinstance(given, ast.Dict) else None


def _is_library_table(name: str) -> bool:
    """Return whether a full name is that of an object, and no class, in a module of the standard library."""
    module, _, rest = name.partition(".")
    last = name.rpartition(".")[2]
    is_class = last[:1].isupper() and not last.isupper()
    is_library = module in sys.stdlib_module_names and module not in CONTAINER_MODULES
    return is_library and bool(rest) and not is_class and name not in OWN_CONTAINERS


def _is_imported(node: ast.expr, place: Place, names: ModuleNames) -> bool:
    """Return whether a name stands for an import, and no parameter or variable of that name hides it."""
    for _ in range(MAX_NAME_PARTS):
        access = names.find_access(node)
        if access is not None:
            node = access[0]
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Name) and node.id in names.assigned:
            node = names.assigned[node.id]
        else:
            break
    if isinstance(node, ast.Call):
        return names.is_import_call(node)
    return isinstance(node, ast.Name) and node.id not in place.local_names and names.is_imported(node)


def _replaces_entry(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether a call gives another meaning to a level or dialect that Python defines."""
    function = names.resolve(node.func)
    options = {word.arg: word.value for word in node.keywords}
    given = [*node.args, *options.values()]
    if function in DIALECT_CALLS:
        return bool(given) and names.fold_text(given[0]) in DIALECTS
    if function == "logging.addLevelName" and len(given) > 1:
        level, name = names.fold(given[0]), names.fold_text(given[1])
        level = LEVELS.get(names.resolve(given[0]).removeprefix("logging."), level)
        return name in LEVELS and LEVELS[name] != level
    return False
