"""The syntax tree of a JavaScript, TypeScript or Go file, with the queries that mutation operators need.

Offsets are bytes of the UTF-8 source, as in `Edit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from suture.core.records import Language
from suture.mutation.changes import Change, ValueDifference, shorten
from suture.mutation.edits import Edit, OperatorName
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.value_kinds import (
    BLOCKS,
    DECLARING_LISTS,
    DECLARING_NODES,
    EXPRESSIONS,
    FUNCTIONS,
    LOOPS,
    MEMBERS,
    SCOPES,
    find_kind_evidence,
    get_syntax,
    parse_source_tree,
)
from suture.mutation.tuning import MAX_SIBLING_CHARS, UNREAD_PARAMETER_FACTOR, UNREAD_VARIABLE_FACTOR

if TYPE_CHECKING:
    from tree_sitter import Node

T = TypeVar("T")
TreeOperators: TypeAlias = "Mapping[OperatorName, Callable[[Node, SyntaxTree], Iterator[Change]]]"
"""Name of an operator -> the function that yields its changes of a node, which is called for every named node."""
PARENTHESISED_STATEMENTS = (
    "if_statement", "while_statement", "do_statement", "switch_statement", "with_statement",
)  # fmt: skip
"""Statements whose syntax has parentheses around an expression."""
VALUELESS_FIELDS = ("function", "name", "constructor", "parameter", "label", "type", "key", "path", "source")
"""Fields that hold no expression whose value is used."""
MENTIONS = ("identifier", "shorthand_property_identifier")
"""Nodes that name a variable."""
UNREAD_PARENTS = (
    "expression_statement", "import_specifier", "namespace_import", "import_clause", "pair_pattern",
)  # fmt: skip
"""Nodes whose children are not expressions whose value is used."""


class SyntaxTree:
    """The syntax tree of one file.

    Args:
        path: Its path. The extension may select a dialect, such as `.tsx`.

    Attributes:
        differences: How the actual values of failing tests differ from the expected ones.
    """

    differences: Sequence[ValueDifference] = ()

    def __init__(self, text: str, path: str, language: Language) -> None:
        self.source = text
        self.raw = text.encode("utf-8", "surrogatepass")
        self.syntax = get_syntax(language)
        self.is_javascript = bool(self.syntax.terminator)  # or TypeScript; Go has no semicolons
        self.root = parse_source_tree(text, path, language)
        self._function_facts: dict[int, tuple[dict[str, list[range]], list[tuple[str, Node]]]] = {}
        self._kinds: dict[int, dict[str, ValueKind]] = {}
        self._unread: dict[int, dict[str, float]] = {}
        self._cache: dict[str, Any] = {}

    def cached(self, key: str, compute: Callable[[SyntaxTree], T]) -> T:
        """Return what `compute` returns for this tree, and call it only once for each key."""
        if key not in self._cache:
            self._cache[key] = compute(self)
        value: T = self._cache[key]
        return value

    def text(self, node: Node) -> str:
        """Return the source of a node."""
        # "replace", so that no node of a broken source can make it fail.
        return self.raw[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def replace_with(self, node: Node, text: str, weight: float) -> Change:
        """Return the change that replaces the source of a node."""
        note = f"{shorten(self.text(node))} becomes {shorten(text)}"
        return Change(edits=(replace_node(node, text),), note=note, weight=weight)

    def swap(self, left: Node, right: Node) -> tuple[Edit, Edit]:
        """Return the edits that exchange two nodes."""
        return replace_node(left, self.text(right)), replace_node(right, self.text(left))

    def scope_names(self, node: Node) -> list[str]:
        """Return the variables and parameters that a node may use, those of the innermost function first."""
        last_byte = max(node.start_byte, node.end_byte - 1)  # the end offset may be outside of the scope
        return [name for name, scopes in self._declared(node) if any(last_byte in scope for scope in scopes)]

    def kinds(self, node: Node) -> dict[str, ValueKind]:
        """Return variable -> kind of its values, for the outermost function around a node.

        Where the function holds contradictory evidence about a variable, the first counts.
        """
        function, outer = None, self.enclosing_function(node)
        while outer is not None:
            function, outer = outer, self.enclosing_function(outer)
        if function is None:
            return {}
        if function.id not in self._kinds:
            kinds = self._kinds[function.id] = {}
            for part in walk(function):
                for name, kind in find_kind_evidence(part):
                    kinds.setdefault(self.text(name), kind)
        return self._kinds[function.id]

    def is_declared(self, node: Node) -> bool:
        """Return whether a function around a name declares it."""
        return self.text(node) in (name for name, _ in self._declared(node))

    def _declared(self, node: Node) -> Iterator[tuple[str, list[range]]]:
        """Yield `(name, scopes)` for each name that the functions around a node declare.

        A scope is a range of bytes in which the name may be used.
        """
        seen: set[str] = set()
        function = self.enclosing_function(node)
        while function is not None:
            scopes_by_name = self._function_facts_for(function)[0]
            yield from ((name, scopes) for name, scopes in scopes_by_name.items() if name not in seen)
            seen |= scopes_by_name.keys()
            function = self.enclosing_function(function)

    def expressions(self, node: Node) -> list[tuple[str, Node]]:
        """Return `(source, node)` for each short expression of the function around a node, each source once."""
        function = self.enclosing_function(node)
        return self._function_facts_for(function)[1] if function is not None else []

    def enclosing_function(self, node: Node) -> Node | None:
        """Return the innermost function that holds a node."""
        above = node.parent
        while above is not None and above.type not in FUNCTIONS:
            above = above.parent
        return above

    def is_read(self, node: Node) -> bool:
        """Return whether a node is an expression whose value is used.

        It is not where a name is declared or assigned, or where a whole statement is the expression.
        """
        above = node.parent
        if above is None or node.type not in EXPRESSIONS:
            return False
        if any(is_same_node(above.child_by_field_name(name), node) for name in VALUELESS_FIELDS):
            return False
        if above.type in UNREAD_PARENTS:
            return False
        if node.type == "parenthesized_expression" and above.type in PARENTHESISED_STATEMENTS:
            return False  # these parentheses belong to the statement
        if is_same_node(above.child_by_field_name("left"), node) and above.type != "binary_expression":
            return False  # the target of an assignment
        if above.type == "expression_list" and above.parent is not None:
            return not is_same_node(above.parent.child_by_field_name("left"), above)
        if above.type in MEMBERS:
            return node.type == "identifier" and not is_same_node(above.child_by_field_name("property"), node)
        return above.type not in DECLARING_NODES or is_same_node(above.child_by_field_name("value"), node)

    def is_statement(self, node: Node) -> bool:
        """Return whether a node is a statement of a block."""
        above = node.parent
        if above is None or above.type not in BLOCKS or not node.is_named or node.type == "comment":
            return False
        return not is_same_node(above.child_by_field_name("value"), node)  # the value of a `case`

    def parenthesised(self, node: Node) -> str:
        """Return the source of a node, in parentheses where a neighbouring operator would split it."""
        operations = ("binary_expression", "ternary_expression", "arrow_function", "unary_expression")
        return f"({self.text(node)})" if node.type in operations else self.text(node)

    def indent(self, node: Node) -> str:
        """Return the indentation of a node's line; empty if other code precedes the node."""
        start = self.raw.rfind(b"\n", 0, node.start_byte) + 1
        before = self.raw[start : node.start_byte].decode("utf-8", "replace")
        return before if not before.strip() else ""

    @cached_property
    def properties(self) -> dict[str, list[str]]:
        """Text of an object -> the properties of it that the file reads, without methods that it calls.

        The key `""` holds the properties of all objects.
        """
        properties: dict[str, dict[str, None]] = {"": {}}
        for node in walk(self.root):
            if node.type not in MEMBERS:
                continue
            owner, member = get_field(node, "object", "operand"), get_field(node, "property", "field")
            above = node.parent
            is_called = above is not None and is_same_node(above.child_by_field_name("function"), node)
            if owner is not None and member is not None and not is_called:
                properties[""][self.text(member)] = None
                properties.setdefault(self.text(owner), {})[self.text(member)] = None
        return {owner_text: list(members) for owner_text, members in properties.items()}

    @cached_property
    def functions(self) -> dict[str, int]:
        """Name of each function of the file -> the number of its parameters."""
        arities: dict[str, int] = {}
        for node in walk(self.root):
            name = function_name(node) if node.type in FUNCTIONS else None
            if name is not None:
                parameters = node.child_by_field_name("parameters")
                # `x => x` has one parameter, and no list of parameters.
                arities[self.text(name)] = parameters.named_child_count if parameters is not None else 1
        return arities

    def list_functions(self) -> dict[str, str]:
        """Return name of each function of the file -> its source."""
        functions = ((function_name(node), node) for node in walk(self.root) if node.type in FUNCTIONS)
        return {self.text(name): self.text(node) for name, node in functions if name is not None}

    def weigh_unread(self, node: Node) -> dict[str, float]:
        """Return each name that the function around a node declares and never mentions again -> the weight of its use.

        Names that begin with `_` are left out.
        """
        function = self.enclosing_function(node)
        if function is None:
            return {}
        if function.id not in self._unread:
            mentions = [part for part in walk(function) if part.type in MENTIONS]
            counts = Counter(map(self.text, mentions))
            body = function.child_by_field_name("body")
            start = function.end_byte if body is None else body.start_byte
            self._unread[function.id] = {
                name: UNREAD_PARAMETER_FACTOR if part.start_byte < start else UNREAD_VARIABLE_FACTOR
                for part in mentions
                if _is_declared(part) and counts[name := self.text(part)] == 1 and not name.startswith("_")
            }
        return self._unread[function.id]

    def _function_facts_for(self, function: Node) -> tuple[dict[str, list[range]], list[tuple[str, Node]]]:
        """Return the scopes of the names that a function declares, and the result of `expressions`."""
        if function.id not in self._function_facts:
            scopes: dict[str, list[range]] = {}
            expressions: dict[str, Node] = {}
            for node in walk(function):
                if node.type == "identifier" and _is_declared(node):
                    scopes.setdefault(self.text(node), []).append(_scope_range(node))
                elif node.end_byte - node.start_byte <= MAX_SIBLING_CHARS and self.is_read(node):
                    expressions.setdefault(self.text(node), node)
            self._function_facts[function.id] = scopes, list(expressions.items())
        return self._function_facts[function.id]


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in source order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def get_text(node: Node | None) -> str:
    """Return the source of a node; empty if there is none."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def find_enclosing(node: Node, kinds: Container[str]) -> Node | None:
    """Return the innermost node of some kinds around a node."""
    above = node.parent
    while above is not None and above.type not in kinds:
        above = above.parent
    return above


def is_same_node(node: Node | None, other: Node) -> bool:
    """Return whether two objects stand for the same node: the bindings create a new object at each access."""
    return node is not None and node.id == other.id


def get_field(node: Node, *names: str) -> Node | None:
    """Return the child in the first of these fields that a node has.

    The grammars name some fields differently: `object` in JavaScript is `operand` in Go.
    """
    return next((child for name in names if (child := node.child_by_field_name(name)) is not None), None)


def enclosing_loop(node: Node) -> Node | None:
    """Return the innermost loop that holds a node, in the same function."""
    above = node.parent
    while above is not None and above.type not in (*LOOPS, *FUNCTIONS):
        above = above.parent
    return above if above is not None and above.type in LOOPS else None


def function_name(function: Node) -> Node | None:
    """Return the name of a function: its own, or that of the variable whose initial value it is."""
    above = function.parent
    if above is not None and above.type == "variable_declarator":
        return get_field(function, "name") or get_field(above, "name")
    return get_field(function, "name")


def replace_node(node: Node, text: str) -> Edit:
    """Return the edit that replaces the source of a node."""
    return Edit(start=node.start_byte, end=node.end_byte, text=text)


def insert_at(offset: int, text: str) -> Edit:
    """Return the edit that inserts a string."""
    return Edit(start=offset, end=offset, text=text)


def returned_values(node: Node) -> list[Node]:
    """Return the values of a `return`, or the body of an arrow function without a block.

    Only Go returns several values.
    """
    if node.type == "arrow_function":
        body = node.child_by_field_name("body")
        return [body] if body is not None and body.type in EXPRESSIONS else []
    if node.type != "return_statement" or node.named_child_count != 1:
        return []
    value = node.named_children[0]
    return value.named_children if value.type == "expression_list" else [value]


def _scope_range(node: Node) -> range:
    """Return the bytes in which a declared name may be used.

    They are the rest of its block. A name declared with `var` may be used in its whole function.
    """
    above, is_var = node.parent, False
    while above is not None and above.type not in FUNCTIONS and (is_var or above.type not in SCOPES):
        is_var = is_var or above.type == "variable_declaration"
        above = above.parent
    if above is None:
        return range(node.start_byte, node.end_byte)
    return range(above.start_byte if is_var else node.start_byte, above.end_byte)


def _is_declared(node: Node) -> bool:
    """Return whether an identifier is where a variable or parameter is declared."""
    above = node.parent
    if above is None:
        return False
    if above.type in DECLARING_NODES:
        return not any(is_same_node(get_field(above, name), node) for name in ("value", "right"))
    declaration = above.parent
    if above.type == "expression_list" and declaration is not None and declaration.type in DECLARING_LISTS:
        return is_same_node(declaration.child_by_field_name("left"), above)
    return above.type == "arrow_function" and is_same_node(above.child_by_field_name("parameter"), node)
