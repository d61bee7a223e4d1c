"""Deciding which calls of a test must not change the test's arguments.

Runs inside the sandbox. Arguments travel back from the candidate, so that a test sees what a function does to
a list in place. But if a test computes the expected value from its arguments, as `assert f(x) == sorted(x)`
does, a candidate that empties the list would choose the value that it is compared with. In such a call the
test keeps its arguments as they were.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
APPLIES = frozenset(("filter", "map", "partial", "reduce", "starmap", "submit"))
"""Functions that call their first argument with the other arguments."""
IDENTITY = frozenset(("assertIs", "assertIsNot"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
INNER_SCOPES = (*FUNCTIONS, ast.ClassDef)
"""Nodes whose statements belong to a scope of their own."""


def find_protected_lines(tree: ast.Module) -> frozenset[int]:
    """Return the lines whose calls leave their arguments unchanged.

    These are calls with a variable from which the test then computes the value that it compares the answer
    with, and which it inspects in no other way. A test inspects the changed variable if it compares it on its
    own or with `is`, if it returns it, or if it ignores the answer.
    """
    nodes = list(ast.walk(tree))
    program = _Program(nodes)
    keeping: set[int] = set()
    crossing: set[str] = set()
    through: dict[str, set[int]] = {}
    for scope in [node for node in nodes if isinstance(node, (ast.Module, *FUNCTIONS))]:
        steps = list(_statements(scope))
        for position, step in enumerate(steps):
            calls = program.calls(step.exprs)
            callees = {_callee(call) for call in calls}
            if _ArgumentUse(program, calls).keeps(steps[position:]):
                keeping |= step.lines
                through |= {name: program.lines_of[name] for name in callees & program.lines_of.keys()}
            else:
                crossing |= callees
    return frozenset(keeping.union(*(lines for name, lines in through.items() if name not in crossing)))


@dataclass(frozen=True)
class _Statement:
    """A statement, or the head of a compound one: what it evaluates and what it assigns."""

    lines: set[int]
    exprs: list[ast.expr]
    targets: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    kind: str = ""


def _statements(scope: ast.AST) -> Iterator[_Statement]:
    """Yield a scope's statements in order, without inner functions; of compound statements their heads."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, INNER_SCOPES):
            continue
        if isinstance(child, (ast.stmt, ast.withitem, ast.match_case)):
            heads = [node for node in ast.iter_child_nodes(child) if isinstance(node, ast.expr)]
            if heads:
                lines = {n for h in heads for n in range(h.lineno, (h.end_lineno or h.lineno) + 1)}
                yield _Statement(lines, heads, list(_assignments(child)), type(child).__name__)
        yield from _statements(child)


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield targets with their assigned values; pairs of tuples and of `zip` one by one."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
        ):
            pairs = [(target, value)]
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            pairs = [(target, value)]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target), args=given)):
            pairs = [(target, value) for value in given]  # `got.append(f(x))`
        case _:
            pairs = []
    for target, value in pairs:
        parts = value.args if isinstance(value, ast.Call) and _name_of(value) == "zip" else []
        parts = value.elts if isinstance(value, ast.Tuple) else parts
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            yield from zip(target.elts, parts, strict=True)
        else:
            yield target, value


class _Program:
    """Tells which names of a program are its own and which are the candidate's."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        nodes = list(nodes)
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        lambdas = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        imports = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
        named = {(a.asname or a.name).partition(".")[0] for node in imports for a in node.names}
        self.same = [
            {_variable(node.value), *map(_variable, node.targets)}
            for node in nodes
            if isinstance(node, ast.Assign) and _variable(node.value)
        ]
        """Sets of names that refer to the same object."""
        self.own = BUILTINS | named | {node.name for node in functions} | lambdas.keys()
        self.lines_of: dict[str, set[int]] = {}
        """Name of a function of the test -> lines on which it calls the candidate."""
        bodies: list[tuple[str, ast.AST]] = [(node.name, node) for node in functions]
        bodies += lambdas.items()
        for _ in range(2):  # one function of the test may call another
            for name, body in bodies:
                exprs = [node for node in ast.walk(body) if isinstance(node, ast.expr)]
                lines = {line for call in self.calls(exprs, deep=False) for line in _lines(call)}
                if lines:
                    self.lines_of[name] = lines

    def calls(self, exprs: Iterable[ast.expr], *, deep: bool = True) -> list[ast.Call]:
        """Return calls of the candidate, including those through `map` or a function of the test."""
        found = [node for expr in exprs for node in (ast.walk(expr) if deep else (expr,))]
        return [node for node in found if isinstance(node, ast.Call) and self._is_candidates(node)]

    def _is_candidates(self, call: ast.Call) -> bool:
        if _name_of(call) in APPLIES:
            return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id not in self.own
        if not isinstance(call.func, ast.Name):
            return False
        return call.func.id not in self.own or call.func.id in self.lines_of


class _ArgumentUse:
    """How a test uses the variables that it passed to the calls of one statement.

    Args:
        program: The test program.
        calls: The calls of the candidate in the statement.
    """

    def __init__(self, program: _Program, calls: list[ast.Call]) -> None:
        self._program = program
        self._callees = {_callee(call) for call in calls}
        given = {name for call in calls for name in map(_variable, _passed_variables(call)) if name}
        self._given = given.union(*(same for same in program.same if same & given))
        self._answers: set[str] = set()
        self._computes = self._looks = False

    def keeps(self, steps: list[_Statement]) -> bool:
        """Whether the test uses the variables only to compute what it compares with the answer.

        Args:
            steps: The statement and all statements after it.
        """
        for position, step in enumerate(steps):
            if not self._given:
                break
            for expr in step.exprs:
                self._read(expr, step.kind, is_first=not position)
            self._follow(step, is_first=not position)
        return self._computes and not self._looks

    def _follow(self, step: _Statement, *, is_first: bool) -> None:
        for target, value in step.targets:
            names = {_variable(node) for node in ast.walk(target)} - {""}
            if self._is_answer(value):
                self._answers |= names
                self._given -= names
            elif self._is_given(value):
                self._given |= names
            elif not is_first and isinstance(target, (ast.Name, ast.Tuple)) and step.kind != "Expr":
                self._given -= names  # the name holds another value from here on
                self._answers -= names

    def _read(self, expr: ast.expr, kind: str, *, is_first: bool) -> None:
        is_answer = self._is_answer(expr)
        if kind in ("Assert", "If", "While") and self._is_given(expr) and not is_answer:
            self._looks = True
        if kind == "Return" and _variable(expr) in self._given:
            self._looks = True
        if kind == "Expr" and is_first and isinstance(expr, (ast.Call, ast.ListComp)) and self._drops(expr):
            self._looks = True
        for node in ast.walk(expr):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                    self._compare([left, right], by_identity=isinstance(op, (ast.Is, ast.IsNot)))
            elif isinstance(node, ast.Call) and not self._is_call(node):
                name = _name_of(node)
                if len(node.args) > 1:
                    self._compare(
                        node.args, by_identity=name in IDENTITY, is_call=not name.startswith("assert")
                    )
                elif name.startswith("assert") and any(map(self._is_given, node.args)):
                    self._looks = self._looks or not any(map(self._is_answer, node.args))

    def _compare(self, sides: list[ast.expr], *, by_identity: bool, is_call: bool = False) -> None:
        answers = [self._is_answer(side) for side in sides]
        given = [
            self._is_given(side) and not is_answer for side, is_answer in zip(sides, answers, strict=True)
        ]
        if any(given) and (by_identity or not any(answers)):
            self._looks = self._looks or not is_call
        elif any(given):
            self._computes = True

    def _drops(self, expr: ast.expr) -> bool:
        """Whether the answer of a call is ignored."""
        return self._is_call(expr.elt if isinstance(expr, ast.ListComp) else expr)

    def _is_call(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and _callee(node) in self._callees
            and bool(self._program.calls([node], deep=False))
        )

    def _is_answer(self, expr: ast.expr) -> bool:
        return any(
            self._is_call(node) or (_is_load(node) and _variable(node) in self._answers)
            for node in ast.walk(expr)
        )

    def _is_given(self, expr: ast.AST) -> bool:
        """Whether an expression contains one of the variables other than as an argument of these calls."""
        if self._is_call(expr):
            return False
        if _is_load(expr) and _variable(expr) in self._given:
            return True
        return any(self._is_given(child) for child in ast.iter_child_nodes(expr))


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)


def _lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _callee(call: ast.Call) -> str:
    return _variable(call.args[0]) if _name_of(call) in APPLIES and call.args else _variable(call.func)


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else _variable(call.func)


def _variable(node: ast.AST) -> str:
    """Return the name of a variable or of an attribute such as `self.rows`; empty for any other node."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _passed_variables(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the variables that a call receives as they are, not values computed from them."""
    waiting: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while waiting:
        node = waiting.pop()
        if _variable(node):
            yield node
        elif isinstance(node, (ast.Starred, ast.Subscript)):
            waiting.append(node.value)
        elif isinstance(node, (ast.List, ast.Tuple)):
            waiting += node.elts
