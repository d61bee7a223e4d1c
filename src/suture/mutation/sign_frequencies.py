"""How usual the parts of expressions are: a rare sign is likelier to be the mistake than a usual one.

Shares in thousandths, counted in the standard library of CPython 3.11 without its tests: 14,000 comparisons,
10,700 binary operations (185 of nothing but numbers), 1,300 augmented assignments. What is not named was
seen hardly ever.
"""

from __future__ import annotations

import ast
import math

COMPARED = {
    "none": {"is": 543, "is not": 457},
    "bool": {"is": 939, "is not": 30, "!=": 30, "==": 20},
    "text": {"==": 808, "!=": 147, "in": 28, "not in": 7, ">=": 4, "<=": 3, "<": 2, ">": 1},
    "number": {"==": 354, ">": 181, "<": 180, ">=": 111, "!=": 88, "<=": 85},
    "display": {"in": 663, "not in": 215, "==": 72, "!=": 24, ">=": 17, "<": 7},
    "text first": {"in": 764, "not in": 214, "==": 11, "<=": 11},
    "number first": {"<=": 401, ">": 244, "<": 127, "!=": 101, "==": 65, ">=": 42, "in": 20},
    "other": {
        **{"==": 272, "in": 192, "is": 125, "!=": 103, "not in": 77, "<": 75, ">": 49, "is not": 48},
        **{">=": 33, "<=": 28},
    },
}
BINARY = {
    "text": {"%": 589, "+": 369, "*": 42},
    "display": {"+": 787, "%": 105, "*": 94, "|": 12, "&": 3},
    "number": {
        **{"+": 422, "-": 236, "*": 98, "&": 54, "<<": 49, "//": 42, "%": 32, "/": 23, ">>": 20, "**": 15},
        **{"|": 6, "^": 3},
    },
    "numbers": {"<<": 400, "*": 292, "**": 146, "-": 124, "/": 27, "+": 11},
    "number first": {
        **{"*": 346, "-": 215, "**": 186, "+": 124, "<<": 42, "/": 38, "//": 29, "|": 9, "%": 4},
        **{"&": 2, "^": 2, ">>": 2},
    },
    "other": {
        **{"+": 484, "-": 171, "*": 124, "|": 59, "&": 53, "/": 36, "%": 34, "//": 19, "^": 8, "**": 6},
        **{">>": 4, "<<": 2},
    },
}
AUGMENTED = {
    "text": {"+": 989, "*": 11},
    "display": {"+": 933, "|": 33, "%": 33},
    "number": {"+": 714, "-": 229, "//": 22, "|": 10, "<<": 8, "*": 8, ">>": 3, "&": 2, "/": 2, "^": 2},
    "other": {
        **{"+": 686, "|": 127, "-": 76, "*": 33, "&": 24, "//": 21, "^": 13, "<<": 5, "%": 5, "/": 5},
        **{">>": 3, "**": 2},
    },
}
COUNTING = ("len", "int", "ord", "abs", "sum", "round")
UNSEEN = 5
"""Thousandths for what was not seen: a file has habits of its own."""
LEAST, MOST = 0.2, 5.0
"""How far usage in other code may lower and raise a change: what tests say must weigh more."""


def frequency_ratio(before: int, after: int) -> float:
    """How much likelier a change of a part is for what is usual in its place; 1 where both are alike.

    Args:
        before: How usual is what stands there, in thousandths.
        after: How usual is what would stand there.
    """
    return math.sqrt(min(MOST, max(LEAST, (after + UNSEEN) / (before + UNSEEN))))


def comparison_frequency(left: ast.expr, sign: str, right: ast.expr) -> int:
    """How usual a sign is between such operands, in thousandths."""
    kind = _kind(right)
    if kind == "other" and _kind(left) in ("text", "number"):
        kind = f"{_kind(left)} first"
    return COMPARED[kind].get(sign, 0)


def binary_frequency(left: ast.expr, sign: str, right: ast.expr) -> int:
    """How usual an operator is between such operands, in thousandths."""
    if _is_of_numbers(left) and _is_of_numbers(right):  # `60 * 60 * 24`
        return BINARY["numbers"].get(sign, 0)
    kinds = (_kind(left), _kind(right))
    for kind in ("text", "display"):
        if kind in kinds:
            return BINARY[kind].get(sign, 0)
    kind = "number" if kinds[1] == "number" else "number first" if kinds[0] == "number" else "other"
    return BINARY[kind].get(sign, 0)


def augmented_frequency(sign: str, value: ast.expr) -> int:
    """How usual an operator is in an augmented assignment of such a value, in thousandths."""
    kind = _kind(value)
    return AUGMENTED.get(kind, AUGMENTED["other"]).get(sign, 0)


def _is_of_numbers(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_of_numbers(node.left) and _is_of_numbers(node.right)
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _kind(node: ast.expr) -> str:
    while isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        node = node.operand
    if isinstance(node, ast.JoinedStr):
        return "text"
    if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return "display"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in COUNTING:
        return "number"
    if not isinstance(node, ast.Constant):
        return "other"
    if node.value is None:
        return "none"
    if isinstance(node.value, bool):
        return "bool"
    return "text" if isinstance(node.value, str | bytes) else "number"
