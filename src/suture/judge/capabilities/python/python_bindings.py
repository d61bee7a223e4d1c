"""Repeat the bodies of functions and loops of a Python file with the values that the file passes to them.

`_set(string, "digits", "1")` changes a module although `_set` itself only contains `setattr(owner, name, value)`. Rules
that look at one expression see this in a copy of the body, in which the values replace the parameters.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from operator import is_

from suture.judge.tuning import MAX_BOUND_BODIES, MAX_LOOP_VALUES
from suture.project.python_source.module_names import ModuleNames

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
NAME_PART = re.compile(r"[\w.]{0,40}")
"""A string that may be part of a name. Other strings say nothing about what a body does."""


class BoundBodies:
    """The copies of bodies of one module.

    Attributes:
        copies: All nodes of the copies that differ from the original nodes.
        is_full: Whether there are more bodies than are copied, so that some are not searched.
    """

    def __init__(self, tree: ast.Module, names: ModuleNames) -> None:
        self._names = names
        self._functions: dict[str, list[Function]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions[node.name].append(node)
        for name, value in names.assigned.items():
            if isinstance(value, ast.Lambda):
                self._functions[name].append(value)
        self._done: set[tuple[ast.AST, str]] = set()
        self.copies: set[ast.AST] = set()
        self.is_full = False

    def bind(self, node: ast.AST, local_names: Collection[str]) -> Iterator[ast.AST]:
        """Yield a copy of each body that a call or a loop runs with values that tell something.

        Args:
            local_names: Variables around the node, of which the values are unknown.
        """
        for body, values in self._find_bodies(node):
            yield from self._copy(body, values, local_names, is_copy=node in self.copies)

    def _find_bodies(self, node: ast.AST) -> Iterator[tuple[ast.AST, dict[str, ast.expr]]]:
        """Yield each body that a node runs, and what its parameters or variables stand for."""
        if isinstance(node, ast.Call):
            yield from self._find_calls(node)
        elif isinstance(node, ast.For | ast.AsyncFor):
            for values in self._list_rounds(node.target, node.iter):
                yield from ((statement, values) for statement in node.body)
        elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            for values in self._list_rounds(node.generators[0].target, node.generators[0].iter):
                yield node.elt, values

    def _find_calls(self, node: ast.Call) -> Iterator[tuple[Function, dict[str, ast.expr]]]:
        called, given = node.func, node.args
        if self._names.resolve(called) == "functools.partial" and given:
            called, given = given[0], given[1:]
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        for function in self._functions.get(name, ()):
            parameters = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
            if isinstance(called, ast.Attribute) and parameters[:1] in (["self"], ["cls"]):
                parameters = parameters[1:]
            values = dict(zip(parameters, given, strict=False))
            values |= {word.arg: word.value for word in node.keywords if word.arg is not None}
            yield function, values

    def _list_rounds(self, target: ast.expr, values: ast.expr) -> Iterator[dict[str, ast.expr]]:
        """Yield what the variables of a loop over a literal stand for in each round."""
        for value in self._list_items(values)[:MAX_LOOP_VALUES]:
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            parts = getattr(value, "elts", ()) if isinstance(target, ast.Tuple) else [value]
            bound = zip(targets, parts, strict=False)
            yield {name.id: part for name, part in bound if isinstance(name, ast.Name)}

    def _list_items(self, values: ast.expr) -> list[ast.expr]:
        """Return the items of a literal, or of a view of one, such as `{...}.items()`."""
        view = ""
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Attribute):
            view = values.func.attr
            values = values.func.value
        values = self._names.assigned.get(values.id, values) if isinstance(values, ast.Name) else values
        if not isinstance(values, ast.Dict):
            return list(getattr(values, "elts", ()))
        pairs = [(key, value) for key, value in zip(values.keys, values.values, strict=True) if key]
        if view == "items":
            return [ast.Tuple([key, value]) for key, value in pairs]
        return [value if view == "values" else key for key, value in pairs]

    def _copy(
        self, body: ast.AST, values: Mapping[str, ast.expr], local_names: Collection[str], *, is_copy: bool
    ) -> Iterator[ast.AST]:
        with suppress(RecursionError):  # thousands of operators in one expression
            simplified = {
                name: self._simplify(value, local_names, is_copy=is_copy) for name, value in values.items()
            }
            values = {name: value for name, value in simplified.items() if value is not None}
            key = body, repr([(name, ast.dump(value)) for name, value in values.items()])
            if not values or key in self._done:
                return
            if len(self._done) == MAX_BOUND_BODIES:
                self.is_full = True
                return
            self._done.add(key)
            copy = self._replace(body, values)
            if copy is not body:
                yield copy

    def _simplify(self, value: ast.expr, local_names: Collection[str], *, is_copy: bool) -> ast.expr | None:
        """Return a value if it says which object, or which name, a body deals with; a string as a literal.

        Args:
            is_copy: Whether the value is passed on in a copy. In a recursive function, calls would grow for ever.
        """
        text = self._names.fold_text(value)
        if text is not None:
            is_part = NAME_PART.fullmatch(text) is not None
            return ast.copy_location(ast.Constant(text), value) if is_part else None
        if isinstance(value, ast.Name):
            is_known = value.id in self._names.functions or self._names.is_foreign(value)
            return value if is_known and value.id not in local_names else None
        if isinstance(value, ast.Call):
            return value if self._names.resolve(value.func) and not is_copy else None
        return value if isinstance(value, ast.Attribute) and self._names.is_foreign(value) else None

    def _replace(self, node: ast.AST, values: Mapping[str, ast.expr]) -> ast.AST:
        """Return a copy of a node with values in place of variables; the node itself if none occurs in it."""
        if isinstance(node, ast.Name):
            return values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
        fields = {name: self._replace_field(value, values) for name, value in ast.iter_fields(node)}
        if all(fields[name] is value for name, value in ast.iter_fields(node)):
            return node
        copy = ast.copy_location(type(node)(**fields), node)
        self.copies.add(copy)
        return copy

    def _replace_field(self, value: object, values: Mapping[str, ast.expr]) -> object:
        if isinstance(value, ast.AST):
            return self._replace(value, values)
        if isinstance(value, list):
            # A parameter that is replaced hides no name of the module.
            kept = [part for part in value if not (isinstance(part, ast.arg) and part.arg in values)]
            parts = [self._replace_field(part, values) for part in kept]
            return value if len(parts) == len(value) and all(map(is_, parts, value)) else parts
        return value
