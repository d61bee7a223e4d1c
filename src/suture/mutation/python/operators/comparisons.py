"""Comparisons, `and`, `or`, `not`, and conditions that are too weak or too strong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from suture.mutation.edits import Edit
from suture.mutation.sign_frequencies import frequency_ratio, comparison_frequency
from suture.mutation.python.python_tree import PythonTree
from suture.mutation.changes import Change, Operator, replace_with, find_operator_sign, shorten

SIGNS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}
LIKELY = {
    **{"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<=")},
    **{"==": ("!=", "is", ">=", "<=", "in"), "!=": ("==", "is not", ">", "<", "not in")},
    **{"is": ("==", "is not"), "is not": ("!=", "is"), "in": ("not in", "=="), "not in": ("in", "!=")},
}
BY_AN_EQUALS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
BOUNDARY = 2.0
"""How much likelier than others it is that only a `=` was forgotten, or is one too many: people slip so."""
TESTED = (ast.If, ast.While, ast.IfExp, ast.Assert)
VALUED = (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword)
MOST_ATOMS = 24
"""Of a condition's added parts, those of its own names first."""


def _comparison(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.Compare)
    left = node.left
    for sign_node, right in zip(node.ops, node.comparators, strict=True):
        sign, before = SIGNS[type(sign_node)], left
        start, end = find_operator_sign(view, left, right, (sign,))
        left = right
        if not end:
            continue
        usual = comparison_frequency(before, sign, right)
        for other in dict.fromkeys((*LIKELY[sign], *SIGNS.values())):
            if other != sign:
                weight = 1.0 if other in LIKELY[sign][:2] else 0.6 if other in LIKELY[sign] else 0.45
                then = comparison_frequency(before, other, right)
                weight *= BOUNDARY if then and other == BY_AN_EQUALS.get(sign) else 1.0
                yield Change(
                    edits=(Edit(start=start, end=end, text=other),),
                    note=f"{sign} becomes {other} in {view.text(node)}",
                    weight=weight * frequency_ratio(usual, then),
                )


def _boolean(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.BoolOp)
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    texts = [view.text(value) for value in node.values]
    yield replace_with(view, node, f" {other} ".join(f"({t})" if " " in t else t for t in texts), 0.9)
    for number in range(len(texts)):
        kept = [text for at, text in enumerate(texts) if at != number]
        yield replace_with(view, node, f" {sign} ".join(kept), 0.8)
    if len(texts) == 2:
        yield replace_with(view, node, f"{texts[1]} {sign} {texts[0]}", 0.4)
    if len(texts) > 2 or _is_mixed(node, view):
        # One sign as it is written: among others it takes other parts than with brackets around it.
        for left, right in pairwise(node.values):
            start, end = find_operator_sign(view, left, right, (sign,))
            note = f"{sign} becomes {other} before {shorten(view.text(right))}"
            if end:
                yield Change(edits=(Edit(start=start, end=end, text=other),), note=note, weight=0.9)


def _is_mixed(node: ast.BoolOp, view: PythonTree) -> bool:
    """Whether another `and` or `or` stands beside or around it."""
    return any(isinstance(near, ast.BoolOp) for near in (*node.values, view.parent(node)))


def _negation(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        odd = isinstance(node.operand, ast.Compare)  # Python says `not in`, `is not` and `!=`
        yield replace_with(view, node, view.text(node.operand), 2.0 if odd else 1.0)
        return
    for test in _tests(node):
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            yield replace_with(view, test, f"not {_tight(view, test)}", 0.8 if _is_plain(test) else 0.6)
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            if not isinstance(value, (ast.UnaryOp, ast.Compare)):
                yield replace_with(view, value, f"not {_tight(view, value)}", 0.5)
    if isinstance(node, VALUED) and node.value is not None and _is_plain(node.value):
        yield replace_with(view, node.value, f"not {_tight(view, node.value)}", 0.25)


def _strengthening(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A condition that lacks a part, or that is no condition yet (`while True`)."""
    for test in _tests(node):
        atoms = list(condition_atoms(test, view))
        if isinstance(test, ast.Constant):
            yield from (replace_with(view, test, atom, weight) for atom, weight in atoms)
            continue
        own = _tight(view, test)
        for atom, weight in atoms:
            yield replace_with(view, test, f"{atom} or {own}", weight)
            yield replace_with(view, test, f"{atom} and {own}", weight * 0.9)


def _returned_condition(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`return True` where the answer depends on something."""
    assert isinstance(node, ast.Return)
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield replace_with(view, node.value, str(not node.value.value), 1.0)
        for atom, weight in condition_atoms(node.value, view):
            yield replace_with(view, node.value, atom, weight)


def condition_atoms(node: ast.AST, view: PythonTree) -> Iterator[tuple[str, float]]:
    """Conditions that could be meant near a node: of its own variables, then of the function's."""
    statement = view.enclosing_statement(node)
    names = view.scope_names(node)
    own = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in names.kinds]
    near = [name for name, _ in names.fitting("unknown", statement.lineno)]
    paths = [view.text(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    seen = dict.fromkeys((*own, *paths, *near))
    counts = 0
    for name in seen:
        kind = names.kinds.get(name, "unknown")
        weight = 1.0 if name in own else 0.7
        forms = {
            "number": (f"{name} == 0", f"{name} > 0", f"{name} < 0", f"{name} != 0", f"{name} <= 1"),
            "unknown": (f"not {name}", name, f"{name} is None", f"{name} is not None", f"{name} == 0"),
        }.get(kind, (f"not {name}", name))
        for number, form in enumerate(forms):
            counts += 1
            if counts <= MOST_ATOMS:
                yield form, weight * 0.97**number


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, TESTED):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))


def _tight(view: PythonTree, node: ast.expr) -> str:
    text = view.text(node)
    loose = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Compare))
    return f"({text})" if loose else text


OPERATORS = (
    Operator(name="comparison", prior=0.9, nodes=(ast.Compare,), changes=_comparison),
    Operator(name="boolean", prior=0.6, nodes=(ast.BoolOp,), changes=_boolean),
    Operator(
        name="negation",
        prior=0.6,
        nodes=(*TESTED, *VALUED, ast.comprehension, ast.UnaryOp, ast.BoolOp),
        changes=_negation,
    ),
    Operator(name="condition", prior=0.35, nodes=(*TESTED, ast.comprehension), changes=_strengthening),
    Operator(name="returned condition", prior=0.55, nodes=(ast.Return,), changes=_returned_condition),
)
