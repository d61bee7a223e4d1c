"""Whole expressions: arguments, superfluous or missing calls, other expressions of the function."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.node_kinds import ARGUMENTS, CALLS, FUNCTIONS, MEMBERS, NUMBERS, PARTS
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    returned_values,
)
from suture.mutation.tree_sitter.value_kinds import guess_node_kind
from suture.mutation.tuning import (
    MAX_SORT_TABLES,
    MAX_SWAPPED_ARGUMENTS,
    MAX_TREE_SIBLINGS,
    MAX_WRAPPED_CHARS,
    UNFIT_KIND_FACTOR,
)

if TYPE_CHECKING:
    from tree_sitter import Node

WRAPPERS_BY_KIND: dict[ValueKind, tuple[str, ...]] = {
    "number": ("Math.", "math.", "% 2", "float64("),
    "text": ("LowerCase", "UpperCase", ".trim", ".split", "strings."),
    "sequence": (".sort", ".reverse", ".join", "new Set"),
}
"""Kind of value -> texts in the wrapping calls that are usual for it."""


def _change_arguments(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Swap two arguments, drop one, or add or remove a spread."""
    yield from _swap_with_receiver(node, tree)
    if node.type not in (*ARGUMENTS, "expression_list", "array"):
        return
    elements = node.named_children
    pairs = combinations(elements, 2) if len(elements) <= MAX_SWAPPED_ARGUMENTS else pairwise(elements)
    for one, other in pairs:
        if tree.text(one) != tree.text(other):
            swapped = (
                Edit(start=one.start_byte, end=one.end_byte, text=tree.text(other)),
                Edit(start=other.start_byte, end=other.end_byte, text=tree.text(one)),
            )
            note = f"{shorten(tree.text(one))} and {shorten(tree.text(other))} are swapped"
            yield Change(
                edits=swapped, note=note, weight=1.0 if is_same_node(one.next_named_sibling, other) else 0.7
            )
    if node.type == "array" and len(elements) > 1:
        for number in range(len(elements)):
            remaining = [tree.text(one) for at, one in enumerate(elements) if at != number]
            yield tree.replace_with(node, f"[{', '.join(remaining)}]", 0.4)
    if node.type not in ARGUMENTS:
        return
    for one in elements if tree.syntax.terminator else ():
        if one.type == "spread_element":
            yield tree.replace_with(one, tree.text(one).removeprefix("..."), 0.5)
        elif one.type in ("identifier", *MEMBERS, *CALLS):
            yield tree.replace_with(one, f"...{tree.text(one)}", 0.4)
    if len(elements) > 1:
        for number in range(len(elements)):
            remaining = [tree.text(one) for at, one in enumerate(elements) if at != number]
            yield tree.replace_with(node, f"({', '.join(remaining)})", 0.4)


def _swap_with_receiver(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Turn `a.f(b)` into `b.f(a)`."""
    called, elements = get_field(node, "function"), get_field(node, "arguments")
    if node.type not in CALLS or called is None or elements is None or called.type not in MEMBERS:
        return
    of = get_field(called, "object", "operand")
    if of is None or elements.named_child_count != 1 or elements.named_children[0].type in FUNCTIONS:
        return
    other = elements.named_children[0]
    if tree.text(of) != tree.text(other) and of.type in ("identifier", *PARTS, *MEMBERS):
        swapped = (
            Edit(start=of.start_byte, end=of.end_byte, text=tree.parenthesised(other)),
            Edit(start=other.start_byte, end=other.end_byte, text=tree.text(of)),
        )
        note = f"{shorten(tree.text(of))} and {shorten(tree.text(other))} are swapped"
        yield Change(edits=swapped, note=note, weight=0.6)


def _add_argument(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add an argument at the end, or at the start."""
    if node.type not in ARGUMENTS:
        return
    elements = [tree.text(one) for one in node.named_children]
    for value in ("1", "0", *tree.scope_names(node)[:8], "10", "-1", "2"):
        if value not in elements:
            yield tree.replace_with(node, f"({', '.join((*elements, value))})", 0.6)
            if elements:
                yield tree.replace_with(node, f"({', '.join((value, *elements))})", 0.3)


def _unwrap_call(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Remove a call: `f(x)` and `x.f()` become `x`; or use a part of its result."""
    if node.type not in CALLS:
        return
    called, elements = get_field(node, "function"), get_field(node, "arguments")
    if called is not None and called.type in MEMBERS:
        of = get_field(called, "object", "operand")
        if of is not None:
            yield tree.replace_with(node, tree.text(of), 0.9)
    for one in elements.named_children[:2] if elements is not None else ():
        if one.type not in FUNCTIONS:
            yield tree.replace_with(node, tree.text(one), 0.9)
    if elements is not None:
        edit = Edit(start=elements.end_byte, end=elements.end_byte, text="")
        for suffix in ("[0]", ".length", ".slice(1)") if tree.syntax.terminator else ("[0]", "[1:]"):
            changed = Edit(start=edit.start, end=edit.end, text=suffix)
            yield Change(edits=(changed,), note=f"{shorten(tree.text(node))}{suffix}", weight=0.4)


def _wrap_in_call(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Wrap an expression in a call, or call a method on it."""
    yield from _extend_chain(node, tree)
    if not tree.is_read(node) or node.end_byte - node.start_byte > MAX_WRAPPED_CHARS:
        return
    above, text = node.parent, tree.text(node)
    if above is None or above.type in (*MEMBERS, "unary_expression"):
        return
    kind = tree.kinds(node).get(text, guess_node_kind(node))
    forms = [
        *tree.syntax.wrappers,
        *(f"{name}({{}})" for name, taken in tree.functions.items() if taken == 1),
    ]
    for place, form in enumerate(forms):
        if node.type in NUMBERS and form.startswith(("{}.", "{}[")):
            continue  # `1.length` does not parse
        loose = form.startswith("{") or form[0] in "-*&"
        wrapped = form.replace("{}", tree.parenthesised(node) if loose else text)
        of = next((of for of, signs in WRAPPERS_BY_KIND.items() if any(sign in form for sign in signs)), kind)
        likeness = UNFIT_KIND_FACTOR if kind not in ("unknown", of) else 1.0
        yield tree.replace_with(node, wrapped, likeness * max(0.35, 1.0 - 0.03 * place))


def _extend_chain(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Insert a method into a chain, or sort by a lookup table."""
    above = node.parent
    is_link = above is not None and above.type in MEMBERS and is_same_node(get_field(above, "object"), node)
    if node.type not in CALLS or not tree.syntax.terminator:
        return
    suffixes = [form.removeprefix("{}") for form in tree.syntax.wrappers if form.startswith("{}.")]
    suffixes = suffixes if is_link else []
    for name in tree.scope_names(node)[:MAX_SORT_TABLES]:
        if f"{name}[" in tree.source or f"{name} = {{" in tree.source:
            suffixes.append(f".sort((a, b) => {name}[a] - {name}[b])")
    for place, text in enumerate(suffixes):
        edit = Edit(start=node.end_byte, end=node.end_byte, text=text)
        note = f"{text} after {shorten(tree.text(node))}"
        yield Change(edits=(edit,), note=note, weight=max(0.35, 0.8 - 0.03 * place))


def _use_sibling(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use another expression of the same function."""
    if not tree.is_read(node) or node.type == "parenthesized_expression":
        return
    above = node.parent
    if above is None or above.type in MEMBERS:
        return
    own = tree.text(node)
    mined = [
        (text, other)
        for text, other in tree.expressions(node)
        if text != own and (other.type != "identifier" or node.type != "identifier")
    ]
    mined.sort(key=lambda pair: abs(pair[1].start_byte - node.start_byte))
    for text, other in mined[:MAX_TREE_SIBLINGS]:
        alike = other.type == node.type or {other.type, node.type} <= {*PARTS, *MEMBERS, "identifier"}
        place = other.parent is not None and other.parent.type == above.type
        yield tree.replace_with(node, text, (1.0 if alike else 0.5) * (1.0 if place else 0.7))


def _change_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Return another value: a variable, or an empty value."""
    values = returned_values(node)
    if not values:
        return
    value = values[0]
    own = tree.text(value)
    for name in tree.scope_names(node)[:10]:
        if name != own:
            yield tree.replace_with(value, name, 0.8)
    for answer in tree.syntax.default_returns:
        if answer != own:
            yield tree.replace_with(value, answer, 0.5)


def _switch_key_and_property(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use `x[name]` in place of `x.name`, or the reverse."""
    of = get_field(node, "object")
    read, index = get_field(node, "property"), get_field(node, "index")
    if of is not None and read is not None and tree.text(read) in tree.scope_names(node):
        yield tree.replace_with(node, f"{tree.text(of)}[{tree.text(read)}]", 1.0)
    if of is not None and index is not None and index.type == "identifier":
        yield tree.replace_with(node, f"{tree.text(of)}.{tree.text(index)}", 0.5)
    above = node.parent
    if node.type in PARTS and above is not None and is_same_node(get_field(above, "object"), node):
        yield tree.replace_with(above, tree.text(node), 0.4)


OPERATORS: TreeOperators = {
    "arguments": _change_arguments,
    "missing_argument": _add_argument,
    "unwrap_call": _unwrap_call,
    "wrap_in_call": _wrap_in_call,
    "sibling_expression": _use_sibling,
    "return_value": _change_return,
    "subscript_key": _switch_key_and_property,
}
