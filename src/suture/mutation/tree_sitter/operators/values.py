"""Changes values: constants, off-by-one errors, signs, elements and slices of sequences, missing terms.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from suture.mutation import tuning
from suture.mutation.changes import Change, rewrite_number, rewrite_text
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node, walk
from suture.mutation.tree_sitter.value_kinds import (
    ARGUMENTS,
    CALLS,
    LISTS,
    MEMBERS,
    NUMBERS,
    STRINGS,
    SUBSCRIPTS,
    guess_node_kind,
    kind_fit,
)

if TYPE_CHECKING:
    from tree_sitter import Node

FRACTION = re.compile(r"\d{1,9}\.\d{1,9}")
"""Matches a decimal fraction of few digits. The limits are chosen by judgement; not measured."""
ADDITIVE_SIGNS = ("+", "-")
SEPARATORS = (" ", ".", ",", "-", "/", ":", "_")
"""Common separators of two concatenated strings."""
VALUE_PARENTS = (
    "return_statement", "variable_declarator", "assignment_expression", "expression_list",
    "augmented_assignment_expression", "arrow_function",
)  # fmt: skip
"""Nodes that assign or return a value."""
OPPOSITE_SIGNS = {"+": "-", "-": "+"}


def _change_constant(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a constant with a similar one, or with another of the file."""
    old = tree.text(node)
    if node.type in NUMBERS and old.isdecimal() and len(old) < tuning.MAX_INTEGER_DIGITS:
        value = int(old)
        similar_numbers = (value + 1, value - 1, 0, 1, -value, 2, 10, value * 2, value * 10)
        for rank, other in enumerate(dict.fromkeys(similar_numbers)):
            if other != value:
                yield tree.replace_with(node, str(other), 1.0 / (1 + 0.25 * rank))
        for new in _collect_literals(tree, NUMBERS):
            yield tree.replace_with(node, new, 0.5)
    elif node.type in NUMBERS:
        candidates = (*_similar_fractions(old), *_collect_literals(tree, NUMBERS), f"{old}0", old[:-1])
        for new in dict.fromkeys(candidates):
            if new != old and new[-1:].isdigit():  # without its last digit, `1.5` would be `1.`
                yield tree.replace_with(node, new, 0.4)
    elif node.type in ("true", "false"):
        yield tree.replace_with(node, "false" if node.type == "true" else "true", 1.0)
    elif node.type in STRINGS and len(old) >= 2:
        quote, inner = old[0], old[1:-1]
        subscript = node.parent if node.parent is not None and node.parent.type in SUBSCRIPTS else None
        is_key = subscript is not None and is_same_node(get_field(subscript, "index"), node)
        strings = _collect_literals(tree, STRINGS)[: tuning.MAX_TREE_STRINGS]
        literals = _collect_keys(tree) if is_key else strings
        variants = (
            inner.upper(), inner.lower(), inner.capitalize(), "", " ", inner.strip(), f"{inner} ", "0",
            f" {inner}", inner.title(), inner.swapcase(), inner[1:], inner[:-1],
        )  # fmt: skip
        for new in dict.fromkeys((*literals, *(f"{quote}{text}{quote}" for text in variants))):
            if new != old:
                yield tree.replace_with(node, new, 0.8 if new in literals else 0.5)


def _use_expected_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Change a literal as the actual value of a failing test differs from the expected one."""
    text = tree.text(node)
    if node.type in (*STRINGS, "template_string"):
        for first, last, new, weight in rewrite_text(text, tree.differences):
            yield tree.replace_with(node, f"{text[:first]}{new}{text[last:]}", weight)
    elif node.type in NUMBERS and text.isdecimal() and len(text) < tuning.MAX_INTEGER_DIGITS:
        for number, weight in rewrite_number(int(text), tree.differences):
            yield tree.replace_with(node, repr(number), weight)


def _similar_fractions(old: str) -> list[str]:
    """Return numbers similar to a decimal fraction, as source."""
    if not FRACTION.fullmatch(old):
        return []
    value = Decimal(old)
    similar_numbers = [-value, value + 1, value - 1, 2 * value, value / 2, 10 * value, value / 10]
    # The reciprocal of 0.25 is offered, that of 0.3 has too many digits.
    reciprocal = [1 / value] if value and len(str(1 / value)) < tuning.MAX_INTEGER_DIGITS else []
    return [f"{other:f}" for other in (*similar_numbers, *reciprocal, *map(Decimal, (0, 1, 2)))]


def _collect_literals(tree: SyntaxTree, node_types: frozenset[str]) -> list[str]:
    """Return a file's first literals of some node types, as written and each once. 40 is by judgement."""

    def collect(tree: SyntaxTree) -> list[str]:
        return list(dict.fromkeys(tree.text(node) for node in walk(tree.root) if node.type in node_types))[
            :40
        ]

    # A table asks for the same literals at each of its entries.
    return tree.cached(f"literals {min(node_types)}", collect)


def _collect_keys(tree: SyntaxTree) -> list[str]:
    """Return the string literals that a file uses as subscripts."""
    return tree.cached("keys", _read_keys)


def _read_keys(tree: SyntaxTree) -> list[str]:
    keys = (get_field(node, "index") for node in walk(tree.root) if node.type in SUBSCRIPTS)
    texts = (tree.text(key) for key in keys if key is not None and key.type in STRINGS)
    return list(dict.fromkeys(texts))[: tuning.MAX_TREE_KEYS]


def _add_or_subtract_one(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add one to a number, or subtract one."""
    weight = _position_weight(node, tree)
    if not weight or not tree.is_read(node) or node.type in (*STRINGS, *NUMBERS, "true", "false", "array"):
        return
    above = node.parent
    sign = above.child_by_field_name("operator") if above is not None else None
    if sign is not None and tree.text(sign) in ADDITIVE_SIGNS:
        return  # the whole sum gets the one
    text = f"({tree.text(node)})" if node.type == "ternary_expression" else tree.text(node)
    yield tree.replace_with(node, f"{text} - 1", weight)
    yield tree.replace_with(node, f"{text} + 1", weight)


def _position_weight(node: Node, tree: SyntaxTree) -> float:
    """Return how likely a number is off by one in its position; 0 in positions where that is unusual."""
    above = node.parent
    if above is None:
        return 0.0
    if above.type in (*SUBSCRIPTS, "slice_expression"):
        return 0.0 if is_same_node(get_field(above, "object", "operand"), node) else 1.0
    if above.type == "binary_expression":
        sign = above.child_by_field_name("operator")
        return 0.9 if sign is not None and tree.text(sign)[0] in "<>=!" else 0.4
    if above.type in ARGUMENTS:
        return 0.7
    return 0.6 if above.type in VALUE_PARENTS else 0.0


def _change_sign(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Remove or change a unary sign, or negate a value."""
    if node.type == "unary_expression":
        operand = get_field(node, "argument", "operand")
        sign = node.children[0].type
        if operand is not None and sign != "!":
            yield tree.replace_with(node, tree.text(operand), 1.0)
        if operand is not None and sign in OPPOSITE_SIGNS:
            is_pointless = sign == "+" and operand.type in NUMBERS
            negated = f"{OPPOSITE_SIGNS[sign]}{tree.parenthesised(operand)}"
            yield tree.replace_with(node, negated, tuning.POINTLESS_SIGN_FACTOR if is_pointless else 1.0)
    elif node.type in (*NUMBERS, *CALLS, "identifier") and tree.is_read(node):
        above = node.parent
        if above is not None and above.type not in ("unary_expression", *MEMBERS, *SUBSCRIPTS):
            yield tree.replace_with(node, f"-{tree.text(node)}", 0.6)


def _switch_element_and_whole(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use an element or a slice of a sequence instead of the whole, or the reverse."""
    if not tree.is_read(node):
        return
    sequence, above = get_field(node, "object", "operand"), node.parent
    if node.type in (*SUBSCRIPTS, "slice_expression") and sequence is not None:
        name = tree.text(sequence)
        yield tree.replace_with(node, name, 0.7)
        if get_field(node, "index") is not None:
            for index in ("0", f"{tree.syntax.length.format(name)} - 1"):
                yield tree.replace_with(node, f"{name}[{index}]", 0.9)
    if node.type == "identifier" and above is not None and above.type not in (*SUBSCRIPTS, *MEMBERS):
        yield from _take_part(node, above, tree)
        yield from _use_element_of_another(node, tree)


def _take_part(node: Node, above: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use an element or a slice of a variable instead of the whole."""
    name = tree.text(node)
    is_assignment = above.type in ("assignment_expression", "assignment_statement")
    target = get_field(above, "left") if is_assignment else None
    # `x = x` has no effect: an operation on the right side is missing.
    is_pointless = target is not None and tree.text(target) == name
    weight = 0.6 * (tuning.POINTLESS_SIGN_FACTOR if is_pointless else 1.0)
    slices = (f"{name}.slice(1)", f"{name}.slice(0, -1)") if tree.is_javascript else (f"{name}[1:]",)
    for part in (f"{name}[0]", *slices, f"{name}[{tree.syntax.length.format(name)} - 1]"):
        yield tree.replace_with(node, part, weight)
    for index in tree.scope_names(node)[:6]:  # this number and those in `_add_term` are by judgement
        if index != name:
            yield tree.replace_with(node, f"{name}[{index}]", 0.6)
            for template in tree.syntax.slices:
                yield tree.replace_with(node, template.format(name, index), 0.45)


def _use_element_of_another(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use an element of another sequence, whose index is a numeric variable."""
    kinds = tree.kinds(node)
    names = [name for name in tree.scope_names(node) if name != tree.text(node)]
    counters = [name for name in names if kinds.get(name) == "number"]
    for name in names:
        # A variable whose length the file reads is a sequence too.
        is_sequence = kinds.get(name) == "sequence" or tree.syntax.length.format(name) in tree.source
        for counter in counters[: tuning.MAX_COUNTERS] if is_sequence else ():
            yield tree.replace_with(node, f"{name}[{counter}]", 0.5)


def _add_term(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a term or a factor, or an element of a list."""
    if node.type in LISTS:
        elements = tree.text(node)[1:-1].strip()
        # In Go, the elements of a literal may also be fields of a structure.
        for value in ("0", *tree.scope_names(node)[:6]) if node.type == "array" else ():
            yield tree.replace_with(node, f"[{elements}, {value}]" if elements else f"[{value}]", 0.4)
            if elements:
                yield tree.replace_with(node, f"[{value}, {elements}]", 0.3)
        return
    yield from _add_separator(node, tree)
    above = node.parent
    if above is None or above.type not in (*VALUE_PARENTS, *ARGUMENTS, *SUBSCRIPTS, "binary_expression"):
        return
    if not tree.is_read(node) or node.type in (*STRINGS, "true", "false", "array", "null", "nil"):
        return
    if above.type in SUBSCRIPTS and is_same_node(above.named_children[0], node):
        return  # what is subscripted is not a number
    text, kinds = tree.parenthesised(node), tree.kinds(node)
    for other in tree.scope_names(node)[:8]:
        fit = kind_fit(kinds.get(other, "unknown"), "number")
        for sign in ("+", "-", "*"):
            yield tree.replace_with(node, f"{text} {sign} {other}", 0.6 * fit)
    powers = ("** 2",) if tree.is_javascript else ()
    for term in ("* 2", "/ 2"):
        yield tree.replace_with(node, f"{text} {term}", 0.61)  # just above a variable of a fitting kind
    for term in ("+ 1", "- 1", "% 10", "+ 2", "* -1", *powers):
        yield tree.replace_with(node, f"{text} {term}", 0.5)


def _add_separator(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a separator between two concatenated strings."""
    sign, left, right = (get_field(node, name) for name in ("operator", "left", "right"))
    if node.type != "binary_expression" or sign is None or left is None or right is None:
        return
    kinds = tree.kinds(node)
    numbers = (
        guess_node_kind(side) == "number" or kinds.get(tree.text(side)) == "number" for side in (left, right)
    )
    if tree.text(sign) != "+" or left.type in STRINGS or right.type in STRINGS or any(numbers):
        return
    literals = _collect_literals(tree, STRINGS)
    # A literal of three characters is a single character in quotes.
    own_separators = [text for text in literals if len(text) == 3 and not text[1].isalnum()]
    for separator in dict.fromkeys((*own_separators, *(f'"{text}"' for text in SEPARATORS))):
        yield tree.replace_with(node, f"{tree.text(left)} + {separator} + {tree.text(right)}", 0.7)


OPERATORS: TreeOperators = {
    "constant": _change_constant,
    "expected_value": _use_expected_value,
    "off_by_one": _add_or_subtract_one,
    "sign_change": _change_sign,
    "sequence_part": _switch_element_and_whole,
    "missing_term": _add_term,
}
