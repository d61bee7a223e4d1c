"""Which names a scope has, and what kind of value they seem to hold.

The kinds are guesses unless a run of the tests showed them. They order candidates, and exclude none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, get_args

from suture.mutation.tuning import (
    MAX_FIRST_VARIABLES,
    MAX_LAST_VARIABLES,
    OUTER_SCOPE_FACTOR,
    UNKNOWN_KIND_FACTOR,
    UNLIKE_KIND_FACTOR,
)
from suture.project.python_source.scopes import walk_own_nodes

ValueKind = Literal["number", "sequence", "set", "mapping", "text", "callable", "unknown"]
ObservedKinds = Mapping[int, Mapping[str, ValueKind]]
"""First line of a function, its decorators included -> variable -> the kind of its values in the runs of the tests."""

# Each of these tables: a builtin or class that is called, a method that is called on a variable, or (below) the
# type of a node -> the kind of the result, variable or node.
KIND_BY_CALL: dict[str, ValueKind] = {
    **dict.fromkeys(("len", "int", "abs", "float", "sum", "round", "ord", "hash"), "number"),
    **dict.fromkeys(("list", "sorted", "tuple", "reversed", "range"), "sequence"),
    **dict.fromkeys(("deque", "zip", "enumerate"), "sequence"),
    **dict.fromkeys(("set", "frozenset"), "set"),
    **dict.fromkeys(("dict", "defaultdict", "Counter", "OrderedDict"), "mapping"),
    **dict.fromkeys(("str", "repr", "chr", "format"), "text"),
}
KIND_BY_METHOD: dict[str, ValueKind] = {
    **dict.fromkeys(("append", "extend", "insert", "sort", "reverse", "popleft", "appendleft"), "sequence"),
    **dict.fromkeys(("add", "discard", "union", "difference", "issubset"), "set"),
    **dict.fromkeys(("items", "keys", "values", "get", "setdefault"), "mapping"),
    **dict.fromkeys(("split", "strip", "lower", "upper", "startswith", "endswith", "join"), "text"),
}

NUMERIC_OPERATORS = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
"""Operators whose result is probably a number. `+` is not one, because it concatenates too."""


@dataclass(frozen=True, kw_only=True)
class ScopeNames:
    """The variables of one scope.

    Attributes:
        kinds: Variable -> the kind of value it seems to hold; parameters first, then in the order of lines.
        observed: Variable -> the kind of its values in the runs of the tests, where that is known.
        bound_at: Variable -> the first line that binds it.
        outer: Variables of the functions around this scope.
    """

    kinds: dict[str, ValueKind] = field(default_factory=dict)
    observed: Mapping[str, ValueKind] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    bound_at: dict[str, int] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()

    def fitting(self, kind: ValueKind, line: int) -> Iterator[tuple[str, float]]:
        """Yield variables that may be bound before a line, each with how well it fits a kind, in (0, 1]."""
        for name in self.bound_before(line):
            other = self.kinds[name]
            nearness = OUTER_SCOPE_FACTOR if name in self.outer else 1.0
            if self.is_unlike(name, kind):
                yield name, nearness * UNLIKE_KIND_FACTOR
            elif kind == "unknown" or other == "unknown":
                yield name, nearness * UNKNOWN_KIND_FACTOR
            else:
                yield name, nearness * (1.0 if kind == other else UNLIKE_KIND_FACTOR)

    def is_unlike(self, name: str, kind: ValueKind) -> bool:
        """Return whether the tests showed that a variable holds values of another kind.

        That they showed the same kind is no reason to prefer the variable: those of most variables are not known.
        """
        return kind != "unknown" and self.observed.get(name, kind) != kind

    def bound_before(self, line: int) -> list[str]:
        """Return variables that may be bound before a line; of very many, those bound first and last."""
        names = [name for name in self.kinds if self.bound_at.get(name, 0) <= line]
        if len(names) <= MAX_FIRST_VARIABLES + MAX_LAST_VARIABLES:
            return names
        by_line = sorted(names, key=lambda name: self.bound_at.get(name, 0))
        chosen = {*by_line[:MAX_FIRST_VARIABLES], *by_line[-MAX_LAST_VARIABLES:]}
        return [name for name in names if name in chosen]


def is_value_kind(text: str) -> TypeGuard[ValueKind]:
    """Return whether a text from a report is a kind of value."""
    return text in get_args(ValueKind)


def collect_scope_names(
    scope: ast.AST, above: ScopeNames | None, observed: Mapping[str, ValueKind]
) -> ScopeNames:
    """Return the variables of a function with those of the functions around it, or of a module.

    Args:
        above: The variables of the function around it; `None` if there is none.
        observed: The kinds of some variables' values in the runs of the tests.
    """
    kinds: dict[str, ValueKind] = {}
    bound_at: dict[str, int] = {}
    parameters: list[str] = []
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = scope.args
        parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        kinds.update(dict.fromkeys(parameters, "unknown"))
        if arguments.vararg is not None:
            kinds[arguments.vararg.arg] = "sequence"
        if arguments.kwarg is not None:
            kinds[arguments.kwarg.arg] = "mapping"
        bound_at.update(dict.fromkeys(kinds, scope.lineno))
    nodes = list(walk_own_nodes(getattr(scope, "body", [])))
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            kinds.setdefault(node.id, "unknown")
            bound_at[node.id] = min(bound_at.get(node.id, node.lineno), node.lineno)
    for node in nodes:
        for name, kind in _evidence(node):
            if kinds.get(name) == "unknown":
                kinds[name] = kind
    outer = frozenset(above.kinds if above is not None else ()) - kinds.keys()
    if above is not None:
        kinds.update((name, kind) for name, kind in above.kinds.items() if name in outer)
        bound_at.update((name, above.bound_at.get(name, 0)) for name in outer)
    if above is not None:
        observed = {**{name: kind for name, kind in above.observed.items() if name in outer}, **observed}
    return ScopeNames(
        kinds=kinds, observed=observed, parameters=tuple(parameters), bound_at=bound_at, outer=outer
    )


KIND_BY_NODE: dict[type[ast.AST], ValueKind] = {
    **dict.fromkeys((ast.List, ast.ListComp, ast.Tuple), "sequence"),
    **dict.fromkeys((ast.Set, ast.SetComp), "set"),
    **dict.fromkeys((ast.Dict, ast.DictComp), "mapping"),
    ast.JoinedStr: "text",
}


def guess_kind(node: ast.AST, names: ScopeNames | None = None) -> ValueKind:
    """Return the kind of value that an expression seems to have."""
    match node:
        case ast.Constant(value=value):
            return _kind_of_value(value)
        case ast.UnaryOp(op=ast.USub()):
            return "number"
        case ast.Call(func=ast.Name(id=name)):
            return KIND_BY_CALL.get(name, "unknown")
        case ast.BinOp():
            return _kind_of_operation(node, names)
        case ast.Subscript(value=value, slice=ast.Slice()):
            return guess_kind(value, names)
        case ast.Name(id=name) if names is not None:
            return names.kinds.get(name, "unknown")
        case _:
            return KIND_BY_NODE.get(type(node), "unknown")


def _kind_of_value(value: object) -> ValueKind:
    if isinstance(value, bool):  # an instance of `int`, but not used as a number
        return "unknown"
    return "text" if isinstance(value, str) else "number" if isinstance(value, (int, float)) else "unknown"


def _kind_of_operation(node: ast.BinOp, names: ScopeNames | None) -> ValueKind:
    """Return the kind of `a + b` and the like; that of the other operand if one is a number, as in `[0] * n`."""
    inner = {guess_kind(node.left, names), guess_kind(node.right, names)} - {"unknown"}
    if inner and inner <= {"number", "sequence", "text", "set"}:
        return sorted(inner - {"number"} or inner)[0]
    return "number" if isinstance(node.op, NUMERIC_OPERATORS) else "unknown"


def _evidence(node: ast.AST) -> Iterator[tuple[str, ValueKind]]:
    """Yield what a node reveals about the kinds of its variables."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AugAssign(target=ast.Name(id=name), value=value)
        ):
            if (kind := guess_kind(value)) != "unknown":
                yield name, kind
        case ast.For(target=target, iter=ast.Call(func=ast.Name(id=maker))):
            counter = target.elts[0] if isinstance(target, ast.Tuple) and maker == "enumerate" else target
            if maker in ("range", "enumerate") and isinstance(counter, ast.Name):
                yield counter.id, "number"
        case ast.Call():
            yield from _evidence_of_call(node)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()):
            yield name, "sequence"
        # `*` gives no evidence: in `[0] * n` and `"-" * n` the other operand is not a number.
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.Mult):
            # Sets have `-` too, but numbers are far more common; `%` also formats strings, and `+` concatenates.
            if "number" in (guess_kind(left), guess_kind(right)) or isinstance(op, (ast.Sub, ast.FloorDiv)):
                yield from ((side.id, "number") for side in (left, right) if isinstance(side, ast.Name))
        case ast.Compare(left=left, comparators=[right]) if "number" in (guess_kind(left), guess_kind(right)):
            yield from ((side.id, "number") for side in (left, right) if isinstance(side, ast.Name))
        case _:
            pass


def _evidence_of_call(node: ast.Call) -> Iterator[tuple[str, ValueKind]]:
    """Yield what a call reveals about the kinds of variables: of its object, its arguments or its function."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in KIND_BY_METHOD:
            yield name, KIND_BY_METHOD[method]
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            yield name, "sequence"
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            yield from ((a.id, "number") for a in arguments if isinstance(a, ast.Name))
        case ast.Call(func=ast.Name(id=name)):
            yield name, "callable"
        case _:
            pass
