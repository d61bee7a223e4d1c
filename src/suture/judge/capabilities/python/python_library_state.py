"""Find where a Python file changes tables, registries and caches of the standard library, which tests read too."""

from __future__ import annotations

import ast
import mimetypes
import sys
from collections.abc import Iterator

from suture.judge.capabilities.python.python_patches import DICTIONARY_CHANGES, Place
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.tuning import MAX_NAME_PARTS

CONTENT_CHANGES = frozenset((
    *DICTIONARY_CHANGES, "insert", "remove", "discard", "reverse", "sort", "__iadd__", "difference_update",
    "intersection_update", "symmetric_difference_update",
))  # fmt: skip
"""Methods that replace or remove what a dictionary, list or set holds. What is merely appended changes no entry."""
CONTENT_FUNCTIONS = ("operator.setitem", "operator.delitem", "operator.ior", "operator.iadd")
"""Functions that change the container that is their first argument; those of `dict` and `list` are recognised too."""
CONTAINER_CLASSES = ("dict", "list", "set", "collections.OrderedDict", "collections.deque")
OWN_CONTAINERS = ("os.environ", "os.environb")
"""Containers of the standard library that ordinary programs change."""
CONTAINER_MODULES = ("sys", "collections", "array", "queue")
"""Modules of which the names are classes of containers, and one that has rules of its own."""
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
        if _is_library_table(name) and _is_imported(owner, place, names):
            yield Use(code="patches_code", name=name, line=getattr(node, "lineno", 1), key=name)
    if isinstance(node, ast.Call) and _replaces_entry(node, names):
        name = names.resolve(node.func)
        yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)


def _list_changed(node: ast.AST, names: ModuleNames) -> list[ast.expr]:
    """Return the containers that a node changes."""
    if isinstance(node, ast.Subscript):
        return [] if isinstance(node.ctx, ast.Load) else [node.value]
    if isinstance(node, ast.AugAssign):
        return [node.target] if isinstance(node.target, ast.Name) else []
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
    """Return whether a call gives another meaning to a level, dialect or file name extension that Python defines."""
    function = names.resolve(node.func)
    options = {word.arg: word.value for word in node.keywords}
    given = [*node.args, *options.values()]
    if function in DIALECT_CALLS:
        return bool(given) and names.fold_text(given[0]) in DIALECTS
    if function == "logging.addLevelName" and len(given) > 1:
        level, name = names.fold(given[0]), names.fold_text(given[1])
        level = LEVELS.get(names.resolve(given[0]).removeprefix("logging."), level)
        return (level in LEVELS.values() or name in LEVELS) and LEVELS.get(name or "") != level
    if function == "mimetypes.add_type" and len(given) > 1:
        known = mimetypes.MimeTypes(()).types_map[True].get(names.fold_text(given[1]) or "")
        return known not in (None, names.fold_text(given[0]))
    return False
