"""Signs: of comparisons, arithmetic and assignments; operands that are too many, or the wrong way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.changes import Change, shorten
from suture.mutation.python.operators.comparisons import BOUNDARY, BY_AN_EQUALS
from suture.mutation.tree_sitter.value_kinds import assignment_ratio, sign_ratio
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field

if TYPE_CHECKING:
    from tree_sitter import Node

COMPARED = {
    **{"<": ("<=", ">", ">="), "<=": ("<", ">=", ">"), ">": (">=", "<", "<="), ">=": (">", "<=", "<")},
    **{"==": ("!=", ">=", "<=", ">", "<"), "!=": ("==", ">", "<")},
    **{"===": ("!==", ">=", "<=", ">", "<"), "!==": ("===", ">", "<")},
}
CALCULATED = {
    **{"+": ("-", "*", "/", "%"), "-": ("+", "*", "/", "%")},
    **{"*": ("+", "/", "**", "-"), "/": ("*", "%", "-")},
    **{"%": ("/", "*", "+"), "**": ("*", "/", "+"), "<<": (">>", ">>>"), ">>": ("<<", ">>>")},
    **{"&": ("|", "^", "&&"), "|": ("&", "^", "||"), "^": ("&", "|", "**"), ">>>": (">>",)},
}
SET = {
    **{"+=": ("-=", "=", "*=", "/="), "-=": ("+=", "=", "*="), "*=": ("+=", "/=", "=", "-=")},
    **{"/=": ("*=", "%=", "-="), "%=": ("/=", "*="), "=": ("+=", "-=", "*="), "&=": ("|=", "^=")},
    **{"|=": ("&=", "^="), "^=": ("&=", "|="), "<<=": (">>=",), ">>=": ("<<=",)},
}
ONE_WAY = ("-", "/", "%", "**", "<<", ">>", "<", "<=", ">", ">=", "+")


def _sign_of(node: Node, view: SyntaxTree) -> tuple[Node | None, str]:
    sign = node.child_by_field_name("operator")
    if sign is None and node.type in ("assignment_expression", "assignment_statement"):
        sign = next((child for child in node.children if child.type == "="), None)
    return sign, view.text(sign) if sign is not None else ""


def _comparison(node: Node, view: SyntaxTree) -> Iterator[Change]:
    sign, old = _sign_of(node, view)
    if sign is None or node.type != "binary_expression":
        return
    more = () if old not in BY_AN_EQUALS else view.grammar.equal
    for place, new in enumerate((*COMPARED.get(old, ()), *(more if old in COMPARED else ()))):
        weight = BOUNDARY if new == BY_AN_EQUALS.get(old) else 1.0 if place < 2 else 0.5
        yield _signed(view, node, sign, new, weight * _usual(node, old, new))


def _arithmetic(node: Node, view: SyntaxTree) -> Iterator[Change]:
    sign, old = _sign_of(node, view)
    if sign is not None:
        for place, new in enumerate(CALCULATED.get(old, ()) if node.type == "binary_expression" else ()):
            yield _signed(view, node, sign, new, (1.0 - 0.15 * place) * _usual(node, old, new))
        for place, new in enumerate(SET.get(old, ())):
            weight = (0.35 if old == "=" else 1.0) - 0.1 * place
            yield _signed(view, node, sign, new, weight * _usual(node, old, new))
    if node.type in ("update_expression", "inc_statement", "dec_statement"):
        mark = next(child for child in node.children if child.type in ("++", "--"))
        yield view.replace_with(mark, "--" if mark.type == "++" else "++", 1.0)
        counted = view.text(node.named_children[0])
        yield view.replace_with(node, f"{counted} += 2", 0.5)


def _usual(node: Node, old: str, new: str) -> float:
    """How much likelier a change of a sign is for what is usual between such operands."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if left is None or right is None:
        return 1.0
    if node.type == "binary_expression":
        return sign_ratio(left, old, new, right)
    return assignment_ratio(old, new, right)


def _signed(view: SyntaxTree, node: Node, sign: Node, new: str, weight: float) -> Change:
    return Change(
        edits=(Edit(start=sign.start_byte, end=sign.end_byte, text=new),),
        note=f"{view.text(sign)} becomes {new} in {shorten(view.text(node))}",
        weight=weight,
    )


def _operand(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """An operand that is too many, or the two the wrong way round."""
    _, sign = _sign_of(node, view)
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type != "binary_expression" or left is None or right is None:
        return
    if sign in CALCULATED:
        yield view.replace_with(node, view.text(left), 0.9)
        yield view.replace_with(node, view.text(right), 0.8)
    if sign in ONE_WAY and view.text(left) != view.text(right):
        weight = 0.4 if sign == "+" or sign in COMPARED else 1.0
        yield view.replace_with(node, f"{view.parenthesised(right)} {sign} {view.parenthesised(left)}", weight)
    if sign == "%":  # of a negative number it is negative in these languages
        one, other = view.parenthesised(left), view.parenthesised(right)
        yield view.replace_with(node, f"(({one} % {other}) + {other}) % {other}", 0.7)
    if left.type == "binary_expression" and sign in CALCULATED:  # a + b * c, and (a + b) * c
        inner, _ = _sign_of(left, view)
        first, second = get_field(left, "left"), get_field(left, "right")
        if inner is not None and first is not None and second is not None:
            turned = f"{view.text(first)} {view.text(inner)} ({view.text(second)} {sign} {view.text(right)})"
            yield view.replace_with(node, turned, 0.4)
    if right.type == "binary_expression" and sign in CALCULATED:
        inner, _ = _sign_of(right, view)
        first, second = get_field(right, "left"), get_field(right, "right")
        if inner is not None and first is not None and second is not None:
            turned = f"({view.text(left)} {sign} {view.text(first)}) {view.text(inner)} {view.text(second)}"
            yield view.replace_with(node, turned, 0.4)


FAMILIES = {"comparison": _comparison, "arithmetic sign": _arithmetic, "operand": _operand}
