"""Brings statements into a normal form, so that changes which differ only by redundant parts are equal.

`except (ValueError, Exception)` catches what `except Exception` catches, and `range(0, n)` is `range(n)`. Only forms
that are equal for every input are joined. Names of builtins count only where the file does not bind them itself.
"""

from __future__ import annotations

import ast
import builtins

BUILTIN_CLASSES = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
"""Builtin classes by name; some have several names, as `OSError` has."""
CLASS_CHECKS = ("isinstance", "issubclass")


def find_bound_builtins(tree: ast.Module) -> frozenset[str]:
    """Return the names of builtins that a file binds itself, anywhere; a star import may bind any of them."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name="*"):
                return frozenset(vars(builtins))
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
    return frozenset(bound & vars(builtins).keys())


class NormalForm(ast.NodeTransformer):
    """Replaces each redundant form by the shortest one.

    Args:
        bound: Names of builtins that mean something else in this file.
    """

    def __init__(self, bound: frozenset[str]) -> None:
        self._bound = bound

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Leave out classes that another class of the same handler covers."""
        self.generic_visit(node)
        if node.type is not None:
            node.type = self._shorten_classes(node.type)
            if self._is_builtin(node.type, "BaseException"):
                node.type = None if node.name is None else node.type
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out redundant classes of a class check, and defaults of `range`."""
        self.generic_visit(node)
        if any(isinstance(argument, ast.Starred) for argument in node.args) or node.keywords:
            return node
        if any(self._is_builtin(node.func, name) for name in CLASS_CHECKS) and len(node.args) == 2:
            node.args[1] = self._shorten_classes(node.args[1])
        elif self._is_builtin(node.func, "range"):
            if len(node.args) == 3 and _is_int(node.args[2], 1):
                node.args.pop()
            if len(node.args) == 2 and _is_int(node.args[0], 0):
                node.args.pop(0)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Write `return None` as `return`."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None
        return node

    def _shorten_classes(self, node: ast.expr) -> ast.expr:
        """Return a tuple of classes without repeated ones and subclasses of others, in a fixed order."""
        if not isinstance(node, ast.Tuple) or not all(isinstance(each, ast.Name) for each in node.elts):
            return node
        names = {self._canonical_name(each.id) for each in node.elts if isinstance(each, ast.Name)}
        known = {
            name: BUILTIN_CLASSES[name] for name in names if name in BUILTIN_CLASSES.keys() - self._bound
        }
        covered = {
            name
            for name, cls in known.items()
            if any(issubclass(cls, o) for o in known.values() if o is not cls)
        }
        classes: list[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in sorted(names - covered)]
        return classes[0] if len(classes) == 1 else ast.Tuple(elts=classes, ctx=ast.Load())

    def _canonical_name(self, name: str) -> str:
        """Return the name of a builtin class that the class itself has: `OSError` for `IOError`."""
        known = BUILTIN_CLASSES.get(name) if name not in self._bound else None
        return name if known is None or known.__name__ in self._bound else known.__name__

    def _is_builtin(self, node: ast.AST, name: str) -> bool:
        return isinstance(node, ast.Name) and node.id == name and name not in self._bound


def _is_int(node: ast.AST, value: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value
