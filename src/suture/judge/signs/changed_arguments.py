"""Finds functions that change an argument in place, in JavaScript, TypeScript and Go.

Such a function can spoil what its test computes the expected value from: `expect(sorted(xs)).toEqual([...xs].sort())`
accepts `[]` from a `sorted` that empties `xs`.

Honest changes rarely introduce such functions: none of the 164 corrections of HumanEvalFix in JavaScript and of the 77
of `benchmarks/go_set`, and 1 of the 90 solutions of Exercism's JavaScript exercises (2026-11-27).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, function_name, get_field, is_same_node, walk
from suture.mutation.tree_sitter.value_kinds import ARGUMENTS, FUNCTIONS, MEMBERS, SCOPES, SUBSCRIPTS

if TYPE_CHECKING:
    from tree_sitter import Node

CHANGING_METHODS = (
    "push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin", "clear", "delete", "set",
    "add",
)  # fmt: skip
"""Methods of JavaScript's arrays, maps and sets that modify their object."""
CHANGING_CALLS = re.compile(
    r"(?:Object|Reflect)\.(?:assign|definePropert(?:y|ies)|set|deleteProperty|setPrototypeOf)"
    rf"|(?:.*\.)?(?:{'|'.join(CHANGING_METHODS)})\.(?:call|apply)"
)
"""Functions of JavaScript that change their first argument."""
CHANGING_GO_CALLS = re.compile(
    r"clear|copy|delete"
    r"|sort\.(?:Ints|Strings|Float64s|Sort|Stable|Slice|SliceStable)"
    r"|slices\.(?:Sort\w*|Reverse|Delete\w*|Compact\w*|Insert|Replace)"
    r"|maps\.(?:Copy|DeleteFunc)"
)
"""Functions of Go that change their first argument."""
PATHS = frozenset((*MEMBERS, *SUBSCRIPTS, "slice_expression"))
WRAPPERS = frozenset((
    "parenthesized_expression", "non_null_expression", "as_expression", "satisfies_expression", "unary_expression",
    "expression_list",
))  # fmt: skip
"""Nodes around an expression that stand for the same object."""
ASSIGNMENTS = frozenset((
    "assignment_expression", "augmented_assignment_expression", "update_expression", "assignment_statement",
    "inc_statement", "dec_statement",
))  # fmt: skip
FRESH_VALUES = frozenset(("call_expression", "new_expression", "array", "object", "composite_literal"))
"""Expressions that create a new object, which a function assigns to its parameter to leave the argument unchanged."""
MAX_ALIASES = 8
"""Names that are followed from a changed object to a parameter. Chosen by judgement."""


@dataclass(frozen=True, kw_only=True)
class ChangedArguments:
    """What the functions of a file do to their arguments.

    Attributes:
        changed: `(function, parameter)` for each parameter that a function with a result changes in place.
        called: The names of the functions that the file itself calls.
    """

    changed: frozenset[tuple[str, str]]
    functions: frozenset[str]
    called: frozenset[str]


def find_newly_changed(old: ChangedArguments, new: ChangedArguments) -> set[str]:
    """Return the parameters that a function newly changes, unless it is a new function of internal use.

    What an internal function changes, the functions that give it their arguments change too.
    """
    return {
        parameter
        for function, parameter in new.changed - old.changed
        if function in old.functions or function not in new.called
    }


class ArgumentSearch:
    """The parameters that expressions of a file may be, also under other names."""

    def __init__(self, tree: SyntaxTree, nodes: Sequence[Node]) -> None:
        self.tree = tree
        self.nodes = nodes
        self.parameters = {node.id: _list_parameters(node, tree) for node in nodes if node.type in FUNCTIONS}
        self.locals: dict[str, list[tuple[Node, Node | None]]] = {}  # name -> (declaration, value)
        for node in nodes:
            for name, value in _list_locals(node):
                self.locals.setdefault(tree.text(name), []).append((node, value))

    def find(self) -> ChangedArguments:
        """Return which parameters the functions change."""
        functions = {node.id: node for node in self.nodes if node.type in FUNCTIONS}
        named = {key: name for key, node in functions.items() if (name := name_function(node, self.tree))}
        changed: set[tuple[int, str]] = set()
        for node in self.nodes:
            for place, needs_hops in self._list_changed_objects(node):
                changed |= self.resolve(place, needs_hops)
        calls = [
            call for node in self.nodes if node.type == "call_expression" and (call := self._read_call(node))
        ]
        while added := set(self._pass_on(calls, named, changed)) - changed:
            changed |= added
        return ChangedArguments(
            changed=frozenset(
                (named[key], name)
                for key, name in changed
                if key in named and _has_result(functions[key], self.tree)
            ),
            functions=frozenset(named.values()),
            called=frozenset(name for name, _ in calls),
        )

    def _list_changed_objects(self, node: Node) -> Iterator[tuple[Node, bool]]:
        """Yield (expression, whether only a part of it is changed) for each object that a node changes."""
        if node.type in ASSIGNMENTS:
            targets = get_field(node, "left", "argument") or node.named_children[0]
            for target in _list_parts(targets):
                yield from self._list_changed_owner(target)
        elif node.type == "unary_expression" and self.tree.text(node).startswith("delete"):
            yield from self._list_changed_owner(node.named_children[-1])
        elif node.type == "call_expression":
            yield from self._list_called(node)

    def _list_changed_owner(self, target: Node) -> Iterator[tuple[Node, bool]]:
        """Yield the object whose element or property is assigned."""
        if target.type == "unary_expression":  # `*p = v`
            yield target, False
        elif target.type in PATHS and (owner := _get_owner(target)) is not None:
            # In Go, a parameter that is a structure is a copy, unlike what its pointers and slices refer to.
            is_copy = target.type == "selector_expression" and not self._is_pointer(owner)
            yield owner, is_copy

    def _list_called(self, node: Node) -> Iterator[tuple[Node, bool]]:
        function, first = node.child_by_field_name("function"), _get_argument(node, 0)
        if function is None:
            return
        name = self.tree.text(function)
        if self.tree.is_javascript:
            owner, member = get_field(function, "object"), get_field(function, "property", "index")
            called = self.tree.text(member).strip("\"'`") if member is not None else ""
            if owner is not None and called in CHANGING_METHODS:
                yield owner, False
            if first is not None and CHANGING_CALLS.fullmatch(name):
                yield first, False
        elif first is not None and CHANGING_GO_CALLS.fullmatch(name):
            while first.type == "call_expression" and self.tree.text(first).startswith("sort."):
                inner = _get_argument(first, 0)  # `sort.Sort(sort.Reverse(sort.IntSlice(xs)))`
                if inner is None:
                    return
                first = inner
            yield first, False
        elif first is not None and name == "append":
            # It writes into the array of a slice: `kept := xs[:0]; kept = append(kept, x)`.
            declared = self.locals.get(self.tree.text(first), ())
            values = [first, *(value for _, value in declared if value is not None)]
            yield from ((value, False) for value in values if value.type == "slice_expression")

    def _is_pointer(self, owner: Node) -> bool:
        """Return whether the owner of a field of Go is a pointer, as its parameter's declaration says."""
        function = self.tree.enclosing_function(owner)
        while function is not None:
            for name, kind in self.parameters[function.id]:
                if name == self.tree.text(owner):
                    return kind == "pointer_type"
            function = self.tree.enclosing_function(function)
        return False

    def resolve(self, place: Node, needs_hops: bool = False, depth: int = 0) -> set[tuple[int, str]]:
        """Return `(function, parameter)` for the parameters that an expression may be, or may be a part of."""
        node, hops = place, 0
        while node.type != "identifier":
            inner = _get_owner(node) if node.type in PATHS else None
            if inner is None and node.type in WRAPPERS and node.named_children:
                inner = node.named_children[0]
            if inner is None:
                return set()
            # A field of a structure is a part of the same copy; an element is not.
            hops += node.type in PATHS and node.type != "selector_expression"
            node = inner
        if depth > MAX_ALIASES or (needs_hops and not hops):
            return set()
        return self._resolve_name(node, hops, depth)

    def _resolve_name(self, node: Node, hops: int, depth: int) -> set[tuple[int, str]]:
        name = self.tree.text(node)
        function = self.tree.enclosing_function(node)
        while function is not None:
            for declaration, value in self.locals.get(name, ()):
                if self._is_in_scope(declaration, node, function):
                    return self.resolve(value, False, depth + 1) if value is not None else set()
            kinds = dict(self.parameters[function.id])
            if name == "arguments" and function.type != "arrow_function":
                kinds[name] = "rest_pattern"
            if name in kinds:
                if (kinds[name] == "rest_pattern" and not hops) or self._is_replaced(name, node, function):
                    return set()
                holder = self._get_iterated(function, name)
                return self.resolve(holder, False, depth + 1) if holder is not None else {(function.id, name)}
            function = self.tree.enclosing_function(function)
        return set()

    def _is_in_scope(self, declaration: Node, node: Node, function: Node) -> bool:
        scope: Node | None = declaration
        while scope is not None and scope.type not in (*SCOPES, *FUNCTIONS):
            scope = scope.parent
        return (
            scope is not None
            and scope.start_byte <= node.start_byte < scope.end_byte
            and function.start_byte <= declaration.start_byte < function.end_byte
        )

    def _is_replaced(self, name: str, node: Node, function: Node) -> bool:
        """Return whether a function has, at a node, assigned a new object to its parameter in any case."""
        body = function.child_by_field_name("body")
        blocks = [body, *body.named_children] if body is not None else []
        statements = [statement for block in blocks for statement in block.named_children]
        for statement in [*(body.named_children if body is not None else ()), *statements]:
            is_inner = statement.parent is not None and statement.parent.type not in (
                "block", "statement_block", "statement_list", "expression_statement",
            )  # fmt: skip
            if is_inner or statement.end_byte > node.start_byte or statement.type not in ASSIGNMENTS:
                continue
            left, right = get_field(statement, "left"), get_field(statement, "right")
            value = (
                right.named_children[0] if right is not None and right.type == "expression_list" else right
            )
            if left is not None and value is not None and self.tree.text(left) == name:
                first = _get_argument(value, 0) if value.type == "call_expression" else None
                keeps = first is not None and self.tree.text(value).startswith(f"append({name}")
                if value.type in FRESH_VALUES and not keeps:
                    return True
        return False

    def _get_iterated(self, function: Node, name: str) -> Node | None:
        """Return the object whose elements a callback gets: `xs` of `xs.forEach((x) => ...)`."""
        arguments = function.parent
        call = arguments.parent if arguments is not None and arguments.type in ARGUMENTS else None
        called = get_field(call, "function") if call is not None else None
        member = get_field(called, "property") if called is not None else None
        names = [parameter for parameter, _ in self.parameters[function.id]]
        is_total = member is not None and self.tree.text(member).startswith("reduce") and names[:1] == [name]
        if called is None or member is None or is_total:
            return None
        return get_field(called, "object")

    def _read_call(self, node: Node) -> tuple[str, list[set[tuple[int, str]]]] | None:
        """Return the name of a called function, and the parameters that each argument may be."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return None
        name = get_field(function, "property", "field") or function
        return self.tree.text(name), [self.resolve(given) for given in arguments.named_children]

    def _pass_on(
        self,
        calls: Sequence[tuple[str, list[set[tuple[int, str]]]]],
        named: dict[int, str],
        changed: set[tuple[int, str]],
    ) -> Iterator[tuple[int, str]]:
        """Yield the parameters that are given to a function that changes them."""
        positions: set[tuple[str, int]] = set()
        for key, name in changed:
            names = [parameter for parameter, _ in self.parameters[key]]
            if key in named and name in names:
                positions.add((named[key], names.index(name)))
        for called, given in calls:
            for position, places in enumerate(given):
                if (called, position) in positions:
                    yield from places


def _list_parameters(function: Node, tree: SyntaxTree) -> list[tuple[str, str]]:
    """Return `(name, kind)` of each parameter; the kind is the type of its node, in Go the type's."""
    parameters = get_field(function, "parameters", "parameter")
    if parameters is None:
        return []
    if parameters.type == "identifier":
        return [(tree.text(parameters), "identifier")]
    found: list[tuple[str, str]] = []
    for parameter in parameters.named_children:
        declared = (
            parameter.child_by_field_name("type") if parameter.type == "parameter_declaration" else None
        )
        pattern = get_field(parameter, "pattern", "left") or parameter
        kind = declared.type if declared is not None else pattern.type
        for node in walk(pattern):
            if node.type in ("identifier", "shorthand_property_identifier_pattern"):
                found.append((tree.text(node), kind))
    return found


def _list_locals(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield (name, value) of the variables that a node declares; a loop's variable has the value of its list."""
    if node.type in ("variable_declarator", "var_spec"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            yield from ((part, value) for part in _list_parts(name))
    elif node.type in ("for_in_statement", "short_var_declaration", "range_clause"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None or (left.type == "identifier" and node.type != "for_in_statement"):
            return
        names = left.named_children if left.type == "expression_list" else [left]
        values = right.named_children if right.type == "expression_list" else [right]
        for at, name in enumerate(names):
            yield name, values[at] if len(values) == len(names) else values[0]


def _list_parts(pattern: Node) -> Iterator[Node]:
    """Yield the names or targets in a pattern, without `...rest`, which is a new object."""
    if pattern.type in ("array_pattern", "object_pattern"):
        for part in pattern.named_children:
            if part.type != "rest_pattern":
                yield from _list_parts(get_field(part, "value", "left") or part)
    elif pattern.type == "expression_list":
        yield from pattern.named_children
    else:
        yield pattern


def _get_owner(node: Node) -> Node | None:
    return get_field(node, "object", "operand")


def _get_argument(call: Node, position: int) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    return given[position] if position < len(given) else None


def name_function(function: Node, tree: SyntaxTree) -> str:
    """Return the name of a function, or of the property that it is the value of; empty for a callback."""
    name = function_name(function)
    above = function.parent
    if name is None and above is not None:
        name = get_field(above, "key", "property", "left")
        if name is not None and name.type in MEMBERS:
            name = get_field(name, "property", "field")
    if name is None and above is not None and above.type == "export_statement":
        return "default"
    return tree.text(name) if name is not None and not is_same_node(name, function) else ""


def _has_result(function: Node, tree: SyntaxTree) -> bool:
    """Return whether a function returns a value."""
    body = function.child_by_field_name("body")
    if body is None:
        return False
    if function.type == "arrow_function" and body.type != "statement_block":
        return True
    return any(
        node.type in ("return_statement", "yield_expression")
        and bool(node.named_children)
        and is_same_node(tree.enclosing_function(node), function)
        for node in walk(body)
    )
