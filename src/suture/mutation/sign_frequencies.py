"""How frequent operators are between kinds of operands: a rare operator is more likely to be the mistake.

"Sign" means an operator of the language here, because "operator" means a mutation operator.

The tables hold thousandths, counted in the standard library of CPython 3.11 without its tests: 14,000
comparisons, 10,700 binary operations (185 of them on numbers only), 1,300 augmented assignments. Combinations
that are missing hardly ever occur. A key of a table is a kind of operand. "Display" means a literal of a
tuple, list, set or dictionary, "other" everything whose kind the syntax does not show.
"""

from __future__ import annotations

import ast
import math

from suture.mutation.tuning import MAX_FREQUENCY_RATIO, MIN_FREQUENCY_RATIO, UNSEEN_FREQUENCY

COMPARED = {
    "none": {"is": 543, "is not": 457},
    "bool": {"is": 939, "is not": 30, "!=": 30, "==": 20},
    "text": {"==": 808, "!=": 147, "in": 28, "not in": 7, ">=": 4, "<=": 3, "<": 2, ">": 1},
    "number": {"==": 354, ">": 181, "<": 180, ">=": 111, "!=": 88, "<=": 85},
    "display": {"in": 663, "not in": 215, "==": 72, "!=": 24, ">=": 17, "<": 7},
    "text first": {"in": 764, "not in": 214, "==": 11, "<=": 11},
    "number first": {"<=": 401, ">": 244, "<": 127, "!=": 101, "==": 65, ">=": 42, "in": 20},
    "other": {
        "==": 272, "in": 192, "is": 125, "!=": 103, "not in": 77, "<": 75, ">": 49, "is not": 48, ">=": 33,
        "<=": 28,
    },
}  # fmt: skip
"""Kind of the right operand -> frequencies of comparison operators.

If the kind is "other", but the left operand is a string or number, the key is "text first" or "number first".
"""
BINARY = {
    "text": {"%": 589, "+": 369, "*": 42},
    "display": {"+": 787, "%": 105, "*": 94, "|": 12, "&": 3},
    "number": {
        "+": 422, "-": 236, "*": 98, "&": 54, "<<": 49, "//": 42, "%": 32, "/": 23, ">>": 20, "**": 15,
        "|": 6, "^": 3,
    },
    "numbers": {"<<": 400, "*": 292, "**": 146, "-": 124, "/": 27, "+": 11},
    "number first": {
        "*": 346, "-": 215, "**": 186, "+": 124, "<<": 42, "/": 38, "//": 29, "|": 9, "%": 4, "&": 2,
        "^": 2, ">>": 2,
    },
    "other": {
        "+": 484, "-": 171, "*": 124, "|": 59, "&": 53, "/": 36, "%": 34, "//": 19, "^": 8, "**": 6,
        ">>": 4, "<<": 2,
    },
}  # fmt: skip
"""Kind of operand -> frequencies of binary operators.

"text" and "display" apply if either operand is one. "number" means that the right operand is a number,
"number first" only the left one, and "numbers" both, as in `60 * 60 * 24`.
"""
AUGMENTED = {
    "text": {"+": 989, "*": 11},
    "display": {"+": 933, "|": 33, "%": 33},
    "number": {"+": 714, "-": 229, "//": 22, "|": 10, "<<": 8, "*": 8, ">>": 3, "&": 2, "/": 2, "^": 2},
    "other": {
        "+": 686, "|": 127, "-": 76, "*": 33, "&": 24, "//": 21, "^": 13, "<<": 5, "%": 5, "/": 5, ">>": 3,
        "**": 2,
    },
}  # fmt: skip
"""Kind of the value -> frequencies of the operators of augmented assignments, such as `+` of `+=`."""
IDENTITY_OPERATORS = {"==": "is", "!=": "is not"}
"""Sign -> the sign that means nearly the same with `None`, `True` and `False`."""
NUMERIC_CALLS = ("len", "int", "ord", "abs", "sum", "round")
"""Common builtins whose result counts as a number."""


def frequency_ratio(before: int, after: int) -> float:
    """Return the factor on a change's weight for the frequencies of both operators; 1 where they are equal.

    The square root softens the ratio, because the tests must weigh more than usage in other code. Chosen by
    judgement; not measured.

    Args:
        before: Frequency of the present operator, in thousandths.
        after: Frequency of the new operator, in thousandths.
    """
    return math.sqrt(
        min(
            MAX_FREQUENCY_RATIO,
            max(MIN_FREQUENCY_RATIO, (after + UNSEEN_FREQUENCY) / (before + UNSEEN_FREQUENCY)),
        )
    )


def comparison_frequency(left: ast.expr, sign: str, right: ast.expr) -> int:
    """Return the frequency of a comparison operator between such operands, in thousandths."""
    kind = _operand_kind(right)
    if kind == "other" and _operand_kind(left) in ("text", "number"):
        kind = f"{_operand_kind(left)} first"
    return COMPARED[kind].get(sign, 0)


def binary_frequency(left: ast.expr, sign: str, right: ast.expr) -> int:
    """Return the frequency of a binary operator between such operands, in thousandths."""
    if _has_only_numbers(left) and _has_only_numbers(right):  # `60 * 60 * 24`
        return BINARY["numbers"].get(sign, 0)
    kinds = (_operand_kind(left), _operand_kind(right))
    for kind in ("text", "display"):
        if kind in kinds:
            return BINARY[kind].get(sign, 0)
    kind = "number" if kinds[1] == "number" else "number first" if kinds[0] == "number" else "other"
    return BINARY[kind].get(sign, 0)


def augmented_frequency(sign: str, value: ast.expr) -> int:
    """Return the frequency of an operator in an augmented assignment of such a value, in thousandths."""
    kind = _operand_kind(value)
    return AUGMENTED.get(kind, AUGMENTED["other"]).get(sign, 0)


def _has_only_numbers(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _has_only_numbers(node.left) and _has_only_numbers(node.right)
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _operand_kind(node: ast.expr) -> str:
    """Return the kind of an operand, as in the keys of the tables."""
    while isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        node = node.operand
    if isinstance(node, ast.JoinedStr):
        return "text"
    if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return "display"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NUMERIC_CALLS:
        return "number"
    if not isinstance(node, ast.Constant):
        return "other"
    if node.value is None:
        return "none"
    if isinstance(node.value, bool):
        return "bool"
    return "text" if isinstance(node.value, str | bytes) else "number"
