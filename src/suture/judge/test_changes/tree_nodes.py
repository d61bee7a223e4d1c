"""Small readings of tree-sitter nodes that the readers of tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.syntax_tree import get_field

if TYPE_CHECKING:
    from tree_sitter import Node

FAILING_HANDLER_WORDS = ("throw", "fail", "panic", "Fatal", "Error(", "reject")
"""Words of a handler that does not lose the failure that it catches."""


def node_text(node: Node | None) -> str:
    """Return the text of a node; empty if there is none."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def line_of(node: Node) -> int:
    """Return the first line of a node, from 1."""
    return int(node.start_point[0]) + 1


def normalised_source(node: Node) -> str:
    """Return the tokens of a node without layout and comments."""
    tokens: list[str] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if part.type == "comment":
            continue
        if part.child_count == 0 or part.type in ("string", "template_string", "interpreted_string_literal"):
            tokens.append(node_text(part))
        else:
            stack.extend(reversed(part.children))
    return " ".join(token for token in tokens if token.strip())


def called_path(call: Node) -> list[str]:
    """Return the names of what a call calls, such as `["it", "skip"]`; empty if it is no chain of names.

    The calls within the chain are left out: `test.each([1])("a", f)` gives `["test", "each"]`.
    """
    names: list[str] = []
    node = get_field(call, "function")
    while node is not None:
        if node.type == "call_expression":
            node = get_field(node, "function")
        elif node.type in ("member_expression", "selector_expression"):
            names.append(node_text(get_field(node, "property", "field")))
            node = get_field(node, "object", "operand")
        elif node.type == "identifier":
            names.append(node_text(node))
            break
        else:
            return []
    return names[::-1]


def arguments_of(call: Node) -> list[Node]:
    """Return the arguments of a call."""
    arguments = get_field(call, "arguments")
    return [a for a in arguments.named_children if a.type != "comment"] if arguments is not None else []


def is_conditional(node: Node, body: Node) -> bool:
    """Return whether a node stands in a branch of a test's body that may not run."""
    above = node.parent
    below = node
    while above is not None and above.id != body.id:
        if above.type in ("if_statement", "ternary_expression", "switch_case", "expression_case"):
            condition = get_field(above, "condition")
            if condition is None or condition.id != below.id:
                return True
        if above.type == "binary_expression" and node_text(above.child_by_field_name("operator")) in (
            "&&",
            "||",
        ):
            return True
        below, above = above, above.parent
    return False


def is_guarded(node: Node, body: Node) -> bool:
    """Return whether a handler around a node catches its failure, and does not fail itself."""
    above, below = node.parent, node
    while above is not None and above.id != body.id:
        if above.type == "try_statement":
            tried, handler = get_field(above, "body"), get_field(above, "handler")
            is_tried = tried is not None and tried.id == below.id
            if is_tried and handler is not None and _loses_failure(handler):
                return True
        if above.type == "call_expression":
            member = get_field(above, "function")
            is_caught = member is not None and member.id == below.id and called_path(above)[-1:] == ["catch"]
            if is_caught or (
                member is not None
                and member.type == "member_expression"
                and node_text(get_field(member, "property")) == "catch"
                and below.id == member.id
            ):
                return True
        below, above = above, above.parent
    return False


def _loses_failure(handler: Node) -> bool:
    text = node_text(handler)
    return not any(word in text for word in FAILING_HANDLER_WORDS)
