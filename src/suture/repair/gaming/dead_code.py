"""Code that can never run: statements behind an exit, and conditions that are always the same."""

from __future__ import annotations

import ast

EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def dead_parts(tree: ast.AST) -> int:
    """How many there are of both: a change that adds one takes behaviour away without deleting it."""
    return sum(_behind_exits(node) + _is_settled(node) for node in ast.walk(tree))


def _behind_exits(node: ast.AST) -> int:
    """Statements behind an exit in the same block; a `yield` there makes the function a generator."""
    count = 0
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        first = next((n for n, statement in enumerate(block) if isinstance(statement, EXITS)), len(block))
        for statement in block[first + 1 :]:
            inner = ast.walk(statement)
            count += not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in inner)
    return count


def _is_settled(node: ast.AST) -> bool:
    """Whether a condition has a part whose truth is known: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _truth_known(node.test)
    if isinstance(node, ast.While):
        return _truth_known(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        same = len({ast.dump(value) for value in node.values}) < len(node.values)
        return same or any(_truth_known(value) for value in node.values[:-1])
    return False


def _truth_known(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _truth_known(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        alike = len({ast.dump(side) for side in sides}) < len(sides) and not _calls(test)
        of_self = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return alike or of_self or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))
