"""What the names of a Python module mean, as far as its imports, simple assignments and constants show."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from suture.project.python_source.constant_folding import ConstantFolder
from suture.project.tuning import MAX_NAME_PARTS

UNKNOWN = "\0"
"""Stands for a part of a string that only a run determines."""
IMPORT_CALLS = ("__import__", "importlib.import_module", "importlib.__import__", "importlib.util.find_spec")
"""Functions that import or find the module whose name is their first argument."""
GETTERS = ("getattr", "object.__getattribute__", "type.__getattribute__", "inspect.getattr_static")
"""Functions that read the attribute of their first argument that the second names."""
NAMESPACE_METHODS = ("get", "pop", "setdefault", "__getitem__")
"""Methods of a dictionary that return the value of a key."""


class ModuleNames:
    """The names of one module.

    Attributes:
        assigned: Variable that is assigned once -> its value, anywhere in the module.
        functions: Names of the functions and classes that the module defines, wherever.
        star_modules: Modules of which all public names are imported.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        """Name in the module -> its full name; a name from a relative import begins with a dot."""
        self._modules: set[str] = set()
        """Names in the module that are modules for sure: those of `import x`."""
        self._resolved: dict[ast.expr, str] = {}
        """Results so far. Without them, calls of calls would take exponential time."""
        self._folder = ConstantFolder(self.resolve, lambda name: self.assigned.get(name))
        self._composer = ConstantFolder(self.resolve, lambda name: self.assigned.get(name), UNKNOWN)
        self.functions: set[str] = set()
        self.star_modules: list[str] = []
        values: dict[str, list[ast.expr | None]] = defaultdict(list)
        deleted: set[str] = set()
        updated: set[ast.expr] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._add_import(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.functions.add(node.name)
            elif isinstance(node, ast.arg):
                values[node.arg] += [None, None]  # the caller's choice
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        values[target.id].insert(0, node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
                updated.add(node.target)  # a dictionary remains the same object
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in updated:
                values[node.id].append(None)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
                deleted.add(node.id)
        # Each assignment gave a value and, for its target, a `None`.
        self.assigned = {
            name: found[0] for name, found in values.items() if len(found) == 2 and found[0] is not None
        }
        self._module_aliases = {
            name: value.id
            for name, found in values.items()
            for value in found
            if isinstance(value, ast.Name) and value.id in self._modules
        }
        self._defined = {name for statement in tree.body for name in _bound_names(statement)} - deleted

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                full_name = name.name if name.asname else name.name.partition(".")[0]
                self._imported[name.asname or full_name] = full_name
                self._modules.add(name.asname or full_name)
            return
        source = "." * node.level + (node.module or "")
        for name in node.names:
            if name.name == "*":
                self.star_modules.append(source)
            else:
                self._imported[name.asname or name.name] = f"{source}.{name.name}"

    def imported_by(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """Yield the full names that an import binds; none for a relative import."""
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif not node.level:
            yield from (f"{node.module}.{name.name}".removeprefix("builtins.") for name in node.names)

    def fold(self, node: ast.expr) -> Any:
        """Return the value of an expression that consists of constants (string, bytes, number or list), or `None`."""
        return self._folder.fold(node)

    def fold_text(self, node: ast.expr) -> str | None:
        """Return the string value of an expression that consists of constants, or `None`."""
        value = self.fold(node)
        return value if isinstance(value, str) else None

    def compose_text(self, node: ast.expr) -> str:
        """Return the string value of an expression, with `UNKNOWN` in place of each part that is not constant."""
        value = self._composer.fold(node)
        return value if isinstance(value, str) else UNKNOWN

    def is_constant(self, node: ast.expr) -> bool:
        """Return whether an expression consists of constants."""
        return self.fold(node) is not None

    def is_import_call(self, node: ast.Call) -> bool:
        """Return whether a call imports a module by a constant name."""
        return (
            bool(node.args) and self.resolve(node.func) in IMPORT_CALLS and bool(self.fold_text(node.args[0]))
        )

    def find_access(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Return object and attribute name of an access by name, such as `getattr(sys, "path")`, or `None`."""
        if isinstance(node, ast.Subscript):
            owner = self.find_namespace_owner(node.value)
            return None if owner is None else (owner, node.slice)
        if not isinstance(node, ast.Call) or not node.args:
            return None
        if self.resolve(node.func) in GETTERS and len(node.args) > 1:
            return node.args[0], node.args[1]
        if isinstance(node.func, ast.Call) and self.resolve(node.func.func) == "operator.attrgetter":
            return (node.args[0], node.func.args[0]) if node.func.args else None
        if not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "__getattribute__":
            return (node.func.value, node.args[0]) if len(node.args) == 1 else (node.args[0], node.args[1])
        if node.func.attr in NAMESPACE_METHODS:
            owner = self.find_namespace_owner(node.func.value)
            return None if owner is None else (owner, node.args[0])
        return None

    def find_namespace_owner(self, node: ast.expr) -> ast.expr | None:
        """Return the object of which an expression is the dictionary, such as `json` of `vars(json)`."""
        if isinstance(node, ast.Name):
            node = self.assigned.get(node.id, node)
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return node.value
        if isinstance(node, ast.Call) and node.args and self.resolve(node.func) == "vars":
            return node.args[0]
        if self.is_globals_call(node):
            return node
        # In an imported module, `__builtins__` is a dictionary.
        return node if isinstance(node, ast.Name) and node.id == "__builtins__" else None

    def is_globals_call(self, node: ast.expr) -> bool:
        """Return whether an expression is the dictionary of the module itself, such as `globals()`."""
        if not isinstance(node, ast.Call) or node.args:
            return False
        return self.resolve(node.func) in ("globals", "locals", "vars")

    def is_foreign(self, node: ast.expr, depth: int = 0) -> bool:
        """Return whether an expression is an imported module, or a class or function of another module.

        An object that was imported from another module of the project, such as `settings`, is not a class or module as
        far as its name shows, and setting its attributes is common.
        """
        if depth > MAX_NAME_PARTS:
            return False
        if isinstance(node, ast.Attribute):
            return self.is_foreign(node.value, depth + 1)
        if isinstance(node, ast.Call):
            return self.is_import_call(node)
        if not isinstance(node, ast.Name):
            return False
        if node.id in ("builtins", "__builtins__") or node.id in self._modules:
            return True
        full_name = self._imported.get(node.id)
        if full_name is not None:
            # By convention: `Account` is a class, and `ACCOUNT` is a constant.
            is_class = node.id.lstrip("_")[:1].isupper() and not node.id.isupper()
            return is_class or full_name.partition(".")[0] in sys.stdlib_module_names
        value = self.assigned.get(node.id)
        # Only a name for a module or class is followed: the result of a call is an object of this module.
        return isinstance(value, ast.Name | ast.Attribute) and self.is_foreign(value, depth + 1)

    def imports_any(self, modules: Collection[str]) -> bool:
        """Return whether the module imports one of some top-level modules, or a name from one."""
        return any(name.partition(".")[0] in modules for name in self._imported.values())

    def is_imported(self, node: ast.expr) -> bool:
        """Return whether a dotted name begins with an import, of any kind."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return True
        is_alias = node.id in self._module_aliases or self.resolve(node) != node.id
        return node.id in self._imported or is_alias

    def is_module(self, node: ast.expr) -> bool:
        """Return whether an expression is a module for sure."""
        if isinstance(node, ast.Call):
            return self.is_import_call(node)
        if not isinstance(node, ast.Name):
            return False
        name = self._module_aliases.get(node.id, node.id)
        return name in self._modules or name in ("builtins", "__builtins__")

    def resolve(self, node: ast.expr, depth: int = 0) -> str:
        """Return a dotted name with its module, such as `os.system`; empty for other expressions.

        A builtin function has no module in its name, however the module gets it.
        """
        if node in self._resolved:
            return self._resolved[node]
        parts: list[str] = []
        base_node = node
        while isinstance(base_node, ast.Attribute) and len(parts) < MAX_NAME_PARTS:
            parts.append(base_node.attr)
            base_node = base_node.value
        base = self._resolve_base(base_node, depth + 1)
        name = ".".join([base, *reversed(parts)]) if base else ""
        self._resolved[node] = name.removeprefix("builtins.")
        return self._resolved[node]

    def _resolve_base(self, node: ast.expr, depth: int) -> str:
        """Return the full name of what precedes the first dot: a name, an import or an access by name."""
        if depth > MAX_NAME_PARTS:
            return ""
        if isinstance(node, ast.Name):
            return self._resolve_name(node.id, depth)
        if not isinstance(node, ast.Call | ast.Subscript):
            return ""
        if isinstance(node, ast.Call) and node.args and self.resolve(node.func, depth) in IMPORT_CALLS:
            return self.fold_text(node.args[0]) or ""
        access = self.find_access(node)
        if access is None:
            return ""
        attribute = self.fold_text(access[1])
        if self.is_globals_call(access[0]):
            return self._resolve_name(attribute, depth) if attribute else ""
        owner = self.resolve(access[0], depth)
        return f"{owner}.{attribute}".removeprefix("builtins.") if owner and attribute else ""

    def _resolve_name(self, name: str, depth: int) -> str:
        if name in self._imported:
            return self._imported[name]
        if name in self._module_aliases:
            return self._imported[self._module_aliases[name]]
        value = self.assigned.get(name)
        is_own_name = isinstance(value, ast.Name) and value.id == name  # `open = open`
        if isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript) and not is_own_name:
            return self.resolve(value, depth)
        if name in self._defined and not is_own_name:
            return ""
        return {"__builtins__": "builtins"}.get(name, name)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines. Names in its functions hide no name outside of them."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
