"""Changes of whole expressions: arguments, missing or superfluous calls, other expressions of the function.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from suture.mutation import tuning
from suture.mutation.changes import Change, insert_text, shorten
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    replace_node,
    returned_values,
)
from suture.mutation.tree_sitter.value_kinds import (
    ARGUMENTS,
    CALLS,
    FUNCTIONS,
    MEMBERS,
    NUMBERS,
    SUBSCRIPTS,
    guess_node_kind,
)

if TYPE_CHECKING:
    from tree_sitter import Node

WRAPPER_FRAGMENTS: dict[ValueKind, tuple[str, ...]] = {
    "number": ("Math.", "math.", "% 2", "float64("),
    "text": ("LowerCase", "UpperCase", ".trim", ".split", "strings."),
    "sequence": (".sort", ".reverse", ".join", "new Set"),
}
"""Kind of value -> fragments of the wrapper templates that take such a value: `math.` of `math.Abs({})`."""


def _change_arguments(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Swap two arguments, drop one, or add or remove a spread; also for elements of lists."""
    yield from _swap_with_receiver(node, tree)
    if node.type not in (*ARGUMENTS, "expression_list", "array"):
        return
    elements = node.named_children
    # The pairs of a long list are too many: there only neighbours are swapped.
    pairs = combinations(elements, 2) if len(elements) <= tuning.MAX_SWAPPED_ARGUMENTS else pairwise(elements)
    for left, right in pairs:
        if tree.text(left) != tree.text(right):
            note = f"{shorten(tree.text(left))} and {shorten(tree.text(right))} are swapped"
            weight = 1.0 if is_same_node(left.next_named_sibling, right) else 0.7
            yield Change(edits=tree.swap(left, right), note=note, weight=weight)
    if node.type in ARGUMENTS and tree.is_javascript:
        for argument in elements:
            if argument.type == "spread_element":
                yield tree.replace_with(argument, tree.text(argument).removeprefix("..."), 0.5)
            elif argument.type in ("identifier", *MEMBERS, *CALLS):
                yield tree.replace_with(argument, f"...{tree.text(argument)}", 0.4)
    # An `expression_list` has as many values as its assignment or `return` needs.
    if node.type != "expression_list" and len(elements) > 1:
        texts = [tree.text(element) for element in elements]
        opening, closing = "[]" if node.type == "array" else "()"
        for dropped in range(len(texts)):
            remaining = ", ".join(texts[:dropped] + texts[dropped + 1 :])
            yield tree.replace_with(node, f"{opening}{remaining}{closing}", 0.4)


def _swap_with_receiver(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Turn `a.f(b)` into `b.f(a)`."""
    method, arguments = get_field(node, "function"), get_field(node, "arguments")
    if node.type not in CALLS or method is None or arguments is None or method.type not in MEMBERS:
        return
    receiver = get_field(method, "object", "operand")
    if receiver is None or arguments.named_child_count != 1:
        return
    argument = arguments.named_children[0]
    if argument.type in FUNCTIONS or receiver.type not in ("identifier", *SUBSCRIPTS, *MEMBERS):
        return
    receiver_text, argument_text = tree.text(receiver), tree.text(argument)
    if receiver_text != argument_text:
        edits = replace_node(receiver, tree.parenthesised(argument)), replace_node(argument, receiver_text)
        note = f"{shorten(receiver_text)} and {shorten(argument_text)} are swapped"
        yield Change(edits=edits, note=note, weight=0.6)


def _add_argument(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add an argument at the end, or at the start."""
    if node.type not in ARGUMENTS:
        return
    arguments = [tree.text(argument) for argument in node.named_children]
    for value in ("1", "0", *tree.scope_names(node)[:8], "10", "-1", "2"):  # chosen by judgement
        if value not in arguments:
            yield tree.replace_with(node, f"({', '.join((*arguments, value))})", 0.6)
            if arguments:
                yield tree.replace_with(node, f"({', '.join((value, *arguments))})", 0.3)


def _unwrap_call(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Remove a call, so that `f(x)` and `x.f()` become `x`, or use only a part of its result."""
    if node.type not in CALLS:
        return
    callee, arguments = get_field(node, "function"), get_field(node, "arguments")
    if callee is not None and callee.type in MEMBERS:
        receiver = get_field(callee, "object", "operand")
        if receiver is not None:
            yield tree.replace_with(node, tree.text(receiver), 0.9)
    if arguments is None:
        return
    for argument in arguments.named_children[:2]:  # the value is seldom a later one; by judgement
        if argument.type not in FUNCTIONS:
            yield tree.replace_with(node, tree.text(argument), 0.9)
    for suffix in ("[0]", ".length", ".slice(1)") if tree.is_javascript else ("[0]", "[1:]"):
        note = f"{shorten(tree.text(node))}{suffix}"
        yield insert_text(arguments.end_byte, suffix, note, 0.4)


def _wrap_in_call(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Wrap an expression in a call, or call a method on it."""
    yield from _extend_chain(node, tree)
    if not tree.is_read(node) or node.end_byte - node.start_byte > tuning.MAX_WRAPPED_CHARS:
        return
    above, text = node.parent, tree.text(node)
    if above is None or above.type in (*MEMBERS, "unary_expression"):
        return
    kind = tree.kinds(node).get(text, guess_node_kind(node))
    project_functions = (f"{name}({{}})" for name, arity in tree.functions.items() if arity == 1)
    for rank, template in enumerate((*tree.syntax.wrappers, *project_functions)):
        if node.type in NUMBERS and template.startswith(("{}.", "{}[")):
            continue  # `1.length` does not parse
        binds_tighter = template.startswith("{") or template[0] in "-*&"
        wrapped = template.replace("{}", tree.parenthesised(node) if binds_tighter else text)
        fits = kind in ("unknown", _accepted_kind(template, kind))
        # The templates are sorted by how often people forget them. The least weight is chosen by judgement.
        weight = max(0.35, 1.0 - 0.03 * rank)
        yield tree.replace_with(node, wrapped, weight if fits else tuning.UNFIT_KIND_FACTOR * weight)


def _accepted_kind(template: str, default: ValueKind) -> ValueKind:
    """Return the kind of value that a wrapper template takes; the default where it takes any kind."""
    for kind, fragments in WRAPPER_FRAGMENTS.items():
        if any(fragment in template for fragment in fragments):
            return kind
    return default


def _extend_chain(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Insert a method into a call chain, or sort the result of a call by a lookup table (JavaScript)."""
    if node.type not in CALLS or not tree.is_javascript:
        return
    above = node.parent
    suffixes: list[str] = []
    if above is not None and above.type in MEMBERS and is_same_node(get_field(above, "object"), node):
        suffixes += [form.removeprefix("{}") for form in tree.syntax.wrappers if form.startswith("{}.")]
    for name in tree.scope_names(node)[: tuning.MAX_SORT_TABLES]:
        # A variable that the file subscripts, or creates as an object.
        is_table = f"{name}[" in tree.source or f"{name} = {{" in tree.source
        if is_table:
            suffixes.append(f".sort((a, b) => {name}[a] - {name}[b])")
    for rank, suffix in enumerate(suffixes):
        note = f"{suffix} after {shorten(tree.text(node))}"
        weight = max(0.35, 0.8 - 0.03 * rank)
        yield insert_text(node.end_byte, suffix, note, weight)


def _use_sibling(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use another expression of the same function, the nearest first."""
    if not tree.is_read(node) or node.type == "parenthesized_expression":
        return  # what the parentheses hold is a node of its own
    above = node.parent
    if above is None or above.type in MEMBERS:
        return
    siblings = [
        (text, sibling)
        for text, sibling in tree.expressions(node)
        # The operator "variable" replaces one variable with another.
        if text != tree.text(node) and (sibling.type != "identifier" or node.type != "identifier")
    ]
    siblings.sort(key=lambda pair: abs(pair[1].start_byte - node.start_byte))
    for text, sibling in siblings[: tuning.MAX_TREE_SIBLINGS]:
        node_types = {sibling.type, node.type}
        is_alike = len(node_types) == 1 or node_types <= {*SUBSCRIPTS, *MEMBERS, "identifier"}
        has_same_role = sibling.parent is not None and sibling.parent.type == above.type
        yield tree.replace_with(node, text, (1.0 if is_alike else 0.5) * (1.0 if has_same_role else 0.7))


def _change_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Return another value: a variable, or a common default such as `null`."""
    values = returned_values(node)
    if not values:
        return
    value = values[0]
    for name in tree.scope_names(node)[:10]:  # chosen by judgement
        if name != tree.text(value):
            yield tree.replace_with(value, name, 0.8)
    for default in tree.syntax.default_returns:
        if default != tree.text(value):
            yield tree.replace_with(value, default, 0.5)


def _switch_key_and_property(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use `x[name]` in place of `x.name`, or the reverse; use `x[i]` in place of `x[i].name`."""
    owner = get_field(node, "object")
    member, index = get_field(node, "property"), get_field(node, "index")
    if owner is not None and member is not None and tree.text(member) in tree.scope_names(node):
        yield tree.replace_with(node, f"{tree.text(owner)}[{tree.text(member)}]", 1.0)
    if owner is not None and index is not None and index.type == "identifier":
        yield tree.replace_with(node, f"{tree.text(owner)}.{tree.text(index)}", 0.5)
    above = node.parent
    if node.type in SUBSCRIPTS and above is not None and is_same_node(get_field(above, "object"), node):
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
