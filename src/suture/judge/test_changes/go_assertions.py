"""The assertions of a Go test: conditions under which it fails, and calls of testify."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.test_changes.assertion import (
    Assertion,
    Strength,
    arguments_of,
    called_path,
    is_conditional,
    line_of,
    normalised_source,
    shorten_source,
)
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

FAILING_CALLS = frozenset(("Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"))
EQUALITY_CALLS = re.compile(
    r"(?:Equal(?:Values|Error)?|Exactly|Same|JSONEq|ElementsMatch|NoError|Nil|Empty|Len|ErrorIs|PanicsWithValue)f?$"
)
APPROXIMATE_CALLS = re.compile(r"In(?:Delta|Epsilon)(?:Slice)?f?$")
TRUTH_CALLS = re.compile(r"(?:True|False|NotNil|NotEmpty|Error|NotZero)f?$")
TESTIFY = ("assert", "require")
COMPARING = re.compile(
    r"!\s*(?:reflect\.DeepEqual|cmp\.Equal|bytes\.Equal|slices\.Equal|maps\.Equal|errors\.Is)\s*\("
)
TOLERANCE = re.compile(r">=?\s*([0-9][0-9.e_+-]*)\s*$")


def iter_go_assertions(body: Node) -> Iterator[Assertion]:
    """Yield the assertions of a test's body, in their order."""
    for node in walk(body):
        if node.type == "if_statement" and _fails(node):
            condition = get_field(node, "condition")
            for part in _split_alternatives(condition) if condition is not None else ():
                yield _make_assertion(part, node, body, *_read_failure_condition(part))
        elif node.type == "call_expression":
            names = called_path(node)
            if len(names) == 2 and names[0] in TESTIFY:
                yield _make_assertion(node, node, body, *_read_testify(node, names[1]))


def _make_assertion(
    node: Node,
    statement: Node,
    body: Node,
    subject: str,
    strength: Strength,
    expected: str,
    tolerances: tuple[tuple[str, float], ...] = (),
) -> Assertion:
    return Assertion(
        subject=subject,
        strength=strength,
        expected=expected,
        tolerances=tolerances,
        is_conditional=is_conditional(statement, body),
        line=line_of(node),
        text=shorten_source(get_text(node)),
    )


def _fails(statement: Node) -> bool:
    """Return whether the body of a condition makes the test fail."""
    consequence = get_field(statement, "consequence")
    if consequence is None:
        return False
    return any(
        node.type == "call_expression" and called_path(node)[-1:] and called_path(node)[-1] in FAILING_CALLS
        for node in walk(consequence)
    )


def _split_alternatives(condition: Node) -> list[Node]:
    """Return the conditions of which each one makes the test fail."""
    if condition.type == "binary_expression" and get_text(condition.child_by_field_name("operator")) == "||":
        left, right = get_field(condition, "left"), get_field(condition, "right")
        return [part for side in (left, right) if side is not None for part in _split_alternatives(side)]
    return [condition]


def _read_failure_condition(node: Node) -> tuple[str, Strength, str, tuple[tuple[str, float], ...]]:
    """Return the parts of an assertion from the condition under which the test fails."""
    text = normalised_source(node)
    operator = get_text(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""
    left, right = get_field(node, "left"), get_field(node, "right")
    if operator == "!=" and left is not None and right is not None:
        return normalised_source(left), Strength.EQUALITY, normalised_source(right), ()
    bound = TOLERANCE.search(get_text(node))
    if operator in (">", ">=") and left is not None and "Abs" in get_text(left):
        tolerances = (("delta", float(bound[1].replace("_", ""))),) if bound is not None else ()
        return normalised_source(left), Strength.APPROXIMATE, "", tolerances
    if COMPARING.match(get_text(node)):
        call = next((part for part in walk(node) if part.type == "call_expression"), node)
        first, *others = arguments_of(call) or [node]
        return normalised_source(first), Strength.EQUALITY, " , ".join(map(normalised_source, others)), ()
    if operator == "&&" and left is not None and right is not None:
        # The test fails only if both hold, which asks for less than either.
        return _read_failure_condition(left)[0], Strength.TRUTH, f"&& {normalised_source(right)}", ()
    if operator and left is not None and right is not None:
        return normalised_source(left), Strength.RELATION, f"{operator} {normalised_source(right)}", ()
    return text.removeprefix("! "), Strength.TRUTH, "", ()


def _read_testify(call: Node, name: str) -> tuple[str, Strength, str, tuple[tuple[str, float], ...]]:
    arguments = [normalised_source(argument) for argument in arguments_of(call)][1:]
    if APPROXIMATE_CALLS.match(name) and len(arguments) > 2:
        tolerances: tuple[tuple[str, float], ...] = ()
        with contextlib.suppress(ValueError):
            tolerances = (("delta", float(arguments[2])),)
        return arguments[1], Strength.APPROXIMATE, arguments[0], tolerances
    if EQUALITY_CALLS.match(name):
        is_pair = len(arguments) > 1 and not re.match(r"(?:NoError|Nil|Empty)", name)
        return (
            (arguments[1] if is_pair else "".join(arguments[:1])),
            Strength.EQUALITY,
            "".join(arguments[:1]),
            (),
        )
    if TRUTH_CALLS.match(name):
        return "".join(arguments[:1]), Strength.TRUTH, name, ()
    return "".join(arguments[:1]), Strength.RELATION, f"{name} {' , '.join(arguments[1:2])}", ()
