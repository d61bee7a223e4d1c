"""Count statements that never run, and conditions that are always the same."""

from __future__ import annotations

import ast

PURE_BUILTINS = frozenset(
    ("abs", "bool", "float", "hash", "id", "int", "isinstance", "len", "ord", "repr", "str", "type")
)
"""Builtins that give the same answer for the same argument and leave the argument as it is."""
EXIT_STATEMENTS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def count_dead_code(tree: ast.AST) -> int:
    """Count statements after an exit and constant conditions.

    A change that adds one of them removes behaviour without deleting any code.
    """
    return sum(_count_statements_after_exit(node) + _has_constant_condition(node) for node in ast.walk(tree))


def _count_statements_after_exit(node: ast.AST) -> int:
    """Count statements after an exit in their block, except a `yield`, which makes a generator."""
    count = 0
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        exits = (index for index, statement in enumerate(block) if isinstance(statement, EXIT_STATEMENTS))
        exit_index = next(exits, len(block))
        for statement in block[exit_index + 1 :]:
            nodes = ast.walk(statement)
            count += not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
    return count


def _has_constant_condition(node: ast.AST) -> bool:
    """Whether part of a condition is always true or always false: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _has_known_truth(node.test)
    if isinstance(node, ast.While):  # `while True` is usual
        return _has_known_truth(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        has_duplicates = len({ast.dump(value) for value in node.values}) < len(node.values)
        return has_duplicates or any(_has_known_truth(value) for value in node.values[:-1])
    return False


def _has_known_truth(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _has_known_truth(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        has_equal_sides = len({ast.dump(side) for side in sides}) < len(sides) and not _calls_impure(test)
        is_self_identity = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return has_equal_sides or is_self_identity or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls_impure(node: ast.expr) -> bool:
    """Whether an expression calls something that may answer differently next time; `len` does not."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(not (isinstance(call.func, ast.Name) and call.func.id in PURE_BUILTINS) for call in calls)
