"""Replaces signs such as `<`, `+` or `+=`, and drops or swaps their operands.

`suture.mutation.changes` explains the weights. "Sign" means an operator of the language here, because "operator"
means a mutation operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.python.operators.comparisons import BOUNDARY_SIGNS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, replace_node
from suture.mutation.tree_sitter.value_kinds import assignment_ratio, sign_ratio
from suture.mutation.tuning import BOUNDARY_FACTOR

if TYPE_CHECKING:
    from tree_sitter import Node

# Each of the three tables: a sign -> the signs that may be meant, the likeliest first.
COMPARISON_SIGNS = {
    "<": ("<=", ">", ">="), "<=": ("<", ">=", ">"), ">": (">=", "<", "<="), ">=": (">", "<=", "<"),
    "==": ("!=", ">=", "<=", ">", "<"), "!=": ("==", ">", "<"),
    "===": ("!==", ">=", "<=", ">", "<"), "!==": ("===", ">", "<"),
}  # fmt: skip
ARITHMETIC_SIGNS = {
    "+": ("-", "*", "/", "%"), "-": ("+", "*", "/", "%"), "*": ("+", "/", "**", "-"),
    "/": ("*", "%", "-"), "%": ("/", "*", "+"), "**": ("*", "/", "+"), "<<": (">>", ">>>"),
    ">>": ("<<", ">>>"), "&": ("|", "^", "&&"), "|": ("&", "^", "||"), "^": ("&", "|", "**"),
    ">>>": (">>",),
}  # fmt: skip
ASSIGNMENT_SIGNS = {
    "+=": ("-=", "=", "*=", "/="), "-=": ("+=", "=", "*="), "*=": ("+=", "/=", "=", "-="),
    "/=": ("*=", "%=", "-="), "%=": ("/=", "*="), "=": ("+=", "-=", "*="), "&=": ("|=", "^="),
    "|=": ("&=", "^="), "^=": ("&=", "|="), "<<=": (">>=",), ">>=": ("<<=",),
}  # fmt: skip
NON_COMMUTATIVE = ("-", "/", "%", "**", "<<", ">>", "<", "<=", ">", ">=", "+")
"""Signs whose operands may be in the wrong order; `+` because it also concatenates strings."""


def _get_sign(node: Node, tree: SyntaxTree) -> tuple[Node | None, str]:
    """Return the sign of an expression or assignment, and its text; `(None, "")` if it has none."""
    sign = node.child_by_field_name("operator")
    if sign is None and node.type in ("assignment_expression", "assignment_statement"):
        sign = next((child for child in node.children if child.type == "="), None)
    return sign, tree.text(sign) if sign is not None else ""


def _change_comparison(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace the sign of a comparison."""
    sign, old = _get_sign(node, tree)
    if sign is None or node.type != "binary_expression" or old not in COMPARISON_SIGNS:
        return
    # The other signs have the equality signs in their table, in the form that the language prefers.
    equality = tree.syntax.equality if old in BOUNDARY_SIGNS else ()
    for rank, new in enumerate((*COMPARISON_SIGNS[old], *equality)):
        weight = BOUNDARY_FACTOR if new == BOUNDARY_SIGNS.get(old) else 1.0 if rank < 2 else 0.5
        yield _replace_sign(tree, node, sign, new, weight * _frequency_factor(node, old, new))


def _change_operator(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace the sign of an arithmetic expression, an assignment or an update such as `i++`."""
    sign, old = _get_sign(node, tree)
    if sign is not None:
        arithmetic_signs = ARITHMETIC_SIGNS.get(old, ()) if node.type == "binary_expression" else ()
        for rank, new in enumerate(arithmetic_signs):
            weight = 1.0 - 0.15 * rank
            yield _replace_sign(tree, node, sign, new, weight * _frequency_factor(node, old, new))
        for rank, new in enumerate(ASSIGNMENT_SIGNS.get(old, ())):
            weight = (0.35 if old == "=" else 1.0) - 0.1 * rank  # most assignments are meant as such
            yield _replace_sign(tree, node, sign, new, weight * _frequency_factor(node, old, new))
    if node.type in ("update_expression", "inc_statement", "dec_statement"):
        update_sign = next(child for child in node.children if child.type in ("++", "--"))
        yield tree.replace_with(update_sign, "--" if update_sign.type == "++" else "++", 1.0)
        yield tree.replace_with(node, f"{tree.text(node.named_children[0])} += 2", 0.5)


def _frequency_factor(node: Node, old: str, new: str) -> float:
    """Return how much likelier the new sign is than the old one between such operands, in other code."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if left is None or right is None:
        return 1.0
    if node.type == "binary_expression":
        return sign_ratio(left, old, new, right)
    return assignment_ratio(old, new, right)


def _replace_sign(tree: SyntaxTree, node: Node, sign: Node, new: str, weight: float) -> Change:
    note = f"{tree.text(sign)} becomes {new} in {shorten(tree.text(node))}"
    return Change(edits=(replace_node(sign, new),), note=note, weight=weight)


def _change_operands(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Drop an operand, swap the two, or group the operands of two signs differently."""
    _, sign = _get_sign(node, tree)
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type != "binary_expression" or left is None or right is None:
        return
    if sign in ARITHMETIC_SIGNS:
        yield tree.replace_with(node, tree.text(left), 0.9)
        yield tree.replace_with(node, tree.text(right), 0.8)
    if sign in NON_COMMUTATIVE and tree.text(left) != tree.text(right):
        weight = 0.4 if sign == "+" or sign in COMPARISON_SIGNS else 1.0
        exchanged = f"{tree.parenthesised(right)} {sign} {tree.parenthesised(left)}"
        yield tree.replace_with(node, exchanged, weight)
    if sign == "%":  # in these languages the remainder of a negative number is negative
        dividend, divisor = tree.parenthesised(left), tree.parenthesised(right)
        yield tree.replace_with(node, f"(({dividend} % {divisor}) + {divisor}) % {divisor}", 0.7)
    if sign in ARITHMETIC_SIGNS and left.type == "binary_expression":  # a + b - c becomes a + (b - c)
        inner_sign = _get_sign(left, tree)[1]
        a, b = get_field(left, "left"), get_field(left, "right")
        if inner_sign and a is not None and b is not None:
            regrouped = f"{tree.text(a)} {inner_sign} ({tree.text(b)} {sign} {tree.text(right)})"
            yield tree.replace_with(node, regrouped, 0.4)
    if sign in ARITHMETIC_SIGNS and right.type == "binary_expression":  # a + b * c becomes (a + b) * c
        inner_sign = _get_sign(right, tree)[1]
        b, c = get_field(right, "left"), get_field(right, "right")
        if inner_sign and b is not None and c is not None:
            regrouped = f"({tree.text(left)} {sign} {tree.text(b)}) {inner_sign} {tree.text(c)}"
            yield tree.replace_with(node, regrouped, 0.4)


OPERATORS: TreeOperators = {
    "comparison": _change_comparison,
    "arithmetic_operator": _change_operator,
    "operand": _change_operands,
}
