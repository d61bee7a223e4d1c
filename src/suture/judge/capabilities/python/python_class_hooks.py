"""Find classes of a Python file that decide on their own which exceptions and objects are of their kind.

`pytest.raises(ParseError)` accepts any exception that `ParseError` calls a kind of itself. It may do so by a method
of its metaclass, by a registration, or by bases that a call computes.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

KIND_METHODS = frozenset(("__instancecheck__", "__subclasscheck__"))
"""Methods of a metaclass that decide what is an object of its class."""
USUAL_METACLASSES = frozenset(("abc.ABCMeta", "type"))
EXCEPTION_NAME = re.compile(r"\w*(?:Error|Exception)")
"""The name of an exception of another file."""


class ClassKinds:
    """The classes of a module, and which of them are exceptions or abstract.

    Args:
        imported: Classes of other files, named as this module names them.
    """

    def __init__(self, tree: ast.Module, names: ModuleNames, imported: Iterable[ast.ClassDef]) -> None:
        nodes = (*imported, *ast.walk(tree))
        self._names = names
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}

    def find_uses(self, node: ast.AST) -> Iterator[Use]:
        """Yield where a class gets a say in which objects are of its kind."""
        found: list[str] = []
        if isinstance(node, ast.ClassDef):
            found = [f"{node.name}.{hook}" for hook in self._find_hooks(node)]
        elif isinstance(node, ast.Attribute) and node.attr == "register":
            owner = node.value  # or `type(owner)`
            parts = [owner, *(owner.args if isinstance(owner, ast.Call) else ())]
            found = [ast.unparse(node)] if any(map(self._is_exception, parts)) else []
        elif isinstance(node, ast.Call) and self._joins_kinds(node):
            found = [ast.unparse(node)]
        for name in found:
            yield Use(code="loosens_comparison", name=name, line=getattr(node, "lineno", 0), key=name)

    def _find_hooks(self, node: ast.ClassDef) -> Iterator[str]:
        methods, is_exception = _list_methods(node), self._is_exception(ast.Name(node.name))
        if "__mro_entries__" in methods:
            yield "__mro_entries__"
        if is_exception and "__subclasshook__" in methods:
            yield "__subclasshook__"
        for word in node.keywords if is_exception else ():
            bases = self._list_bases(word.value)
            known = [self._classes[name] for name in bases if name in self._classes]
            decides = any(KIND_METHODS & _list_methods(kind) for kind in known)
            if word.arg == "metaclass" and (decides or not (known or bases & USUAL_METACLASSES)):
                yield "metaclass"

    def _joins_kinds(self, node: ast.Call) -> bool:
        """Return whether a call makes a class a kind of an exception, or a plain value one of an abstract class."""
        name = self._names.resolve(node.func)
        if name == "type" and len(node.args) == 3:
            return sum(map(self._is_exception, getattr(node.args[1], "elts", ()))) > 1
        if name == "abc.ABCMeta.register":
            return any(map(self._is_exception, node.args))
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "register" or not node.args:
            return False
        is_plain = isinstance(getattr(builtins, self._names.resolve(node.args[0]), None), type)
        bases = self._list_bases(node.func.value)
        return (is_plain and bool(bases & {"abc.ABC", "abc.ABCMeta"})) or name.startswith("numbers.")

    def _is_exception(self, node: ast.expr) -> bool:
        bases = self._list_bases(node)
        known = [self._classes[name] for name in bases if name in self._classes]
        kinds = (getattr(builtins, name, None) for name in bases)
        if any(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
            # A class may have a method of this name that does something else.
            return not any("register" in _list_methods(kind) for kind in known)
        is_name = isinstance(node, ast.Name | ast.Attribute) and not known
        return is_name and EXCEPTION_NAME.fullmatch(ast.unparse(node).rpartition(".")[2]) is not None

    def _list_bases(self, node: ast.expr) -> set[str]:
        """Return the names of a class, of its bases and of their metaclasses, as far as the module shows."""
        bases: set[str] = set()
        waiting = [node]
        while waiting:
            base = waiting.pop()
            name = ast.unparse(base) if isinstance(base, ast.Name | ast.Attribute) else ""
            if name and name not in bases:
                bases |= {name, self._names.resolve(base)}
                kind = self._classes.get(name)
                waiting += kind.bases if kind is not None else []
                waiting += [word.value for word in kind.keywords] if kind is not None else []
        return bases


def _list_methods(node: ast.ClassDef) -> set[str]:
    functions = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    values = (target for part in node.body if isinstance(part, ast.Assign) for target in part.targets)
    return functions | {target.id for target in values if isinstance(target, ast.Name)}
