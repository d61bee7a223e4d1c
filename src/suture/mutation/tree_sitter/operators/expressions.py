"""Whole expressions: arguments, a call too many or one that lacks, what stands elsewhere in the function."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.changes import Change, shorten
from suture.mutation.tree_sitter.grammars import ARGUMENTS, CALLS, FUNCTIONS, MEMBERS, NUMBERS, PARTS
from suture.mutation.tree_sitter.value_kinds import guess_node_kind
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, returned_values, is_same_node

if TYPE_CHECKING:
    from tree_sitter import Node

OF_KIND: dict[ValueKind, tuple[str, ...]] = {
    "number": ("Math.", "math.", "% 2", "float64("),
    "text": ("LowerCase", "UpperCase", ".trim", ".split", "strings."),
    "sequence": (".sort", ".reverse", ".join", "new Set"),
}
"""Of what calls around a value are usual, by what stands in them."""
UNFIT = 0.25
"""What is left of the weight of one for a value that seems to be of another kind."""
MOST_MINED = 24
MOST_TABLES = 4
MOST_WIDE = 6
"""Arguments of which each pair is exchanged."""
MOST_LONG = 60
"""Characters of an expression around which a call is laid."""


def _arguments(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Two neighbours exchanged, or one left out; the two parameters of a function exchanged."""
    yield from _with_receiver(node, view)
    if node.type not in (*ARGUMENTS, "expression_list", "array"):
        return
    given = node.named_children
    pairs = combinations(given, 2) if len(given) <= MOST_WIDE else pairwise(given)
    for one, other in pairs:
        if view.text(one) != view.text(other):
            swapped = (
                Edit(start=one.start_byte, end=one.end_byte, text=view.text(other)),
                Edit(start=other.start_byte, end=other.end_byte, text=view.text(one)),
            )
            note = f"{shorten(view.text(one))} and {shorten(view.text(other))} exchanged"
            yield Change(edits=swapped, note=note, weight=1.0 if is_same_node(one.next_named_sibling, other) else 0.7)
    if node.type == "array" and len(given) > 1:
        for number in range(len(given)):
            kept = [view.text(one) for at, one in enumerate(given) if at != number]
            yield view.replace_with(node, f"[{', '.join(kept)}]", 0.4)
    if node.type not in ARGUMENTS:
        return
    for one in given if view.grammar.end else ():
        if one.type == "spread_element":
            yield view.replace_with(one, view.text(one).removeprefix("..."), 0.5)
        elif one.type in ("identifier", *MEMBERS, *CALLS):
            yield view.replace_with(one, f"...{view.text(one)}", 0.4)
    if len(given) > 1:
        for number in range(len(given)):
            kept = [view.text(one) for at, one in enumerate(given) if at != number]
            yield view.replace_with(node, f"({', '.join(kept)})", 0.4)


def _with_receiver(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`a.f(b)` where `b.f(a)` is meant."""
    called, given = get_field(node, "function"), get_field(node, "arguments")
    if node.type not in CALLS or called is None or given is None or called.type not in MEMBERS:
        return
    of = get_field(called, "object", "operand")
    if of is None or given.named_child_count != 1 or given.named_children[0].type in FUNCTIONS:
        return
    other = given.named_children[0]
    if view.text(of) != view.text(other) and of.type in ("identifier", *PARTS, *MEMBERS):
        swapped = (
            Edit(start=of.start_byte, end=of.end_byte, text=view.parenthesised(other)),
            Edit(start=other.start_byte, end=other.end_byte, text=view.text(of)),
        )
        note = f"{shorten(view.text(of))} and {shorten(view.text(other))} exchanged"
        yield Change(edits=swapped, note=note, weight=0.6)


def _missing_argument(node: Node, view: SyntaxTree) -> Iterator[Change]:
    if node.type not in ARGUMENTS:
        return
    given = [view.text(one) for one in node.named_children]
    for value in ("1", "0", *view.scope_names(node)[:8], "10", "-1", "2"):
        if value not in given:
            yield view.replace_with(node, f"({', '.join((*given, value))})", 0.6)
            if given:
                yield view.replace_with(node, f"({', '.join((value, *given))})", 0.3)


def _within(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A call that is too many: `f(x)` becomes `x`, `x.f()` too."""
    if node.type not in CALLS:
        return
    called, given = get_field(node, "function"), get_field(node, "arguments")
    if called is not None and called.type in MEMBERS:
        of = get_field(called, "object", "operand")
        if of is not None:
            yield view.replace_with(node, view.text(of), 0.9)
    for one in given.named_children[:2] if given is not None else ():
        if one.type not in FUNCTIONS:
            yield view.replace_with(node, view.text(one), 0.9)
    if given is not None:
        edit = Edit(start=given.end_byte, end=given.end_byte, text="")
        for behind in ("[0]", ".length", ".slice(1)") if view.grammar.end else ("[0]", "[1:]"):
            changed = Edit(start=edit.start, end=edit.end, text=behind)
            yield Change(edits=(changed,), note=f"{shorten(view.text(node))}{behind}", weight=0.4)


def _around(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A call that lacks around an expression, or behind it."""
    yield from _within_chain(node, view)
    if not view.is_read(node) or node.end_byte - node.start_byte > MOST_LONG:
        return
    above, text = node.parent, view.text(node)
    if above is None or above.type in (*MEMBERS, "unary_expression"):
        return
    kind = view.kinds(node).get(text, guess_node_kind(node))
    forms = [*view.grammar.around, *(f"{name}({{}})" for name, taken in view.functions.items() if taken == 1)]
    for place, form in enumerate(forms):
        if node.type in NUMBERS and form.startswith(("{}.", "{}[")):
            continue  # `1.length` cannot be read
        loose = form.startswith("{") or form[0] in "-*&"
        made = form.replace("{}", view.parenthesised(node) if loose else text)
        of = next((of for of, signs in OF_KIND.items() if any(sign in form for sign in signs)), kind)
        likeness = UNFIT if kind not in ("unknown", of) else 1.0
        yield view.replace_with(node, made, likeness * max(0.35, 1.0 - 0.03 * place))


def _within_chain(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A method that lacks between two others; an order by what a table says of the elements."""
    above = node.parent
    is_link = above is not None and above.type in MEMBERS and is_same_node(get_field(above, "object"), node)
    if node.type not in CALLS or not view.grammar.end:
        return
    behind = [form.removeprefix("{}") for form in view.grammar.around if form.startswith("{}.")]
    behind = behind if is_link else []
    for name in view.scope_names(node)[:MOST_TABLES]:
        if f"{name}[" in view.source or f"{name} = {{" in view.source:
            behind.append(f".sort((a, b) => {name}[a] - {name}[b])")
    for place, text in enumerate(behind):
        edit = Edit(start=node.end_byte, end=node.end_byte, text=text)
        note = f"{text} behind {shorten(view.text(node))}"
        yield Change(edits=(edit,), note=note, weight=max(0.35, 0.8 - 0.03 * place))


def _sibling(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """An expression that the same function uses elsewhere."""
    if not view.is_read(node) or node.type == "parenthesized_expression":
        return
    above = node.parent
    if above is None or above.type in MEMBERS:
        return
    own = view.text(node)
    mined = [
        (text, other)
        for text, other in view.expressions(node)
        if text != own and (other.type != "identifier" or node.type != "identifier")
    ]
    mined.sort(key=lambda pair: abs(pair[1].start_byte - node.start_byte))
    for text, other in mined[:MOST_MINED]:
        alike = other.type == node.type or {other.type, node.type} <= {*PARTS, *MEMBERS, "identifier"}
        place = other.parent is not None and other.parent.type == above.type
        yield view.replace_with(node, text, (1.0 if alike else 0.5) * (1.0 if place else 0.7))


def _returned(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Another value that is given back: a variable, or one that says nothing."""
    values = returned_values(node)
    if not values:
        return
    value = values[0]
    own = view.text(value)
    for name in view.scope_names(node)[:10]:
        if name != own:
            yield view.replace_with(value, name, 0.8)
    for answer in view.grammar.answers:
        if answer != own:
            yield view.replace_with(value, answer, 0.5)


def _key(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`x.name` where `x[name]` is meant, and the reverse."""
    of = get_field(node, "object")
    read, index = get_field(node, "property"), get_field(node, "index")
    if of is not None and read is not None and view.text(read) in view.scope_names(node):
        yield view.replace_with(node, f"{view.text(of)}[{view.text(read)}]", 1.0)
    if of is not None and index is not None and index.type == "identifier":
        yield view.replace_with(node, f"{view.text(of)}.{view.text(index)}", 0.5)
    above = node.parent
    if node.type in PARTS and above is not None and is_same_node(get_field(above, "object"), node):
        yield view.replace_with(above, view.text(node), 0.4)


FAMILIES = {
    "arguments": _arguments,
    "missing argument": _missing_argument,
    "call within": _within,
    "call around": _around,
    "sibling expression": _sibling,
    "returned": _returned,
    "key": _key,
}
