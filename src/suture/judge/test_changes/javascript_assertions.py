"""The assertions of a JavaScript or TypeScript test: of Jest, Vitest, Chai, and `node:assert`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.test_changes.assertion import (
    Assertion,
    Strength,
    arguments_of,
    called_path,
    is_conditional,
    is_guarded,
    line_of,
    normalised_source,
    shorten_source,
)
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

EQUALITY_MATCHERS = re.compile(
    r"to(?:Be|Equal|StrictEqual|HaveLength|BeNull|BeUndefined|BeNaN|Throw(?:Error)?|MatchSnapshot|MatchInlineSnapshot"
    r"|ThrowErrorMatching(?:Inline)?Snapshot|HaveBeenCalledWith|HaveBeenCalledTimes|HaveBeenNthCalledWith"
    r"|HaveBeenLastCalledWith|HaveReturnedWith)$|(?:equals?|eql|throws?|true|false|null|undefined|lengthOf|members)$"
)
TRUTH_MATCHERS = re.compile(r"to(?:BeTruthy|BeFalsy|BeDefined|HaveBeenCalled|BeCalled)$|(?:ok|exist|exists)$")
APPROXIMATE_MATCHERS = re.compile(r"toBeCloseTo$|closeTo$|approximately$")
THROWING = re.compile(r"(?:toThrow(?:Error)?|throws?|rejects)$")
EQUALITY_ASSERTS = re.compile(
    r"(?:deep)?(?:strict)?(?:Deep)?(?:Strict)?[eE]qual$|is$|same$|deepLooseEqual$|partialDeepStrictEqual$|throws$"
    r"|rejects$|doesNotThrow$|fail$"
)
TRUTH_ASSERTS = frozenset(("assert", "ok", "truthy", "true", "isOk", "exists", "isTrue", "pass"))
ASSERTING_OBJECTS = frozenset(("assert", "t", "should", "chai"))
NEGATIONS = ("not", "isNot", "notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual")


def iter_javascript_assertions(body: Node) -> Iterator[Assertion]:
    """Yield the assertions of a test's body, in their order."""
    for node in walk(body):
        if node.type not in ("call_expression", "member_expression"):
            continue
        above = node.parent
        if above is not None and above.type == "member_expression":
            continue  # a part of a longer chain
        if above is not None and above.type == "call_expression" and node.type == "member_expression":
            continue  # what a call calls
        parts = _read_assertion(node)
        if parts is None:
            continue
        subject, strength, expected, tolerances, exceptions = parts
        yield Assertion(
            subject=subject,
            strength=strength,
            expected=expected,
            tolerances=tolerances,
            exceptions=exceptions,
            is_guarded=is_guarded(node, body),
            is_conditional=is_conditional(node, body),
            line=line_of(node),
            text=shorten_source(get_text(node)),
        )


Parts = tuple[str, Strength, str, tuple[tuple[str, float], ...], tuple[str, ...]]
"""Subject, strength, expected value, tolerances and accepted exceptions."""


def _read_assertion(node: Node) -> Parts | None:
    """Return the parts of an assertion; `None` for anything else."""
    expect = _find_expect(node)
    if expect is not None:
        return _read_expect(node, expect)
    names = called_path(node) if node.type == "call_expression" else []
    is_assert = bool(names) and (names[0] in ASSERTING_OBJECTS or names == ["assert"])
    if is_assert and (len(names) > 1 or names == ["assert"]):
        return _read_assert(node, names[-1])
    if len(names) == 1 and re.match(r"(?:assert|check|verify|expect)[A-Z]", names[0]):
        return normalised_source(node), Strength.EQUALITY, "", (), ()
    return None


def _find_expect(node: Node) -> Node | None:
    """Return the call of `expect` at the beginning of a chain."""
    current: Node | None = node
    while current is not None:
        if current.type == "call_expression":
            function = get_field(current, "function")
            if function is not None and function.type == "identifier":
                return current if get_text(function) == "expect" and current.id != node.id else None
            current = function
        elif current.type == "member_expression":
            current = get_field(current, "object")
        else:
            return None
    return None


def _read_expect(node: Node, expect: Node) -> Parts:
    names = called_path(node) if node.type == "call_expression" else _member_path(node)
    arguments = arguments_of(node) if node.type == "call_expression" else []
    subject = " , ".join(normalised_source(argument) for argument in arguments_of(expect))
    expected = " , ".join(normalised_source(argument) for argument in arguments)
    matcher, modifiers = names[-1] if names else "", names[1:-1]
    strength = Strength.RELATION
    tolerances: tuple[tuple[str, float], ...] = ()
    exceptions: tuple[str, ...] = ()
    if APPROXIMATE_MATCHERS.search(matcher):
        strength = Strength.APPROXIMATE
        tolerances = _read_tolerance(arguments, "digits" if matcher == "toBeCloseTo" else "delta")
        expected = normalised_source(arguments[0]) if arguments else ""
    elif TRUTH_MATCHERS.search(matcher):
        strength = Strength.TRUTH
    elif EQUALITY_MATCHERS.search(matcher):
        strength = Strength.EQUALITY
    if THROWING.search(matcher):
        exceptions = (expected or "",)
        expected = expected or ""
    if strength == Strength.EQUALITY and subject and subject == expected:
        strength = Strength.TRUTH
    if "not" in modifiers:
        subject, strength = f"not {subject}", min(strength, Strength.RELATION)
    if strength == Strength.RELATION:
        expected = f"{matcher} {expected}"
    return subject, strength, expected, tolerances, exceptions


def _member_path(node: Node) -> list[str]:
    """Return the names of a chain that ends without a call, such as `expect(x).to.be.true`."""
    names: list[str] = []
    current: Node | None = node
    while current is not None:
        if current.type == "member_expression":
            names.append(get_text(get_field(current, "property")))
            current = get_field(current, "object")
        elif current.type == "call_expression":
            current = get_field(current, "function")
        else:
            names.append(get_text(current))
            break
    return names[::-1]


def _read_tolerance(arguments: list[Node], name: str) -> tuple[tuple[str, float], ...]:
    try:
        return ((name, float(get_text(arguments[1]))),) if len(arguments) > 1 else ()
    except ValueError:
        return ()


def _read_assert(node: Node, name: str) -> Parts | None:
    arguments = arguments_of(node)
    if not arguments:
        return None
    subject = normalised_source(arguments[0])
    expected = normalised_source(arguments[1]) if len(arguments) > 1 else ""
    if name in NEGATIONS:
        return f"not {subject}", Strength.RELATION, expected, (), ()
    if THROWING.search(name):
        return subject, Strength.EQUALITY, expected, (), (expected,)
    if EQUALITY_ASSERTS.match(name):
        return subject, Strength.TRUTH if subject == expected else Strength.EQUALITY, expected, (), ()
    if name in TRUTH_ASSERTS:
        return _read_condition(arguments[0])
    return subject, Strength.RELATION, f"{name} {expected}", (), ()


def _read_condition(node: Node) -> Parts:
    """Return the parts of a condition that is asserted to be true."""
    operator = get_text(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""
    left, right = get_field(node, "left"), get_field(node, "right")
    if operator in ("===", "==") and left is not None and right is not None:
        return normalised_source(left), Strength.EQUALITY, normalised_source(right), (), ()
    if operator == "||" and left is not None:
        return _read_condition(left)[0], Strength.TRUTH, "or more", (), ()
    if operator and left is not None and right is not None:
        return normalised_source(left), Strength.RELATION, f"{operator} {normalised_source(right)}", (), ()
    return normalised_source(node), Strength.TRUTH, "", (), ()
