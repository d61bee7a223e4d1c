"""Find the names of special attributes that a Python file composes from strings, such as `f"__{kind}__"`.

Rules about names need the whole name. In a composed one they see the constant parts, and these are enough to tell that
it is the name of an attribute that leads to other code, or decides about comparisons. Other strings look like such a
name, too, for example bold text in Markdown. So a string counts only if it is used to reach an attribute.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import UNKNOWN, ModuleNames

SPECIAL_NAME = re.compile(rf"__(?=\w*{UNKNOWN})[\w{UNKNOWN}]*__")
"""A composed name of a special method or attribute."""
FRAME_NAME = re.compile(rf"(?:__|_getf|f_|tb_|gi_|cr_|ag_|co_|cell_)[\w{UNKNOWN}]*")
"""How the name begins of an attribute that leads from an object to its code or its callers."""
FORMAT_FIELD = re.compile(rf"\{{[^{{}}]*\.__[\w{UNKNOWN}]*{UNKNOWN}")
"""A field of a format that reads a special attribute."""
ATTRIBUTE_READERS = ("operator.attrgetter", "operator.methodcaller")
ATTRIBUTE_FUNCTIONS = ("getattr", "setattr", "delattr", "hasattr")
ATTRIBUTE_METHODS = ("__getattribute__", "__getattr__", "__setattr__", "__delattr__")
CLASS_MAKERS = ("type", "type.__new__", "types.new_class")


class ComposedNames:
    """The strings of a module that are used to reach an attribute.

    Variables are known by their names, in whichever function they are.
    """

    def __init__(self, tree: ast.Module, names: ModuleNames) -> None:
        self._names = names
        self._sources: dict[str, list[ast.expr]] = defaultdict(list)
        """Variable, parameter or function -> what it stands for or returns."""
        self._followed: set[str] = set()
        functions: dict[str, list[list[str]]] = defaultdict(list)
        nodes = list(ast.walk(tree))
        for node in nodes:
            for name, function in _list_functions(node):
                given = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
                functions[name].append(given)
        for node in nodes:
            for name, value in (*_list_values(node), *_list_arguments(node, functions)):
                self._sources[name].append(value)

    def find_uses(self, node: ast.AST) -> Iterator[Use]:
        """Yield each composed name of a special attribute by which a node reads, sets or defines one."""
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call):
            text = self._names.compose_text(node)
            if UNKNOWN in text and FORMAT_FIELD.search(text):
                yield self._report(node, text)
        if isinstance(node, ast.Call | ast.Subscript):
            for attribute in self._list_attributes(node):
                yield from self._find_names(attribute, FRAME_NAME)
                for value in self._follow(attribute):
                    yield from self._find_names(value, SPECIAL_NAME)

    def _list_attributes(self, node: ast.Call | ast.Subscript) -> list[ast.expr]:
        """Return the expressions that name attributes in a call or a subscript."""
        access = self._names.find_access(node)
        if access is not None:
            return [access[1]]
        if isinstance(node, ast.Subscript):
            return []
        function = self._names.resolve(node.func)
        if function in ATTRIBUTE_READERS:
            return node.args
        if function in ATTRIBUTE_FUNCTIONS:
            return node.args[1:2]
        is_class = function in CLASS_MAKERS or function.endswith(".__new__")
        if is_class or (isinstance(node.func, ast.Attribute) and node.func.attr == "__new__"):
            return node.args[2:]
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ATTRIBUTE_METHODS
        return node.args[:2] if is_method else []

    def _follow(self, attribute: ast.expr) -> Iterator[ast.expr]:
        """Yield all expressions of which an expression may consist, each variable only once for the whole module."""
        waiting = [attribute]
        while waiting:
            for part in ast.walk(waiting.pop()):
                if isinstance(part, ast.JoinedStr | ast.BinOp | ast.Call):
                    yield part
                if isinstance(part, ast.Name) and part.id not in self._followed:
                    self._followed.add(part.id)
                    waiting += self._sources.get(part.id, ())

    def _find_names(self, node: ast.expr, pattern: re.Pattern[str]) -> Iterator[Use]:
        text = self._names.compose_text(node)
        parts = re.split(rf"[^\w{UNKNOWN}]+", text)
        if any(UNKNOWN in part and pattern.fullmatch(part) for part in parts):
            yield self._report(node, text)

    def _report(self, node: ast.expr, text: str) -> Use:
        key = text.replace(UNKNOWN, "...")
        return Use(code="computes_names", name=ast.unparse(node), line=node.lineno, key=key)


def _list_functions(
    node: ast.AST,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, node
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))


def _list_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield variables and functions with what they get or return, as far as one statement shows."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            owner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(owner, ast.Name):
                yield owner.id, target.slice if isinstance(target, ast.Subscript) else node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        for part in ast.walk(node.target):
            if isinstance(part, ast.Name):
                yield part.id, node.iter
    for name, function in _list_functions(node):
        returned = ast.walk(function) if not isinstance(function, ast.Lambda) else ()
        yield from ((name, part.value) for part in returned if isinstance(part, ast.Return) and part.value)
        if isinstance(function, ast.Lambda):
            yield name, function.body


def _list_arguments(node: ast.AST, functions: dict[str, list[list[str]]]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of the module's own functions with what a call passes."""
    if not isinstance(node, ast.Call):
        return
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    for parameters in functions.get(called, ()):
        is_method = isinstance(node.func, ast.Attribute) and parameters[:1] in (["self"], ["cls"])
        yield from zip(parameters[1:] if is_method else parameters, node.args, strict=False)
        yield from ((word.arg, word.value) for word in node.keywords if word.arg in parameters and word.arg)
