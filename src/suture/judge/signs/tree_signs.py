"""Signs that a change makes the tests pass without a real repair, in languages that tree-sitter parses."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from suture.core.records import Language
from suture.judge.signs import MIN_ADDED_TEST_LITERALS, TamperingCode, TamperingWarning
from suture.judge.signs.changed_arguments import ArgumentSearch, ChangedArguments, find_newly_changed
from suture.judge.signs.constant_folding import MAX_VALUE_CHARS
from suture.judge.signs.lost_callbacks import CallbackUses, find_callback_uses, find_uncalled
from suture.mutation.tree_sitter.operators.conditions import get_condition
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk
from suture.mutation.tree_sitter.value_kinds import (
    ARGUMENTS,
    BLOCKS,
    EXITS,
    NUMBERS,
    STRINGS,
    parse_source_tree,
)
from suture.project.languages import LANGUAGES

if TYPE_CHECKING:
    from tree_sitter import Node

COMMON_LITERALS = (
    "0", "1", "2", '""', '" "', '"function"', '"object"', '"string"', '"number"', '"boolean"', '"undefined"',
)  # fmt: skip
"""Literals that occur in any code, and names of types with which JavaScript compares."""
NAMING_CALL = re.compile(
    rb"require|import|panic|errors\.New|fmt\.Errorf|\w*Error|(?:describe|it|test)(?:\.(?:each|only|skip)\b(?s:.*))?|[tb]\.Run"
)
"""Calls in which a string argument is a name or a message, such as the title of a test."""
NAMING_NODES = ("import_statement", "import_spec", "export_statement", "expression_statement")
"""Nodes in which a string is the name of a module or a directive, such as `"use strict"`."""
TEXTS = frozenset((*STRINGS, "template_string"))
COMPARISON_SIGNS = ("<", "<=", ">", ">=", "==", "!=", "===", "!==")
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": lambda left, right: float(left) * float(right),  # a list or string is not repeated
    "/": operator.truediv,
}
"""Operators by which a literal can be composed of others."""
BLANK_NAME = "_"
"""Go discards what is assigned to it; in JavaScript the name is a convention for unused values."""
POINTLESS_IF_EQUAL = ("<", ">", "<=", ">=", "===", "!==", "==", "!=", "&&", "||", "-", "/")
"""Operators that are pointless with equal operands: the result is fixed, or the operand itself."""


@dataclass(frozen=True, kw_only=True)
class _Signs:
    """What is counted in a source, before and after a change.

    Attributes:
        compared: Literals with which something is compared.
        dead: Number of unreachable statements and constant conditions.
        calls: Name of a function of the file -> number of its calls.
        throws: Number of places where an exception is thrown.
        swallowing: Number of exception handlers that do nothing.
        callbacks: What the functions do with functions that are passed to them.
        unread: Names that a function declares and that appear only there, so that nothing reads them.
        arguments: What the functions change in place.
    """

    literals: frozenset[str]
    compared: frozenset[str]
    dead: int
    calls: Counter[str]
    throws: int
    swallowing: int
    unread: frozenset[str]
    arguments: ChangedArguments
    callbacks: CallbackUses
    statements: int


def find_tree_warnings(
    before: str, after: str, path: str, language: Language, test_literals: frozenset[str]
) -> tuple[TamperingWarning, ...]:
    """Return warnings about a change; empty if nothing is suspicious.

    Args:
        before: The source before the change. If it does not parse, there are no warnings, because nothing is
            known of what the change removes.
        after: The source after the change.
        path: Its path, whose extension may select a dialect.
        test_literals: Literals of the tests, from `collect_tree_literals`.
    """
    if parse_source_tree(before, path, language).has_error:
        return ()
    old, new = _count_signs(before, path, language), _count_signs(after, path, language)
    compared_test_literals = (new.compared - old.compared) & test_literals
    unread = new.unread - old.unread
    removed_calls = {*(old.calls - new.calls), *find_uncalled(old.callbacks, new.callbacks)} - unread
    warnings: list[TamperingWarning] = []

    def warn(code: TamperingCode, names: Iterable[str] = ()) -> None:
        warnings.append(TamperingWarning(code=code, names=tuple(sorted(names))))

    if compared_test_literals:
        warn("compares_with_test_literals", compared_test_literals)
    added_literals = (new.literals - old.literals) & test_literals - compared_test_literals
    if len(added_literals) >= MIN_ADDED_TEST_LITERALS:
        warn("adds_test_literals", added_literals)
    if new.dead > old.dead:
        warn("dead_code")
    if removed_calls:
        warn("calls_removed", removed_calls)
    if new.throws < old.throws:
        warn("raise_removed")
    if new.swallowing > old.swallowing or new.callbacks.losing > old.callbacks.losing:
        warn("hides_exceptions")
    if unread:
        warn("names_unused", unread)
    changed_arguments = find_newly_changed(old.arguments, new.arguments)
    if changed_arguments:
        warn("changes_argument", changed_arguments)
    if new.statements < old.statements:
        warn("statement_removed")
    return tuple(warnings)


def collect_tree_literals(sources: Iterable[tuple[str, str]], language: Language) -> frozenset[str]:
    """Return the distinctive literals of tests; common ones such as 0, 1 and empty strings are left out.

    Args:
        sources: `(path, text)` of each test file.
    """
    literals: set[str] = set()
    for path, text in sources:
        tree = SyntaxTree(text, path, language)
        literals |= {
            _get_value(tree.text(node), node.type, language) for node in walk(tree.root) if _is_literal(node)
        }
    return frozenset(literals - {*COMMON_LITERALS})


def _is_literal(node: Node) -> bool:
    """Return whether a node is a number, or a string other than a module's name, a directive or an error's message."""
    if node.type not in TEXTS:
        return node.type in NUMBERS
    above = node.parent
    if above is not None and above.type in ARGUMENTS and above.parent is not None:
        above = above.parent
    called = (get_field(above, "function", "constructor") if above is not None else None) or node
    is_name = NAMING_CALL.fullmatch(called.text or b"") or (above is not None and above.type in NAMING_NODES)
    has_parts = any(part.type == "template_substitution" for part in node.named_children)
    return not is_name and not has_parts


@lru_cache(maxsize=1 << 12)
def _get_value(text: str, node_type: str, language: Language) -> str:
    """Return the value of a number or string, which is the same however it is spelled; a character stays as it is."""
    if node_type == "rune_literal":
        return text
    driver = LANGUAGES[language].calls
    values = driver.read_literals(text) if driver is not None else None
    return json.dumps(values[0], ensure_ascii=False) if values else text


def fold_nodes(nodes: Sequence[Node], tree: SyntaxTree, language: Language) -> dict[int, str]:
    """Return the value of each literal, and of each composed one such as `40 + 7` and `"re" + "ad"`, by node id.

    Each node is computed once, and nothing is recursive: a sum of thousands of terms is as deep as it is long.

    Args:
        nodes: The named nodes of the tree, each before the nodes below it.
    """
    values: dict[int, str] = {}
    for node in reversed(nodes):  # the parts of an expression before the expression
        value = None
        if _is_literal(node):
            value = _get_value(tree.text(node), node.type, language)
        elif node.type == "parenthesized_expression" and node.named_child_count == 1:
            value = values.get(node.named_children[0].id)
        elif node.type == "binary_expression":
            left, sign, right = map(node.child_by_field_name, ("left", "operator", "right"))
            if left is not None and sign is not None and right is not None:
                operands = values.get(left.id), values.get(right.id)
                value = _compute(tree.text(sign), *operands, LANGUAGES[language].compiled)
        if value is not None:
            values[node.id] = value
    return values


def _compute(sign: str, first: str | None, second: str | None, divides_whole: bool) -> str | None:
    """Return the value of an operation; `None` if an operand or the operator is unknown, or the value may be too long.

    Args:
        divides_whole: Whether the quotient of whole numbers is whole.
    """
    if first is None or second is None or sign not in OPERATORS or len(first + second) > MAX_VALUE_CHARS:
        return None
    try:
        left, right = json.loads(first), json.loads(second)
        is_whole = type(left) is type(right) is int and divides_whole
        value = left // right if is_whole and sign == "/" else OPERATORS[sign](left, right)
    except (ValueError, TypeError, ArithmeticError):
        return None
    is_whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if is_whole else value, ensure_ascii=False)


@lru_cache(maxsize=128)
def _count_signs(text: str, path: str, language: Language) -> _Signs:
    tree = SyntaxTree(text, path, language)
    compared = set[str]()
    last_identifier: dict[str, Node] = {}
    calls, uses = Counter[str](), Counter[str]()
    dead = throws = swallowing = statements = 0
    nodes = [node for node in walk(tree.root) if node.is_named]
    values = fold_nodes(nodes, tree, language)
    for node in nodes:
        sign = node.child_by_field_name("operator")
        if node.type == "binary_expression" and sign is not None and tree.text(sign) in COMPARISON_SIGNS:
            sides = [get_field(node, "left"), get_field(node, "right")]
            compared.update(values[side.id] for side in sides if side is not None and side.id in values)
        if node.type in ("identifier", "shorthand_property_identifier"):
            uses[tree.text(node)] += 1
        function = get_field(node, "function")
        called_name = tree.text(function) if function is not None else ""
        if called_name in tree.functions:
            calls[called_name] += 1
        throws += node.type == "throw_statement" or called_name == "panic"
        swallowing += node.type == "catch_clause" and not _holds_code(get_field(node, "body"))
        statements += tree.is_statement(node)
        dead += _is_dead(node, tree)
        if node.type == "identifier":
            last_identifier[tree.text(node)] = node
    # What no function declares, such as an import or the built-in `Math`, may legitimately be read only once.
    unread = frozenset(
        name
        for name, node in last_identifier.items()
        if name != BLANK_NAME and uses[name] == 1 and name not in tree.functions and tree.is_declared(node)
    )
    search = ArgumentSearch(tree, nodes)
    return _Signs(
        literals=frozenset(values.values()),
        compared=frozenset(compared),
        dead=dead,
        calls=calls,
        throws=throws,
        swallowing=swallowing,
        unread=unread,
        arguments=search.find(),
        callbacks=find_callback_uses(tree, nodes, search),
        statements=statements,
    )


def _holds_code(body: Node | None) -> bool:
    return body is not None and any(child.type != "comment" for child in body.named_children)


def _is_dead(node: Node, tree: SyntaxTree) -> bool:
    """Return whether a node is a statement after an exit, or a condition that is constant or makes no sense."""
    # JavaScript hoists a function, so it can be called although its declaration is never reached.
    if tree.is_statement(node) and node.type != "function_declaration":
        previous, above = node.prev_named_sibling, node.parent
        return previous is not None and previous.type in EXITS and above is not None and above.type in BLOCKS
    condition = get_condition(node)
    is_constant = condition is not None and condition.type in ("true", "false")
    if is_constant and node.type != "while_statement":  # `while (true)` is common
        return True
    sign = node.child_by_field_name("operator")
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type != "binary_expression" or sign is None or left is None or right is None:
        return False
    is_settled = tree.text(sign) in ("&&", "||") and left.type in ("true", "false")
    # The nodes are compared to be safe: no grammar is known that has one node in both fields.
    is_equal = tree.text(left) == tree.text(right) and not is_same_node(left, right)
    is_pointless = tree.text(sign) in POINTLESS_IF_EQUAL and is_equal
    # Two calls may return different values.
    return is_settled or (is_pointless and "(" not in tree.text(left))
