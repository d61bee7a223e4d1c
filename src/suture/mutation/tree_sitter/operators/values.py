"""Values: constants, off by one, negative, a part of a sequence or the whole, a term that lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.tree_sitter.grammars import ARGUMENTS, CALLS, LISTS, MEMBERS, NUMBERS, PARTS, STRINGS
from suture.mutation.tree_sitter.value_kinds import kind_fit, guess_node_kind
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

FRACTION = re.compile(r"\d{1,9}\.\d{1,9}")
LONGEST = 10
"""Digits of a number that is off by one."""
MOST_STRINGS, MOST_KEYS = 12, 40
SUMS = ("+", "-")
BETWEEN = (" ", ".", ",", "-", "/", ":", "_")
"""What mostly stands between two texts."""
KEEPING = (
    *("return_statement", "variable_declarator", "assignment_expression", "expression_list"),
    *("augmented_assignment_expression", "arrow_function"),
)
"""What keeps a value, or gives it back."""
TURNED = {"+": "-", "-": "+"}
IDLE = 10.0
"""How much likelier what says nothing is wrong: nobody writes `+1`."""


def _constant(node: Node, view: SyntaxTree) -> Iterator[Change]:
    old = view.text(node)
    if node.type in NUMBERS and old.isdecimal() and len(old) < LONGEST:
        value = int(old)
        near = (value + 1, value - 1, 0, 1, -value, 2, 10, value * 2, value * 10)
        for place, other in enumerate(dict.fromkeys(near)):
            if other != value:
                yield view.replace_with(node, str(other), 1.0 / (1 + 0.25 * place))
        for new in _texts(view, NUMBERS):
            yield view.replace_with(node, new, 0.5)
    elif node.type in NUMBERS:
        for new in dict.fromkeys((*_near_fraction(old), *_texts(view, NUMBERS), f"{old}0", old[:-1])):
            if new != old and new[-1:].isdigit():
                yield view.replace_with(node, new, 0.4)
    elif node.type in ("true", "false"):
        yield view.replace_with(node, "false" if node.type == "true" else "true", 1.0)
    elif node.type in STRINGS and len(old) >= 2:
        quote, inner = old[0], old[1:-1]
        above = node.parent
        is_key = above is not None and above.type in PARTS and is_same_node(get_field(above, "index"), node)
        own = _keys(view) if is_key else _texts(view, STRINGS)[:MOST_STRINGS]
        cases = (
            *(inner.upper(), inner.lower(), inner.capitalize(), "", " ", inner.strip(), f"{inner} ", "0"),
            *(f" {inner}", inner.title(), inner.swapcase(), inner[1:], inner[:-1]),
        )
        for new in dict.fromkeys((*own, *(f"{quote}{text}{quote}" for text in cases))):
            if new != old:
                yield view.replace_with(node, new, 0.8 if new in own else 0.5)


def _near_fraction(old: str) -> list[str]:
    """Numbers near one with a point, as they are written."""
    if not FRACTION.fullmatch(old):
        return []
    value = Decimal(old)
    near = [-value, value + 1, value - 1, 2 * value, value / 2, 10 * value, value / 10]
    turned = [1 / value] if value and len(str(1 / value)) < LONGEST else []
    return [f"{other:f}" for other in (*near, *turned, *map(Decimal, (0, 1, 2)))]


def _texts(view: SyntaxTree, kinds: frozenset[str]) -> list[str]:
    """The constants of a file."""
    return list(dict.fromkeys(view.text(node) for node in walk(view.root) if node.type in kinds))[:40]


def _keys(view: SyntaxTree) -> list[str]:
    """What a file puts in brackets behind a value, by its text."""
    keys = (get_field(node, "index") for node in walk(view.root) if node.type in PARTS)
    texts = (view.text(key) for key in keys if key is not None and key.type in STRINGS)
    return list(dict.fromkeys(texts))[:MOST_KEYS]


def _off_by_one(node: Node, view: SyntaxTree) -> Iterator[Change]:
    weight = _place_weight(node, view)
    if not weight or not view.is_read(node) or node.type in (*STRINGS, *NUMBERS, "true", "false", "array"):
        return
    above = node.parent
    sign = above.child_by_field_name("operator") if above is not None else None
    if sign is not None and view.text(sign) in SUMS:
        return
    text = f"({view.text(node)})" if node.type == "ternary_expression" else view.text(node)
    yield view.replace_with(node, f"{text} - 1", weight)
    yield view.replace_with(node, f"{text} + 1", weight)


def _place_weight(node: Node, view: SyntaxTree) -> float:
    """How likely a number is off by one where it stands; 0 where nobody counts."""
    above = node.parent
    if above is None:
        return 0.0
    if above.type in (*PARTS, "slice_expression"):
        return 0.0 if is_same_node(get_field(above, "object", "operand"), node) else 1.0
    if above.type == "binary_expression":
        sign = above.child_by_field_name("operator")
        return 0.9 if sign is not None and view.text(sign)[0] in "<>=!" else 0.4
    if above.type in ARGUMENTS:
        return 0.7
    return 0.6 if above.type in KEEPING else 0.0


def _negative(node: Node, view: SyntaxTree) -> Iterator[Change]:
    if node.type == "unary_expression":
        part = get_field(node, "argument", "operand")
        sign = node.children[0].type
        if part is not None and sign != "!":
            yield view.replace_with(node, view.text(part), 1.0)
        if part is not None and sign in TURNED:
            idle = sign == "+" and part.type in NUMBERS
            yield view.replace_with(node, f"{TURNED[sign]}{view.parenthesised(part)}", IDLE if idle else 1.0)
    elif node.type in (*NUMBERS, *CALLS, "identifier") and view.is_read(node):
        above = node.parent
        if above is not None and above.type not in ("unary_expression", *MEMBERS, *PARTS):
            yield view.replace_with(node, f"-{view.text(node)}", 0.6)


MOST_COUNTERS = 3


def _part(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`items` where `items[0]` or the rest is meant, and the reverse."""
    whole = get_field(node, "object", "operand")
    if not view.is_read(node):
        return
    if node.type in (*PARTS, "slice_expression") and whole is not None:
        yield view.replace_with(node, view.text(whole), 0.7)
        index, last = get_field(node, "index"), f"{view.grammar.length.format(view.text(whole))} - 1"
        for other in ("0", last) if index is not None else ():
            yield view.replace_with(node, f"{view.text(whole)}[{other}]", 0.9)
    above = node.parent
    if node.type != "identifier" or above is None or above.type in (*PARTS, *MEMBERS):
        return
    name = view.text(node)
    set_to = get_field(above, "left") if above.type in ("assignment_expression", "assignment_statement") else None
    # `x = x` says nothing either: something was done to it.
    usual = 0.6 * (IDLE if set_to is not None and view.text(set_to) == name else 1.0)
    rest = (f"{name}.slice(1)", f"{name}.slice(0, -1)") if view.grammar.end else (f"{name}[1:]",)
    for part in (f"{name}[0]", *rest, f"{name}[{view.grammar.length.format(name)} - 1]"):
        yield view.replace_with(node, part, usual)
    for other in view.scope_names(node)[:6]:
        if other != name:
            yield view.replace_with(node, f"{name}[{other}]", 0.6)
            for form in view.grammar.rest:
                yield view.replace_with(node, form.format(name, other), 0.45)
    kinds, length = view.kinds(node), view.grammar.length
    names = [other for other in view.scope_names(node) if other != name]
    counters = [other for other in names if kinds.get(other) == "number"]
    for sequence in names:  # an element of another: what has a length has elements
        if counters and (kinds.get(sequence) == "sequence" or length.format(sequence) in view.source):
            for counter in counters[:MOST_COUNTERS]:
                yield view.replace_with(node, f"{sequence}[{counter}]", 0.5)


def _term(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A term or a factor that lacks; an element that a list lacks."""
    if node.type in LISTS:
        inner = view.text(node)[1:-1].strip()
        for value in ("0", *view.scope_names(node)[:6]) if node.type == "array" else ():
            yield view.replace_with(node, f"[{inner}, {value}]" if inner else f"[{value}]", 0.4)
            if inner:
                yield view.replace_with(node, f"[{value}, {inner}]", 0.3)
        return
    yield from _separator(node, view)
    above = node.parent
    if above is None or above.type not in (*KEEPING, *ARGUMENTS, *PARTS, "binary_expression"):
        return
    if not view.is_read(node) or node.type in (*STRINGS, "true", "false", "array", "null", "nil"):
        return
    if above.type in PARTS and is_same_node(above.named_children[0], node):
        return
    text, kinds = view.parenthesised(node), view.kinds(node)
    for other in view.scope_names(node)[:8]:
        likely = kind_fit(kinds.get(other, "unknown"), "number")
        for sign in ("+", "-", "*"):
            yield view.replace_with(node, f"{text} {sign} {other}", 0.6 * likely)
    powers = ("** 2",) if view.grammar.end else ()
    for term in ("* 2", "/ 2"):
        yield view.replace_with(node, f"{text} {term}", 0.61)
    for term in ("+ 1", "- 1", "% 10", "+ 2", "* -1", *powers):
        yield view.replace_with(node, f"{text} {term}", 0.5)


def _separator(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A text that lacks between two that are put together."""
    sign, left, right = (get_field(node, name) for name in ("operator", "left", "right"))
    if node.type != "binary_expression" or sign is None or left is None or right is None:
        return
    kinds = view.kinds(node)
    numbers = (guess_node_kind(side) == "number" or kinds.get(view.text(side)) == "number" for side in (left, right))
    if view.text(sign) != "+" or left.type in STRINGS or right.type in STRINGS or any(numbers):
        return
    own = [text for text in _texts(view, STRINGS) if len(text) == 3 and not text[1].isalnum()]
    for text in dict.fromkeys((*own, *(f'"{mark}"' for mark in BETWEEN))):
        yield view.replace_with(node, f"{view.text(left)} + {text} + {view.text(right)}", 0.7)


FAMILIES = {
    "constant": _constant,
    "off by one": _off_by_one,
    "negative": _negative,
    "part of a sequence": _part,
    "missing term": _term,
}
