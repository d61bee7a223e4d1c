"""The syntax tree of a file with what operators need: texts, enclosing functions, names and caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from suture.core.records import Language
from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.operator_names import OperatorName
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.node_kinds import (
    BLOCKS,
    DECLARES,
    DECLARING_LISTS,
    EXPRESSIONS,
    FUNCTIONS,
    MEMBERS,
    SCOPES,
    get_syntax,
    parse_source_tree,
)
from suture.mutation.tree_sitter.value_kinds import find_kind_evidence
from suture.mutation.tuning import MAX_SIBLING_CHARS

if TYPE_CHECKING:
    from tree_sitter import Node

T = TypeVar("T")
TreeOperators: TypeAlias = "Mapping[OperatorName, Callable[[Node, SyntaxTree], Iterator[Change]]]"
"""Name of an operator -> the function that yields its changes of a node, the likeliest of weight 1."""
PARENTHESISED_STATEMENTS = (
    "if_statement",
    "while_statement",
    "do_statement",
    "switch_statement",
    "with_statement",
)
"""Statements whose syntax has parentheses around an expression."""


VALUELESS_FIELDS = ("function", "name", "constructor", "parameter", "label", "type", "key", "path", "source")
"""Fields that hold no expression whose value is used."""


class SyntaxTree:
    """The tree of one file.

    Args:
        text: The file.
        path: Its path, whose extension may select a dialect.
        language: The language of the file.
    """

    def __init__(self, text: str, path: str, language: Language) -> None:
        self.source = text
        self.raw = text.encode("utf-8", "surrogatepass")
        self.syntax = get_syntax(language)
        self.root = parse_source_tree(text, path, language)
        self._function_facts: dict[int, tuple[dict[str, list[range]], list[tuple[str, Node]]]] = {}
        self._kinds: dict[int, dict[str, ValueKind]] = {}
        self._cache: dict[str, Any] = {}

    def cached(self, what: str, find: Callable[[SyntaxTree], T]) -> T:
        """Return what `find` computes from the whole file, computed once per `what`."""
        if what not in self._cache:
            self._cache[what] = find(self)
        found: T = self._cache[what]
        return found

    def text(self, node: Node) -> str:
        """Return the text of a node."""
        return self.raw[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def replace_with(self, node: Node, text: str, weight: float) -> Change:
        """Return the change that replaces a node with a text."""
        return Change(
            edits=(Edit(start=node.start_byte, end=node.end_byte, text=text),),
            note=f"{shorten(self.text(node))} becomes {shorten(text)}",
            weight=weight,
        )

    def scope_names(self, node: Node) -> list[str]:
        """Return variables and parameters that a node may use: of its function, then of outer functions."""
        last = max(node.start_byte, node.end_byte - 1)
        return [name for name, reaches in self._declared(node) if any(last in reach for reach in reaches)]

    def kinds(self, node: Node) -> dict[str, ValueKind]:
        """Return name -> kind of value, in the outermost function around a node."""
        function, outer = None, self.enclosing_function(node)
        while outer is not None:
            function, outer = outer, self.enclosing_function(outer)
        if function is None:
            return {}
        if function.id not in self._kinds:
            typed_names = (
                (self.text(name), kind) for part in walk(function) for name, kind in find_kind_evidence(part)
            )
            found: dict[str, ValueKind] = {}
            for name, kind in typed_names:
                found.setdefault(name, kind)
            self._kinds[function.id] = found
        return self._kinds[function.id]

    def is_declared(self, node: Node) -> bool:
        """Return whether a function around a name declares it."""
        return self.text(node) in (name for name, _ in self._declared(node))

    def _declared(self, node: Node) -> Iterator[tuple[str, list[range]]]:
        """Yield names that the functions around a node declare, each with the bytes where it may be used."""
        seen: set[str] = set()
        function = self.enclosing_function(node)
        while function is not None:
            own = self._facts_of(function)[0]
            yield from ((name, reaches) for name, reaches in own.items() if name not in seen)
            seen |= own.keys()
            function = self.enclosing_function(function)

    def expressions(self, node: Node) -> list[tuple[str, Node]]:
        """Return the small expressions of the function around a node, each text once."""
        function = self.enclosing_function(node)
        return self._facts_of(function)[1] if function is not None else []

    def enclosing_function(self, node: Node) -> Node | None:
        """Return the innermost function that holds a node."""
        above = node.parent
        while above is not None and above.type not in FUNCTIONS:
            above = above.parent
        return above

    def is_read(self, node: Node) -> bool:
        """Return whether a node is an expression whose value is used, not a name that is declared or set."""
        above = node.parent
        if above is None or node.type not in EXPRESSIONS:
            return False
        if any(is_same_node(above.child_by_field_name(name), node) for name in VALUELESS_FIELDS):
            return False
        if above.type in ("expression_statement", "import_specifier", "namespace_import", "import_clause"):
            return False
        if above.type == "pair_pattern":
            return False
        if node.type == "parenthesized_expression" and above.type in PARENTHESISED_STATEMENTS:
            return False  # these parentheses belong to the statement
        if is_same_node(above.child_by_field_name("left"), node) and above.type != "binary_expression":
            return False
        if above.type == "expression_list" and above.parent is not None:
            return not is_same_node(above.parent.child_by_field_name("left"), above)
        if above.type in MEMBERS:
            return node.type == "identifier" and not is_same_node(above.child_by_field_name("property"), node)
        return above.type not in DECLARES or is_same_node(above.child_by_field_name("value"), node)

    def is_statement(self, node: Node) -> bool:
        """Return whether a node is a statement of a block."""
        above = node.parent
        if above is None or above.type not in BLOCKS or not node.is_named or node.type == "comment":
            return False
        return not is_same_node(above.child_by_field_name("value"), node)  # the value of a `case`

    def parenthesised(self, node: Node) -> str:
        """Return the text of a node, in parentheses where a neighbouring operator would split it."""
        loose = node.type in ("binary_expression", "ternary_expression", "arrow_function", "unary_expression")
        return f"({self.text(node)})" if loose else self.text(node)

    def indent(self, node: Node) -> str:
        """Return the indentation of a node's line; empty if other code precedes the node."""
        start = self.raw.rfind(b"\n", 0, node.start_byte) + 1
        before = self.raw[start : node.start_byte].decode("utf-8", "replace")
        return before if not before.strip() else ""

    @cached_property
    def properties(self) -> dict[str, list[str]]:
        """Name -> the properties of it that the file reads; under "", those of anything."""
        found: dict[str, dict[str, None]] = {"": {}}
        for node in walk(self.root):
            if node.type not in MEMBERS:
                continue
            of = node.child_by_field_name("object") or node.child_by_field_name("operand")
            read = node.child_by_field_name("property") or node.child_by_field_name("field")
            above = node.parent
            called = above is not None and is_same_node(above.child_by_field_name("function"), node)
            if of is not None and read is not None and not called:
                found[""][self.text(read)] = None
                found.setdefault(self.text(of), {})[self.text(read)] = None
        return {name: list(own) for name, own in found.items()}

    @cached_property
    def functions(self) -> dict[str, int]:
        """Name of each function of the file -> the number of its parameters."""
        found: dict[str, int] = {}
        for node in walk(self.root):
            if node.type in FUNCTIONS:
                name = node.child_by_field_name("name")
                above = node.parent
                if name is None and above is not None and above.type == "variable_declarator":
                    name = above.child_by_field_name("name")
                taken = node.child_by_field_name("parameters")
                if name is not None:
                    found[self.text(name)] = taken.named_child_count if taken is not None else 1
        return found

    def _facts_of(self, function: Node) -> tuple[dict[str, list[range]], list[tuple[str, Node]]]:
        """Return the names that a function declares with their scopes in bytes, and its expressions."""
        if function.id not in self._function_facts:
            names: dict[str, list[range]] = {}
            mined: dict[str, Node] = {}
            for node in walk(function):
                if node.type == "identifier" and _is_declared(node):
                    names.setdefault(self.text(node), []).append(_reach(node))
                elif node.end_byte - node.start_byte <= MAX_SIBLING_CHARS and self.is_read(node):
                    mined.setdefault(self.text(node), node)
            self._function_facts[function.id] = names, list(mined.items())
        return self._function_facts[function.id]


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def is_same_node(one: Node | None, other: Node) -> bool:
    """Return whether two are the same node."""
    return one is not None and one.id == other.id


def get_field(node: Node, *names: str) -> Node | None:
    """Return the child in the first of these fields that a node has."""
    return next((found for name in names if (found := node.child_by_field_name(name)) is not None), None)


def returned_values(node: Node) -> list[Node]:
    """Return the values of a `return` or of an arrow function without a block; Go may return several."""
    if node.type == "arrow_function":
        body = node.child_by_field_name("body")
        return [body] if body is not None and body.type in EXPRESSIONS else []
    if node.type != "return_statement" or node.named_child_count != 1:
        return []
    value = node.named_children[0]
    return value.named_children if value.type == "expression_list" else [value]


def _reach(node: Node) -> range:
    """Return the bytes where a declared name is known: the rest of its block, or for `var` the function."""
    above, is_var = node.parent, False
    while above is not None and above.type not in FUNCTIONS and (is_var or above.type not in SCOPES):
        is_var = is_var or above.type == "variable_declaration"
        above = above.parent
    if above is None:
        return range(node.start_byte, node.end_byte)
    return range(above.start_byte if is_var else node.start_byte, above.end_byte)


def _is_declared(node: Node) -> bool:
    above = node.parent
    if above is None:
        return False
    if above.type in DECLARES:
        return not is_same_node(above.child_by_field_name("value"), node) and not is_same_node(
            above.child_by_field_name("right"), node
        )
    over = above.parent
    if above.type == "expression_list" and over is not None and over.type in DECLARING_LISTS:
        return is_same_node(over.child_by_field_name("left"), above)
    return above.type == "arrow_function" and is_same_node(above.child_by_field_name("parameter"), node)
