"""Operators of comparisons, arithmetic and assignments; superfluous or swapped operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.comparisons import BOUNDARY_SIGNS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field
from suture.mutation.tree_sitter.value_kinds import assignment_ratio, sign_ratio
from suture.mutation.tuning import BOUNDARY_FACTOR

if TYPE_CHECKING:
    from tree_sitter import Node

COMPARISON_SIGNS = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=", ">=", "<=", ">", "<"),
    "!=": ("==", ">", "<"),
    "===": ("!==", ">=", "<=", ">", "<"),
    "!==": ("===", ">", "<"),
}
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


def _operator_of(node: Node, tree: SyntaxTree) -> tuple[Node | None, str]:
    sign = node.child_by_field_name("operator")
    if sign is None and node.type in ("assignment_expression", "assignment_statement"):
        sign = next((child for child in node.children if child.type == "="), None)
    return sign, tree.text(sign) if sign is not None else ""


def _change_comparison(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a comparison operator."""
    sign, old = _operator_of(node, tree)
    if sign is None or node.type != "binary_expression":
        return
    more = () if old not in BOUNDARY_SIGNS else tree.syntax.equality
    for place, new in enumerate((*COMPARISON_SIGNS.get(old, ()), *(more if old in COMPARISON_SIGNS else ()))):
        weight = BOUNDARY_FACTOR if new == BOUNDARY_SIGNS.get(old) else 1.0 if place < 2 else 0.5
        yield _replace_sign(tree, node, sign, new, weight * _frequency_factor(node, old, new))


def _change_operator(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace the operator of an arithmetic expression, an assignment or an update such as `i++`."""
    sign, old = _operator_of(node, tree)
    if sign is not None:
        for place, new in enumerate(
            ARITHMETIC_SIGNS.get(old, ()) if node.type == "binary_expression" else ()
        ):
            yield _replace_sign(
                tree, node, sign, new, (1.0 - 0.15 * place) * _frequency_factor(node, old, new)
            )
        for place, new in enumerate(ASSIGNMENT_SIGNS.get(old, ())):
            weight = (0.35 if old == "=" else 1.0) - 0.1 * place
            yield _replace_sign(tree, node, sign, new, weight * _frequency_factor(node, old, new))
    if node.type in ("update_expression", "inc_statement", "dec_statement"):
        mark = next(child for child in node.children if child.type in ("++", "--"))
        yield tree.replace_with(mark, "--" if mark.type == "++" else "++", 1.0)
        counted = tree.text(node.named_children[0])
        yield tree.replace_with(node, f"{counted} += 2", 0.5)


def _frequency_factor(node: Node, old: str, new: str) -> float:
    """Return the factor on an operator's change for how frequent both are between such operands."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if left is None or right is None:
        return 1.0
    if node.type == "binary_expression":
        return sign_ratio(left, old, new, right)
    return assignment_ratio(old, new, right)


def _replace_sign(tree: SyntaxTree, node: Node, sign: Node, new: str, weight: float) -> Change:
    return Change(
        edits=(Edit(start=sign.start_byte, end=sign.end_byte, text=new),),
        note=f"{tree.text(sign)} becomes {new} in {shorten(tree.text(node))}",
        weight=weight,
    )


def _change_operands(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Drop an operand, swap the two, or group the operands of two operators differently."""
    _, sign = _operator_of(node, tree)
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type != "binary_expression" or left is None or right is None:
        return
    if sign in ARITHMETIC_SIGNS:
        yield tree.replace_with(node, tree.text(left), 0.9)
        yield tree.replace_with(node, tree.text(right), 0.8)
    if sign in NON_COMMUTATIVE and tree.text(left) != tree.text(right):
        weight = 0.4 if sign == "+" or sign in COMPARISON_SIGNS else 1.0
        yield tree.replace_with(
            node, f"{tree.parenthesised(right)} {sign} {tree.parenthesised(left)}", weight
        )
    if sign == "%":  # in these languages the remainder of a negative number is negative
        one, other = tree.parenthesised(left), tree.parenthesised(right)
        yield tree.replace_with(node, f"(({one} % {other}) + {other}) % {other}", 0.7)
    if left.type == "binary_expression" and sign in ARITHMETIC_SIGNS:  # a + b * c, and (a + b) * c
        inner, _ = _operator_of(left, tree)
        first, second = get_field(left, "left"), get_field(left, "right")
        if inner is not None and first is not None and second is not None:
            turned = f"{tree.text(first)} {tree.text(inner)} ({tree.text(second)} {sign} {tree.text(right)})"
            yield tree.replace_with(node, turned, 0.4)
    if right.type == "binary_expression" and sign in ARITHMETIC_SIGNS:
        inner, _ = _operator_of(right, tree)
        first, second = get_field(right, "left"), get_field(right, "right")
        if inner is not None and first is not None and second is not None:
            turned = f"({tree.text(left)} {sign} {tree.text(first)}) {tree.text(inner)} {tree.text(second)}"
            yield tree.replace_with(node, turned, 0.4)


OPERATORS: TreeOperators = {
    "comparison": _change_comparison,
    "arithmetic_operator": _change_operator,
    "operand": _change_operands,
}
