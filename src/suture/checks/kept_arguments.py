"""Which calls of a test are compared with their arguments as they were before the call.

Runs behind the wall. Arguments travel back, so that a test sees what a function does to a list in place. But
where a test computes what it expects from what it passed in, as `assert f(x) == sorted(x)` does, a program
that empties the list would choose what it is compared with. There the test gets a copy's answer.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

__all__ = ["keeping_lines"]

COMPARES_TWO = frozenset(
    (
        *("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual"),
        *("assertTupleEqual", "assertSequenceEqual", "assertCountEqual", "assertAlmostEqual"),
        *("assertGreater", "assertGreaterEqual", "assertLess", "assertLessEqual", "assertNotEqual"),
    )
)
BUILTINS = frozenset(dir(builtins))
SIMPLE = (ast.Assign, ast.AnnAssign, ast.Assert, ast.Expr, ast.Return)


def keeping_lines(tree: ast.Module) -> frozenset[int]:
    """The lines whose calls leave their arguments as they are.

    These are the calls with a variable that the test later only uses to compute what it compares the answer
    with: each time on the other side of a comparison than the answer. One other use of the variable (on its
    own, by `is`, returned, in a loop) means that the test looks at what became of it.
    """
    lines: set[int] = set()
    nodes = list(ast.walk(tree))
    own = BUILTINS | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for scope in [node for node in nodes if isinstance(node, (ast.Module, ast.FunctionDef))]:
        statements = list(_statements(scope))
        for position, statement in enumerate(statements):
            if isinstance(statement, SIMPLE) and _keeps(statement, statements[position + 1 :], own):
                lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return frozenset(lines)


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """The statements of a scope in order, and the expressions of the compound ones; no inner functions."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(child, (*SIMPLE, ast.expr, ast.AugAssign, ast.Raise, ast.Delete)):
            yield child
        else:
            yield from _statements(child)


def _keeps(statement: ast.stmt, later: list[ast.AST], own: frozenset[str]) -> bool:
    calls = _calls(statement, own)
    callees = {_callee(call) for call in calls}
    given = {name for call in calls for name in _passed(call)}
    if not given:
        return False
    answers = _assigned(statement)
    kept = False
    for place in (statement, *later):
        again = [call for call in _calls(place, own) if _callee(call) in callees]
        for name in given:
            loads = _loads(place, name)
            if not loads:
                continue
            passed = {id(node) for call in again for node in _nodes_passed(call) if _variable(node) == name}
            giving = [call for call in again if name in _passed(call)] if place is statement else []
            compared = {id(node) for node in _compared(place, name, answers, giving)}
            if any(id(node) not in compared | passed for node in loads):
                return False
            kept = kept or bool(compared)
        if place is not statement and isinstance(place, ast.stmt):
            if given & _assigned(place):
                break  # another value from here on
            answers |= _assigned(place) if any(_loads(place, answer) for answer in answers) else set()
    return kept


def _calls(place: ast.AST, own: frozenset[str]) -> list[ast.Call]:
    """Calls of plain names that are neither builtins nor the test's own: of the candidate."""
    calls = [node for node in ast.walk(place) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id not in own]


def _callee(call: ast.Call) -> str:
    return _variable(call.func)


def _variable(node: ast.AST) -> str:
    """The name of a variable, also of one such as `self.rows`; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _nodes_passed(call: ast.Call) -> Iterator[ast.expr]:
    """The variables that a call is given as they are, not a value computed from them."""
    waiting: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while waiting:
        node = waiting.pop()
        if _variable(node):
            yield node
        elif isinstance(node, (ast.Starred, ast.Subscript)):
            waiting.append(node.value)
        elif isinstance(node, (ast.List, ast.Tuple)):
            waiting += node.elts


def _passed(call: ast.Call) -> set[str]:
    return {_variable(node) for node in _nodes_passed(call)}


def _assigned(statement: ast.AST) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    return {_variable(node) for target in targets for node in ast.walk(target)} - {""}


def _loads(place: ast.AST, name: str) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(place)
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and _variable(node) == name
    ]


def _compared(place: ast.AST, name: str, answers: set[str], giving: list[ast.Call]) -> list[ast.AST]:
    """Loads of a name on the other side of a comparison than an answer of the call."""
    found: list[ast.AST] = []
    for left, right in _comparisons(place):
        for side, other in ((left, right), (right, left)):
            if _answers(other, answers, giving) and not _answers(side, answers, giving):
                found += _loads(side, name)
    return found


def _answers(side: ast.expr, answers: set[str], giving: list[ast.Call]) -> bool:
    parts = {id(node) for node in ast.walk(side)} if giving else set()
    return any(id(call) in parts for call in giving) or any(_loads(side, answer) for answer in answers)


def _comparisons(place: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(place):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                if not isinstance(op, (ast.Is, ast.IsNot)):
                    yield left, right
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and _method(node) in COMPARES_TWO:
            yield node.args[0], node.args[1]


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
