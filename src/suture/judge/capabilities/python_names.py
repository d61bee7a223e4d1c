"""What the names of a Python module mean, as far as its imports and simple assignments show."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from suture.project.tuning import MAX_NAME_PARTS

IMPORT_CALLS = ("__import__", "builtins.__import__", "importlib.import_module", "importlib.__import__")
"""Functions that import the module whose name is their first argument."""


class PythonNames:
    """The names of one module.

    Attributes:
        assigned: Variable that is assigned once -> its value, anywhere in the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        """Name in the module -> its full name; a name from a relative import begins with a dot."""
        self._modules: set[str] = set()
        """Names in the module that are modules for sure: those of `import x`."""
        self._defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self.assigned: dict[str, ast.expr] = {}
        repeated: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    full_name = name.name if name.asname else name.name.partition(".")[0]
                    self._imported[name.asname or full_name] = full_name
                    self._modules.add(name.asname or full_name)
            elif isinstance(node, ast.ImportFrom):
                source = "." * node.level + (node.module or "")
                for name in node.names:
                    self._imported[name.asname or name.name] = f"{source}.{name.name}"
            elif isinstance(node, ast.arg):
                repeated.add(node.arg)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name_id = node.targets[0].id
                if name_id in self.assigned:
                    repeated.add(name_id)
                self.assigned[name_id] = node.value
        for name_id in repeated:
            self.assigned.pop(name_id, None)

    def imported_by(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """Yield the full names that an import binds; none for a relative import."""
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif not node.level:
            yield from (f"{node.module}.{name.name}" for name in node.names)

    def is_import_call(self, node: ast.Call) -> bool:
        """Return whether a call imports a module by a literal name."""
        is_literal = bool(node.args) and isinstance(node.args[0], ast.Constant)
        return is_literal and self.resolve(node.func) in IMPORT_CALLS

    def is_foreign(self, node: ast.expr, depth: int = 0) -> bool:
        """Return whether an expression is an imported module, or a class or function of another module.

        An object that was imported from another module of the project, such as `settings`, is no class or
        module as far as its name shows, and setting its attributes is usual.
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

    def resolve(self, node: ast.expr, depth: int = 0) -> str:
        """Return a dotted name with its module, such as `os.system`; empty for other expressions."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < MAX_NAME_PARTS:
            parts.append(node.attr)
            node = node.value
        base = self._resolve_base(node, depth + 1)
        return ".".join([base, *reversed(parts)]) if base else ""

    def _resolve_base(self, node: ast.expr, depth: int) -> str:
        """Return the full name of what stands before the first dot: a name, an import call or a `getattr`."""
        if depth > MAX_NAME_PARTS:
            return ""
        if isinstance(node, ast.Name):
            if node.id in self._imported:
                return self._imported[node.id]
            value = self.assigned.get(node.id)
            if isinstance(value, ast.Name | ast.Attribute | ast.Call):
                return self.resolve(value, depth)
            full_name = "" if node.id in self._defined or node.id in self.assigned else node.id
            return {"__builtins__": "builtins"}.get(full_name, full_name)
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        function = self.resolve(node.func, depth)
        if function in IMPORT_CALLS:
            module = node.args[0]
            return str(module.value) if isinstance(module, ast.Constant) else ""
        if function == "getattr" and len(node.args) >= 2:
            attribute = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            owner = self.resolve(node.args[0], depth)
            return f"{owner}.{attribute}" if owner and attribute and isinstance(attribute, str) else ""
        return ""
