"""Deciding which calls of a test must not change the test's arguments.

A test sees what a function does to a list in place, because arguments travel back from the candidate. But if
a test computes the expected value from its arguments, as `assert f(x) == sorted(x)` does, a candidate that
empties the list would choose the value that it is compared with. In such a call the test's arguments are
*protected*: they stay as they were.

Runs inside the sandbox.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
APPLYING_FUNCTIONS = frozenset(("filter", "map", "partial", "reduce", "starmap", "submit"))
"""Functions that call their first argument with the other arguments."""
IDENTITY_ASSERTS = frozenset(("assertIs", "assertIsNot"))
"""Asserts that compare objects by identity."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
INNER_SCOPES = (*FUNCTIONS, ast.ClassDef)
"""Nodes whose statements belong to a scope of their own."""


def find_protected_lines(tree: ast.Module) -> frozenset[int]:
    """Return the lines of a test whose calls of the candidate must leave their arguments unchanged.

    A call is protected if the test computes the value that it compares the answer with from a passed variable,
    and if it does not inspect that variable in another way. A test inspects a variable if it compares it on
    its own or with `is`, if it returns it, or if it ignores the answer of the call.

    A function of the test that calls the candidate is protected if all its callers are.
    """
    nodes = list(ast.walk(tree))
    program = _Program(nodes)
    protected: set[int] = set()
    unprotected_callees: set[str] = set()
    lines_by_function: dict[str, set[int]] = {}
    for scope in [node for node in nodes if isinstance(node, (ast.Module, *FUNCTIONS))]:
        statements = list(_list_statements(scope))
        for position, statement in enumerate(statements):
            calls = program.find_calls(statement.expressions)
            callees = {_get_callee(call) for call in calls}
            if _ArgumentUse(program, calls).must_protect(statements[position:]):
                protected |= statement.lines
                for name in callees & program.call_lines.keys():
                    lines_by_function[name] = program.call_lines[name]
            else:
                unprotected_callees |= callees
    for name, lines in lines_by_function.items():
        if name not in unprotected_callees:
            protected |= lines
    return frozenset(protected)


@dataclass(frozen=True)
class _Statement:
    """A statement, or the head of a compound one such as `for x in xs:`.

    Attributes:
        assignments: Pairs (target, value).
        kind: The name of the statement's class in `ast`.
    """

    lines: set[int]
    expressions: list[ast.expr]
    assignments: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    kind: str = ""


def _list_statements(scope: ast.AST) -> Iterator[_Statement]:
    """Yield a scope's statements in order, without those of inner functions and classes."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, INNER_SCOPES):
            continue
        if isinstance(child, (ast.stmt, ast.withitem, ast.match_case)):
            expressions = [node for node in ast.iter_child_nodes(child) if isinstance(node, ast.expr)]
            if expressions:
                lines = {line for expression in expressions for line in _get_lines(expression)}
                yield _Statement(lines, expressions, list(_list_assignments(child)), type(child).__name__)
        yield from _list_statements(child)


def _list_assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (target, value) of each assignment; `a, b = x, y` and `for a, b in zip(x, y)` give two."""
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
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target), args=arguments)):
            pairs = [(target, argument) for argument in arguments]  # as in `results.append(f(x))`
        case _:
            pairs = []
    for target, value in pairs:
        parts = value.args if isinstance(value, ast.Call) and _get_function_name(value) == "zip" else []
        parts = value.elts if isinstance(value, ast.Tuple) else parts
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            yield from zip(target.elts, parts, strict=True)
        else:
            yield target, value


class _Program:
    """A test program: which calls in it are calls of the candidate.

    Attributes:
        aliases: Sets of variables that refer to the same object.
        own_names: Names that the test defines or imports, and builtins. Any other name is the candidate's.
        call_lines: Name of a function of the test -> lines on which it calls the candidate.
    """

    def __init__(self, nodes: list[ast.AST]) -> None:
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        lambdas = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        imports = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
        imported_names = {
            (alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names
        }
        self.aliases = [
            {_get_variable(node.value), *map(_get_variable, node.targets)}
            for node in nodes
            if isinstance(node, ast.Assign) and _get_variable(node.value)
        ]
        self.own_names = BUILTINS | imported_names | {node.name for node in functions} | lambdas.keys()
        self.call_lines: dict[str, set[int]] = {}
        bodies: list[tuple[str, ast.AST]] = [(node.name, node) for node in functions]
        bodies += lambdas.items()
        for _ in range(2):  # twice, because one function of the test may call another
            for name, body in bodies:
                expressions = [node for node in ast.walk(body) if isinstance(node, ast.expr)]
                calls = [node for node in expressions if self.is_candidate_call(node)]
                lines = {line for call in calls for line in _get_lines(call)}
                if lines:
                    self.call_lines[name] = lines

    def find_calls(self, expressions: Iterable[ast.expr]) -> list[ast.Call]:
        """Return the calls of the candidate in some expressions."""
        nodes = (node for expression in expressions for node in ast.walk(expression))
        return [node for node in nodes if isinstance(node, ast.Call) and self.is_candidate_call(node)]

    def is_candidate_call(self, node: ast.AST) -> bool:
        """Whether a node calls the candidate, also through `map` or through a function of the test."""
        if not isinstance(node, ast.Call):
            return False
        if _get_function_name(node) in APPLYING_FUNCTIONS:
            function = node.args[0] if node.args else None
            return isinstance(function, ast.Name) and function.id not in self.own_names
        if not isinstance(node.func, ast.Name):
            return False
        return node.func.id not in self.own_names or node.func.id in self.call_lines


class _ArgumentUse:
    """How a test uses the variables that it passed to the calls of one statement.

    Args:
        calls: The calls of the candidate in the statement.
    """

    def __init__(self, program: _Program, calls: list[ast.Call]) -> None:
        self._program = program
        self._callees = {_get_callee(call) for call in calls}
        passed = {_get_variable(node) for call in calls for node in _list_passed_variables(call)} - {""}
        self._passed = passed.union(*(aliases for aliases in program.aliases if aliases & passed))
        self._answers: set[str] = set()
        """Variables that hold an answer of the candidate."""
        self._computes_expected = self._inspects = False

    def must_protect(self, statements: list[_Statement]) -> bool:
        """Whether the test uses the variables only to compute what it compares with the answer.

        Args:
            statements: The statement with the calls and all statements after it.
        """
        for position, statement in enumerate(statements):
            if not self._passed:
                break
            for expression in statement.expressions:
                self._read(expression, statement.kind, is_first=not position)
            self._follow_assignments(statement, is_first=not position)
        return self._computes_expected and not self._inspects

    def _follow_assignments(self, statement: _Statement, *, is_first: bool) -> None:
        for target, value in statement.assignments:
            names = {_get_variable(node) for node in ast.walk(target)} - {""}
            if self._contains_answer(value):
                self._answers |= names
                self._passed -= names
            elif self._contains_passed(value):
                self._passed |= names
            elif not is_first and isinstance(target, (ast.Name, ast.Tuple)) and statement.kind != "Expr":
                self._passed -= names  # the name holds another value from here on
                self._answers -= names

    def _read(self, expression: ast.expr, kind: str, *, is_first: bool) -> None:
        contains_answer = self._contains_answer(expression)
        if kind in ("Assert", "If", "While") and self._contains_passed(expression) and not contains_answer:
            self._inspects = True
        if kind == "Return" and _get_variable(expression) in self._passed:
            self._inspects = True
        if kind == "Expr" and is_first and self._ignores_answer(expression):
            self._inspects = True
        for node in ast.walk(expression):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                    self._compare([left, right], by_identity=isinstance(op, (ast.Is, ast.IsNot)))
            elif isinstance(node, ast.Call) and not self._is_followed_call(node):
                name = _get_function_name(node)
                if len(node.args) > 1:
                    is_assert = name.startswith("assert")
                    self._compare(node.args, by_identity=name in IDENTITY_ASSERTS, is_comparison=is_assert)
                elif name.startswith("assert") and any(map(self._contains_passed, node.args)):
                    self._inspects = self._inspects or not any(map(self._contains_answer, node.args))

    def _compare(self, sides: list[ast.expr], *, by_identity: bool, is_comparison: bool = True) -> None:
        """Note what the test does with the sides of a comparison, or the arguments of some other call."""
        have_answers = [self._contains_answer(side) for side in sides]
        has_passed = any(
            self._contains_passed(side) and not has_answer
            for side, has_answer in zip(sides, have_answers, strict=True)
        )
        if has_passed and not by_identity and any(have_answers):
            self._computes_expected = True
        elif has_passed and is_comparison:
            self._inspects = True

    def _ignores_answer(self, expression: ast.expr) -> bool:
        """Whether an expression statement is a call, or `[f(x) for x in xs]`, whose answer nobody reads."""
        return self._is_followed_call(expression.elt if isinstance(expression, ast.ListComp) else expression)

    def _is_followed_call(self, node: ast.AST) -> bool:
        """Whether a node calls a function that the statement's calls call too."""
        return (
            isinstance(node, ast.Call)
            and _get_callee(node) in self._callees
            and self._program.is_candidate_call(node)
        )

    def _contains_answer(self, expression: ast.expr) -> bool:
        return any(
            self._is_followed_call(node) or (_is_load(node) and _get_variable(node) in self._answers)
            for node in ast.walk(expression)
        )

    def _contains_passed(self, node: ast.AST) -> bool:
        """Whether an expression contains one of the variables other than as an argument of these calls."""
        if self._is_followed_call(node):
            return False
        if _is_load(node) and _get_variable(node) in self._passed:
            return True
        return any(self._contains_passed(child) for child in ast.iter_child_nodes(node))


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)


def _get_lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _get_callee(call: ast.Call) -> str:
    """Return the name of the called function; for `map(f, xs)` that is `f`."""
    if _get_function_name(call) in APPLYING_FUNCTIONS and call.args:
        return _get_variable(call.args[0])
    return _get_variable(call.func)


def _get_function_name(call: ast.Call) -> str:
    """Return the name of a call's function without what it is an attribute of, such as `assertEqual`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else _get_variable(call.func)


def _get_variable(node: ast.AST) -> str:
    """Return the name of a variable or of an attribute such as `self.rows`; empty for any other node."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _list_passed_variables(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the variables that a call receives as they are, not values computed from them."""
    unvisited: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while unvisited:
        node = unvisited.pop()
        if _get_variable(node):
            yield node
        elif isinstance(node, (ast.Starred, ast.Subscript)):
            unvisited.append(node.value)
        elif isinstance(node, (ast.List, ast.Tuple)):
            unvisited += node.elts
