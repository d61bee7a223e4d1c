"""The variables of a test program: which name means which variable, and what determines the value of each.

Runs inside the sandbox.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

Scope = tuple[str, ...]
"""The names of the functions and classes around a piece of code; empty for the module."""
Variable = tuple[Scope, str]
"""(scope, name). An attribute of `self` counts as a variable of the module that is named `self.rows`."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

SEQUENCES = (ast.Tuple, ast.List)


@dataclass(frozen=True)
class Binding:
    """Variables and the syntax that determines their values.

    Attributes:
        separates: Whether the variables are parts of one item, as in `for xs, expected in cases`. Then the
            value of one says nothing about the others.
    """

    targets: frozenset[Variable]
    value: ast.AST
    separates: bool = False


class ProgramVariables:
    """The variables of one test.

    The scope of a comprehension and of a lambda is that of the code around it.

    Attributes:
        by_node: Node of a name, or of an attribute of `self` -> the variable.
        functions: Variables that hold a function of the test.
        bindings: Everything that determines values, including the arguments of the test's own functions.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._names: list[tuple[ast.AST, Scope, str]] = []
        self._local_names: dict[Scope, set[str]] = defaultdict(set)
        self._class_scopes: set[Scope] = set()
        self._functions: list[tuple[Scope, str, Function]] = []
        self._visit_children(tree, ())
        self.by_node: dict[ast.AST, Variable] = {
            node: self._resolve(scope, name) for node, scope, name in self._names
        }
        self.functions: set[Variable] = set()
        self.bindings: list[Binding] = []
        self._functions_by_name: dict[str, list[Function]] = defaultdict(list)
        for scope, name, function in self._functions:
            targets = {self._resolve(scope, name)}
            if scope in self._class_scopes:
                targets.add(((), f"self.{name}"))
            self.functions |= targets
            self.bindings.append(Binding(frozenset(targets), function))
            self._functions_by_name[name].append(function)
        for node in ast.walk(tree):
            self._add_bindings(node)

    @property
    def function_names(self) -> Collection[str]:
        """The names of the test's own functions and methods."""
        return self._functions_by_name.keys()

    def list_variables(self, node: ast.AST) -> frozenset[Variable]:
        """Return all variables in a piece of code."""
        return frozenset(self.by_node[part] for part in ast.walk(node) if part in self.by_node)

    def _visit_children(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child, scope)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._visit_function(node, scope)
                return
            case ast.ClassDef():
                self._local_names[scope].add(node.name)
                self._class_scopes.add((*scope, node.name))
                scope = (*scope, node.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                self._functions.append((scope, name, function))
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                self._local_names[scope].add(name)
                self._names.append((node, scope, name))
            case ast.Name(id=name):
                if name != "self":  # its attributes are variables
                    self._names.append((node, scope, name))
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                self._names.append((node, scope, f"self.{attribute}"))
                return
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                self._local_names[scope].add(name)
                self._names.append((node, scope, name))
            case ast.Global(names=names):
                self._local_names[scope].difference_update(names)
        self._visit_children(node, scope)

    def _visit_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self._local_names[scope].add(function.name)
        self._functions.append((scope, function.name, function))
        defaults = (*function.args.defaults, *filter(None, function.args.kw_defaults))
        for outer_part in (*function.decorator_list, *defaults):
            self._visit(outer_part, scope)
        for part in (*_list_arguments(function), *function.body):
            self._visit(part, (*scope, function.name))

    def _resolve(self, scope: Scope, name: str) -> Variable:
        """Return the variable that a name means in a scope."""
        if name.startswith("self."):
            return (), name
        own_scope = scope
        while scope and (
            name not in self._local_names[scope] or (scope in self._class_scopes and scope != own_scope)
        ):
            scope = scope[:-1]
        return scope, name

    def _add_bindings(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                self._bind(target, value)
            case (
                ast.For(target=target, iter=value)
                | ast.AsyncFor(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                self._bind_items(target, value)
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    self._bind(case.pattern, subject)
            case ast.Call():
                self._bind_call(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                arguments = [*node.args.posonlyargs, *node.args.args]
                for argument, default in zip(reversed(arguments), reversed(node.args.defaults), strict=False):
                    self._bind(argument, default)
                for argument, keyword_default in zip(
                    node.args.kwonlyargs, node.args.kw_defaults, strict=True
                ):
                    if keyword_default is not None:
                        self._bind(argument, keyword_default)

    def _bind(self, target: ast.AST, value: ast.AST, *, separates: bool = False) -> None:
        if isinstance(target, SEQUENCES) and isinstance(value, SEQUENCES):
            parts = [*target.elts, *value.elts]
            if len(target.elts) == len(value.elts) and not any(isinstance(p, ast.Starred) for p in parts):
                for part, part_value in zip(target.elts, value.elts, strict=True):
                    self._bind(part, part_value)
                return
        variables = self._list_targets(target)
        if isinstance(target, ast.Name) and target in self.by_node:
            scope, name = self.by_node[target]
            if scope in self._class_scopes:
                variables |= {((), f"self.{name}")}
        self.bindings.append(Binding(variables, value, separates))

    def _list_targets(self, target: ast.AST) -> frozenset[Variable]:
        """Return the variables that an assignment changes; for `table[key]` that is `table`."""
        if isinstance(target, (ast.Subscript, ast.Starred)):
            return self._list_targets(target.value)
        return self.list_variables(target)

    def _bind_items(self, target: ast.AST, iterable: ast.expr) -> None:
        """Bind the target of a loop."""
        if isinstance(target, SEQUENCES) and isinstance(iterable, ast.Call):
            name = iterable.func.id if isinstance(iterable.func, ast.Name) else ""
            if name == "zip" and len(iterable.args) == len(target.elts):
                for part, argument in zip(target.elts, iterable.args, strict=True):
                    self._bind_items(part, argument)
                return
            if name == "enumerate" and len(target.elts) == 2 and iterable.args:
                self._bind_items(target.elts[1], iterable.args[0])
                return
        separates = isinstance(target, SEQUENCES) and not isinstance(iterable, ast.Call)
        self.bindings.append(Binding(self._list_targets(target), iterable, separates))

    def _bind_call(self, call: ast.Call) -> None:
        """Bind the arguments of a function of the test, and the object whose method receives arguments."""
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            receiver = self._list_targets(call.func.value)
            self.bindings += [Binding(receiver, value) for value in values]
        for function in self._functions_by_name.get(_get_last_name(call.func), ()):
            self._bind_arguments(function, call)
        for value in values:  # as in `map(check, cases)`
            for function in self._functions_by_name.get(_get_last_name(value), ()):
                for argument in _list_arguments(function):
                    self.bindings += [Binding(self.list_variables(argument), other) for other in values]

    def _bind_arguments(self, function: Function, call: ast.Call) -> None:
        arguments = [*function.args.posonlyargs, *function.args.args]
        if arguments and arguments[0].arg in ("self", "cls") and isinstance(call.func, ast.Attribute):
            del arguments[0]
        by_name = {argument.arg: argument for argument in (*arguments, *function.args.kwonlyargs)}
        everything: Iterable[ast.arg] = _list_arguments(function)
        for position, value in enumerate(call.args):
            is_plain = position < len(arguments) and not any(
                isinstance(earlier, ast.Starred) for earlier in call.args[: position + 1]
            )
            for argument in (arguments[position],) if is_plain else everything:
                self._bind(argument, value)
        for keyword in call.keywords:
            known = by_name.get(keyword.arg or "")
            for argument in (known,) if known is not None else everything:
                self._bind(argument, keyword.value)


def _list_arguments(function: Function) -> list[ast.arg]:
    arguments = function.args
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variadic]


def _get_last_name(node: ast.AST) -> str:
    """Return the name of a variable, or the last name of an attribute such as `self.check`; else empty."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
