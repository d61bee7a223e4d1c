"""Changes comparisons, `and`, `or` and `not`, and strengthens or weakens conditions.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from suture.mutation.changes import Change, replace_span, shorten
from suture.mutation.python.python_tree import PythonOperator, PythonTree, find_operator_sign, replace_with
from suture.mutation.sign_frequencies import IDENTITY_OPERATORS, comparison_frequency, frequency_ratio
from suture.mutation.tuning import BOUNDARY_FACTOR, MAX_CONDITIONS, MAX_REUSED, MAX_REUSED_CHARS

SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
"""Class of a comparison operator's node -> the operator as it is written."""
LIKELY_SIGNS = {
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="),
    "==": ("!=", "is", ">=", "<=", "in"), "!=": ("==", "is not", ">", "<", "not in"),
    "is": ("==", "is not"), "is not": ("!=", "is"), "in": ("not in", "=="), "not in": ("in", "!="),
}  # fmt: skip
"""Sign -> the signs that may be meant, the likeliest first. Chosen by judgement; not measured."""
ORDER_SIGNS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
BOUNDARY_SIGNS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
"""Sign -> the sign that differs only at the boundary."""

CONDITIONAL_NODES = (ast.If, ast.While, ast.IfExp, ast.Assert)
"""Nodes whose field `test` is a condition."""
PLAIN = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that are plain values: not operations, literals or conditions."""
VALUE_NODES = (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword)
"""Nodes whose field `value` may be a condition."""


def _change_comparison(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace a comparison operator."""
    assert isinstance(node, ast.Compare)
    left = node.left
    for sign_node, right in zip(node.ops, node.comparators, strict=True):
        sign, operand = SIGNS[type(sign_node)], left
        start, end = find_operator_sign(tree, left, right, sign)
        left = right
        if not end:
            continue
        likely_signs = LIKELY_SIGNS[sign]
        # `== None` counts as `is None`: replacing one with the other seldom fixes anything.
        same_signs = (sign, IDENTITY_OPERATORS.get(sign, sign))
        old_frequency = max(comparison_frequency(operand, same, right) for same in same_signs)
        for other in dict.fromkeys((*likely_signs, *SIGNS.values())):
            if other != sign:
                weight = 1.0 if other in likely_signs[:2] else 0.6 if other in likely_signs else 0.45
                new_frequency = comparison_frequency(operand, other, right)
                # Not between operands that are never compared this way, such as `<=` with a list.
                weight *= BOUNDARY_FACTOR if new_frequency and other == BOUNDARY_SIGNS.get(sign) else 1.0
                weight *= frequency_ratio(old_frequency, new_frequency)
                yield replace_span(start, end, other, f"{sign} becomes {other} in {tree.text(node)}", weight)


def _change_boolean_operator(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Switch `and` and `or`, drop an operand, or swap two."""
    assert isinstance(node, ast.BoolOp)
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    texts = [tree.text(value) for value in node.values]
    operands = [f"({text})" if " " in text else text for text in texts]
    yield replace_with(tree, node, f" {other} ".join(operands), 0.9)
    for dropped in range(len(texts)):
        yield replace_with(tree, node, f" {sign} ".join(texts[:dropped] + texts[dropped + 1 :]), 0.8)
    if len(texts) == 2 and not _is_order_irrelevant(node, tree):
        yield replace_with(tree, node, f"{texts[1]} {sign} {texts[0]}", 0.4)
    is_nested = any(isinstance(neighbour, ast.BoolOp) for neighbour in (*node.values, tree.parent(node)))
    if len(texts) > 2 or is_nested:
        # Only one operator of the chain: without parentheses, precedence then regroups the operands.
        for left, right in pairwise(node.values):
            start, end = find_operator_sign(tree, left, right, sign)
            note = f"{sign} becomes {other} before {shorten(tree.text(right))}"
            if end:
                yield replace_span(start, end, other, note, 0.9)


def _is_order_irrelevant(node: ast.BoolOp, tree: PythonTree) -> bool:
    """Return whether swapping two operands has no effect: they are names, and comparisons of names and constants.

    An operand may guard another one that has a name in common with it: `x is not None and x > 3`.
    """
    left, right = node.values
    if not (_is_plain_test(left) and _is_plain_test(right)):
        return False
    left_names, right_names = (
        {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} for value in (left, right)
    )
    may_guard = not left_names.isdisjoint(right_names) and _has_order(left) != _has_order(right)
    are_bools = isinstance(left, ast.Compare) and isinstance(right, ast.Compare)
    return not may_guard and (are_bools or _is_truth_tested(node, tree))


def _is_plain_test(node: ast.expr) -> bool:
    """Return whether an expression is a name, or a comparison of names and constants."""
    if not isinstance(node, ast.Compare):
        return isinstance(node, ast.Name)
    parts = [
        part.operand if isinstance(part, ast.UnaryOp) else part for part in (node.left, *node.comparators)
    ]
    are_plain = all(isinstance(part, (ast.Name, ast.Constant)) for part in parts)
    return are_plain and not any(isinstance(sign, (ast.In, ast.NotIn)) for sign in node.ops)


def _has_order(node: ast.expr) -> bool:
    """Return whether an expression compares by order, which raises an exception for some values."""
    return isinstance(node, ast.Compare) and any(isinstance(sign, ORDER_SIGNS) for sign in node.ops)


def _is_truth_tested(node: ast.expr, tree: PythonTree) -> bool:
    """Return whether only the truth of an expression counts."""
    parent = tree.parent(node)
    if isinstance(parent, ast.BoolOp):
        return _is_truth_tested(parent, tree)
    is_negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    return is_negated or (parent is not None and any(node is test for test in conditions_of(parent)))


def _change_negation(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add or remove a `not`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        # Nothing negates a comparison: Python has `not in`, `is not` and `!=`.
        is_unusual = isinstance(node.operand, ast.Compare)
        yield replace_with(tree, node, tree.text(node.operand), 2.0 if is_unusual else 1.0)
        return
    for test in conditions_of(node):
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            weight = 0.8 if isinstance(test, PLAIN) else 0.6
            yield replace_with(tree, test, f"not {parenthesised(tree, test)}", weight)
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            if not isinstance(value, (ast.UnaryOp, ast.Compare)):  # a comparison has an opposite sign
                yield replace_with(tree, value, f"not {parenthesised(tree, value)}", 0.5)
    if isinstance(node, VALUE_NODES) and node.value is not None and isinstance(node.value, PLAIN):
        yield replace_with(tree, node.value, f"not {parenthesised(tree, node.value)}", 0.25)


def _extend_condition(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a part to a condition, or replace a constant condition such as `while True`."""
    for test in conditions_of(node):
        operand = parenthesised(tree, test)
        for condition, weight in candidate_conditions(test, tree):
            if isinstance(test, ast.Constant):
                yield replace_with(tree, test, condition, weight)
            else:
                yield replace_with(tree, test, f"{condition} or {operand}", weight)
                yield replace_with(tree, test, f"{condition} and {operand}", weight * 0.9)
        if not isinstance(test, ast.Constant):
            yield from _add_other_conditions(test, tree)
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.Compare, ast.BoolOp)):
        yield from _add_other_conditions(node.value, tree)


def _add_other_conditions(test: ast.expr, tree: PythonTree) -> Iterator[Change]:
    """Add a condition that the file tests elsewhere, or one on the length or truth of a value.

    One on the length precedes the test, because it may guard it.
    """
    parts = [n for n in ast.walk(test) if isinstance(n, (ast.Name, ast.Attribute)) and not tree.is_called(n)]
    names = list(dict.fromkeys(tree.text(part) for part in parts))
    guards = [f"len({name}) {limit}" for name in names[:2] for limit in ("> 1", ">= 2")]
    others = [*_find_tests_elsewhere(test, tree), *tree.scope_names(test).bound_before(test.lineno)]
    others += [f"{name} is {value}" for name in names[:4] for value in ("None", "not None")]
    for rank, condition in enumerate(dict.fromkeys((*others, *guards))):
        is_closed = condition.isidentifier() or condition.endswith(")")
        for part in (condition, f"not {condition}") if is_closed else (condition,):
            for sign, kind in (("and", ast.And), ("or", ast.Or)):
                is_same = isinstance(test, ast.BoolOp) and isinstance(test.op, kind)
                operand = tree.text(test) if is_same else parenthesised(tree, test)
                text = f"{part} {sign} {operand}" if condition in guards else f"{operand} {sign} {part}"
                yield replace_with(tree, test, text, 0.25 * 0.99**rank)


def _find_tests_elsewhere(node: ast.expr, tree: PythonTree) -> list[str]:
    """Return short parts of other conditions of the file whose names are known at a node, the nearest first."""
    names, here = tree.scope_names(node).kinds.keys(), tree.text(node)
    tests = [entry for entry in tree.cached("tests", _collect_tests) if entry[2] <= names]
    tests.sort(key=lambda entry: abs(entry[0] - node.lineno))
    return list(dict.fromkeys(text for _, text, _ in tests if text not in here))[:MAX_REUSED]


def _collect_tests(tree: PythonTree) -> list[tuple[int, str, set[str]]]:
    """Return `(line, source, variables)` of the short parts of all conditions."""
    tests = [
        test for node in tree.nodes for test in conditions_of(node) if not isinstance(test, ast.Constant)
    ]
    parts = [part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
    scopes = [tree.scope_names(function.body[0]).kinds for function in tree.functions_in_order]
    variables, found = {name for kinds in scopes for name in kinds}, []
    for part in parts:
        if len(text := tree.text(part)) <= MAX_REUSED_CHARS and not isinstance(
            part, (ast.BoolOp, ast.NamedExpr)
        ):
            names = {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
            found.append((part.lineno, text, names & variables))
    return found


def _change_truth_test(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Test for `None` instead of truth, or the reverse, or in the way that a special value needs."""
    for operand in (*conditions_of(node), *(node.values if isinstance(node, ast.BoolOp) else ())):
        if isinstance(operand, PLAIN):
            yield replace_with(tree, operand, f"{tree.text(operand)} is not None")
        elif isinstance(operand, ast.UnaryOp) and isinstance(operand.operand, PLAIN):
            yield replace_with(tree, operand, f"{tree.text(operand.operand)} is None")
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        value, default = (tree.text(part) for part in node.values)
        yield replace_with(tree, node, f"{value} if {value} is not None else {default}")
        yield replace_with(tree, node, f"{default} if {value} is None else {value}")
    sign = type(node.ops[0]) if isinstance(node, ast.Compare) else None
    if not isinstance(node, ast.Compare) or sign not in (ast.Is, ast.IsNot, ast.Eq, ast.NotEq):
        return
    left, other = node.left, tree.text(node.comparators[0])
    negation = "not " if sign in (ast.IsNot, ast.NotEq) else ""
    if other in ("None", "''", '""', "[]", "0"):
        yield replace_with(tree, node, tree.text(left) if negation else f"not {parenthesised(tree, left)}")
    if isinstance(left, ast.Call) and tree.text(left.func) == "type" and len(left.args) == 1:
        yield replace_with(tree, node, f"{negation}isinstance({tree.text(left.args[0])}, {other})")
    elif isinstance(left, ast.Subscript):
        method = "endswith" if tree.text(left.slice).startswith("-") else "startswith"
        yield replace_with(tree, node, f"{negation}{tree.text(left.value)}.{method}({other})")


def _return_condition(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Return a condition where a constant boolean is returned."""
    assert isinstance(node, ast.Return)
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield replace_with(tree, node.value, str(not node.value.value))
        for condition, weight in candidate_conditions(node.value, tree):
            yield replace_with(tree, node.value, condition, weight)


def candidate_conditions(node: ast.AST, tree: PythonTree) -> Iterator[tuple[str, float]]:
    """Yield `(condition, weight)` for conditions that may be meant in place of a node, or together with it.

    Those of the variables in the node come first, then those of other variables in scope.
    """
    statement = tree.enclosing_statement(node)
    names = tree.scope_names(node)
    names_in_node = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in names.kinds]
    paths = [tree.text(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    names_in_scope = [name for name, _ in names.fitting("unknown", statement.lineno)]
    count = 0
    for name in dict.fromkeys((*names_in_node, *paths, *names_in_scope)):
        kind = names.kinds.get(name, "unknown")
        weight = 1.0 if name in names_in_node else 0.7
        conditions = {
            "number": (f"{name} == 0", f"{name} > 0", f"{name} < 0", f"{name} != 0", f"{name} <= 1"),
            "unknown": (f"not {name}", name, f"{name} is None", f"{name} is not None", f"{name} == 0"),
        }.get(kind, (f"not {name}", name))
        for rank, condition in enumerate(conditions):
            count += 1
            if count <= MAX_CONDITIONS:
                yield condition, weight * 0.97**rank


def conditions_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the condition of a statement or expression, or those of a part of a comprehension."""
    if isinstance(node, CONDITIONAL_NODES):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs


def parenthesised(tree: PythonTree, node: ast.expr) -> str:
    """Return the source of an operand of `not`, `and` or `or`, in parentheses where they help."""
    binds_loosely = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Compare))
    return f"({tree.text(node)})" if binds_loosely else tree.text(node)


TRUTH_TESTS = (*CONDITIONAL_NODES, ast.comprehension, ast.BoolOp, ast.Compare)
OPERATORS = (
    PythonOperator(name="comparison", nodes=(ast.Compare,), changes=_change_comparison),
    PythonOperator(name="boolean_operator", nodes=(ast.BoolOp,), changes=_change_boolean_operator),
    PythonOperator(
        name="negation",
        nodes=(*CONDITIONAL_NODES, *VALUE_NODES, ast.comprehension, ast.UnaryOp, ast.BoolOp),
        changes=_change_negation,
    ),
    PythonOperator(
        name="condition", nodes=(*CONDITIONAL_NODES, ast.comprehension, ast.Return), changes=_extend_condition
    ),
    PythonOperator(name="returned_condition", nodes=(ast.Return,), changes=_return_condition),
    PythonOperator(name="truth_test", nodes=TRUTH_TESTS, changes=_change_truth_test),
)
