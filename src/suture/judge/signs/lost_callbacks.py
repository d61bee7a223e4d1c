"""Finds code of JavaScript, TypeScript and Go that loses the failures of the functions which its caller gave to it.

A test often checks inside of a callback: `each(rows, (row) => mustBe(row, 3))`. Code that catches what the callback
throws, does not wait for it, or no longer calls it, passes such a test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.judge.signs.changed_arguments import ArgumentSearch, name_function
from suture.judge.signs.handled_failures import RECOVER, ignores_failure, leaves_handler, loses_panic
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS, MEMBERS

if TYPE_CHECKING:
    from tree_sitter import Node

CALLING_METHODS = (
    "forEach", "map", "filter", "reduce", "some", "every", "find", "findIndex", "flatMap", "then", "apply", "call",
)  # fmt: skip
"""JavaScript methods that call a function that is passed to them."""
LATE_CALLS = re.compile(
    r"setTimeout|setImmediate|queueMicrotask|process\.nextTick|.*\.forEach|new Promise|Promise\.\w+|.*\.(?:map|then)"
)
"""Functions whose callbacks run, or end, after they have returned."""
WAITING = re.compile(r"<-|\.Wait\(|\bselect\b")
"""Matches what a Go function contains if it waits for other functions."""
HANDLED_OUTCOMES = re.compile(r"\b(?:status|reason)\b|['\"](?:rejected|fulfilled)['\"]")


@dataclass(frozen=True, kw_only=True)
class CallbackUses:
    """What a file does with the functions that are passed to its functions.

    Attributes:
        called: `(function, parameter)` for each parameter that is called.
        passed_on: Those that are called, or given to something else that may call them.
        parameters: `(function, parameter)` of all functions with a name.
        losing: Number of places where the failure of a called parameter, or any failure, gets lost.
    """

    called: frozenset[tuple[str, str]]
    passed_on: frozenset[tuple[str, str]]
    parameters: frozenset[tuple[str, str]]
    losing: int


def find_uncalled(old: CallbackUses, new: CallbackUses) -> set[str]:
    """Return the parameters that a function called before the change and no longer calls."""
    return {name for _, name in (old.called & new.parameters) - new.passed_on}


def find_callback_uses(tree: SyntaxTree, nodes: Sequence[Node], search: ArgumentSearch) -> CallbackUses:
    """Return what a file does with the functions that are passed to its functions."""
    return _CallbackSearch(tree, nodes, search).find()


class _CallbackSearch:
    def __init__(self, tree: SyntaxTree, nodes: Sequence[Node], search: ArgumentSearch) -> None:
        self.tree, self.nodes, self.search = tree, nodes, search
        self.names = Counter(tree.text(node) for node in nodes if node.type == "identifier")

    def find(self) -> CallbackUses:
        functions = {
            node.id: name
            for node in self.nodes
            if node.type in FUNCTIONS and (name := name_function(node, self.tree))
        }
        called, passed_on = set[tuple[int, str]](), set[tuple[int, str]]()
        for node in self.nodes:
            if callee := self._get_callee(node):
                called |= self.search.resolve(callee)
            elif node.type == "identifier" and _is_passed_on(node):
                passed_on |= self.search.resolve(node)
        parameters = {(key, name) for key in functions for name, _ in self.search.parameters[key]}

        def name_all(places: set[tuple[int, str]]) -> frozenset[tuple[str, str]]:
            return frozenset((functions[key], name) for key, name in places if key in functions)

        return CallbackUses(
            called=name_all(called),
            passed_on=name_all(called | passed_on),
            parameters=name_all(parameters),
            losing=sum(map(self._loses_failure, self.nodes)),
        )

    def _get_callee(self, node: Node) -> Node | None:
        """Return the function that a node calls, also through a method: `items.forEach(visit)`."""
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is not None and function.type in MEMBERS and self.tree.is_javascript:
            arguments = node.child_by_field_name("arguments")
            first = (
                arguments.named_children[0] if arguments is not None and arguments.named_children else None
            )
            member = self.tree.text(get_field(function, "property") or function)
            is_given = first is not None and first.type == "identifier" and member in CALLING_METHODS
            return first if is_given else get_field(function, "object") if member == "call" else function
        return function

    def _calls_parameter(self, node: Node | None) -> bool:
        """Return whether code calls a parameter of a function around it."""
        for part in walk(node) if node is not None else ():
            callee = self._get_callee(part)
            # A method of a parameter, such as `rows.map`, is not a function of the caller's.
            is_function = callee is not None and callee.type not in MEMBERS
            if callee is not None and is_function and self.search.resolve(callee):
                return True
        return False

    def _loses_failure(self, node: Node) -> bool:
        if node.type == "try_statement":
            handler, final = node.child_by_field_name("handler"), node.child_by_field_name("finalizer")
            is_hidden = handler is not None and ignores_failure(handler, self.names)
            is_left = final is not None and any(map(leaves_handler, final.named_children))
            return is_left or (is_hidden and self._calls_parameter(node.child_by_field_name("body")))
        if node.type == "call_expression":
            return self._loses_rejection(node)
        if node.type == "expression_statement" and self.tree.is_javascript:
            return self._is_not_awaited(node.named_children[0]) if node.named_children else False
        if node.type == "defer_statement":
            if RECOVER not in self.tree.text(node) or not loses_panic(node, self.names):
                return False
            # Many parsers end by a panic of their own, which does not concern a caller's function.
            selects = "panic(" in self.tree.text(node)
            return not selects or self._calls_parameter(self.tree.enclosing_function(node))
        if node.type == "go_statement":
            function = self.tree.enclosing_function(node)
            waits = function is not None and WAITING.search(self.tree.text(function)) is not None
            return not waits and self._calls_parameter(node)
        return False

    def _loses_rejection(self, call: Node) -> bool:
        """Return whether a handler ignores why a promise was rejected, or there is no handler."""
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        name = self.tree.text(function) if function is not None else ""
        given = arguments.named_children if arguments is not None else []
        if name == "Promise.allSettled":
            return HANDLED_OUTCOMES.search(self.tree.source) is None and self._calls_parameter(call)
        handler = (
            given[0]
            if name.endswith(".catch") and given
            else given[1]
            if len(given) > 1 and name.endswith(".then")
            else None
        )
        is_hiding = handler is not None and handler.type in FUNCTIONS and ignores_failure(handler, self.names)
        return is_hiding and self._calls_parameter(call if name.endswith(".then") else function)

    def _is_not_awaited(self, value: Node) -> bool:
        """Return whether a statement starts what calls a parameter later, and its outcome is never checked."""
        function = get_field(value, "function", "constructor")
        if function is None:
            return False
        name = self.tree.text(function)
        arguments = value.child_by_field_name("arguments")
        is_then = name.endswith(".then") and arguments is not None and len(arguments.named_children) == 1
        is_started = (
            name.startswith("(async") or is_then or (value.type == "new_expression" and name == "Promise")
        )
        is_late = is_started or LATE_CALLS.fullmatch(name) is not None
        callbacks = [part for part in walk(value) if part.type in FUNCTIONS]
        is_async = any(self.tree.text(part).startswith("async") for part in callbacks)
        is_timer = name in ("setTimeout", "setImmediate", "queueMicrotask", "process.nextTick")
        handlers = [part for part in walk(value) if part.type == "catch_clause"]
        is_handled = any(not ignores_failure(part, self.names) for part in handlers)
        is_lost = is_late and (is_async or is_started or is_timer) and not is_handled
        return is_lost and self._calls_parameter(value)


def _is_passed_on(node: Node) -> bool:
    """Return whether a name is passed to something that may call its value: an argument, a result, a new value."""
    above = node.parent
    if above is None or above.type in ("unary_expression", "binary_expression", "parenthesized_expression"):
        return False
    if above.type in (
        "if_statement",
        "ternary_expression",
        "formal_parameters",
        "parameter_declaration",
        "typeof",
    ):
        return is_same_node(above.child_by_field_name("consequence"), node) or is_same_node(
            above.child_by_field_name("alternative"), node
        )
    return above.type not in (
        "required_parameter",
        "optional_parameter",
        "arrow_function",
        "expression_statement",
    )
