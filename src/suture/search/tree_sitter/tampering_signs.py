"""Signs that a change games the tests, in other languages than Python: the same, in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.judge.tampering import DEAD
from suture.mutation.tree_sitter.grammars import BLOCKS, EXITS, NUMBERS, STRINGS, parse_tree
from suture.mutation.tree_sitter.operators.conditions import tested
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

COMMON = ("0", "1", "2", '""', "''", "``", "' '", '" "')
COMPARING = ("<", "<=", ">", ">=", "==", "!=", "===", "!==")
ALIKE = ("<", ">", "<=", ">=", "===", "!==", "==", "!=", "&&", "||", "-", "/")
Signs = tuple[frozenset[str], int, Counter[str], int, int, frozenset[str], int]


def find_tree_warnings(
    before: str, after: str, path: str, language: Language, test_literals: frozenset[str]
) -> tuple[str, ...]:
    """What is suspicious about a change, in words; empty where nothing is.

    Args:
        before: The source as it was; where it cannot be read, nothing is known of what a change takes away.
        after: The source with the change.
        path: For its ending.
        language: What it is written in.
        test_literals: Literals of the tests, as `tree_literals` gives them.
    """
    if parse_tree(before, path, language).has_error:
        return ()
    old, new = _signs(before, path, language), _signs(after, path, language)
    named = (new[0] - old[0]) & test_literals
    lost, unread = old[2] - new[2], new[5] - old[5]
    signs = (
        (bool(named), f"compares with {', '.join(sorted(named))}, which the tests use"),
        (new[1] > old[1], DEAD),
        (bool(lost), f"no longer calls {', '.join(sorted(lost))}"),
        (new[3] < old[3], "no longer raises"),
        (new[4] > old[4], "hides exceptions"),
        (bool(unread), f"leaves {', '.join(sorted(unread))} unused"),
        (new[6] < old[6], "takes a statement away"),
    )
    return tuple(words for holds, words in signs if holds)


def collect_tree_literals(sources: Iterable[tuple[str, str]], language: Language) -> frozenset[str]:
    """Literals of tests, path and text, that say something: no 0, 1, or empty text."""
    found: set[str] = set()
    for path, text in sources:
        view = SyntaxTree(text, path, language)
        found |= {view.text(node) for node in walk(view.root) if node.type in (*NUMBERS, *STRINGS)}
    return frozenset(found - {*COMMON})


@lru_cache(maxsize=128)
def _signs(text: str, path: str, language: Language) -> Signs:
    """Literals compared with, dead parts, own calls, throws, idle handlers, unread names, statements."""
    view = SyntaxTree(text, path, language)
    compared, calls, uses, declared = set[str](), Counter[str](), Counter[str](), set[str]()
    dead = thrown = swallowing = statements = 0
    for node in walk(view.root):
        sign = node.child_by_field_name("operator")
        if node.type == "binary_expression" and sign is not None and view.text(sign) in COMPARING:
            sides = (get_field(node, "left"), get_field(node, "right"))
            compared |= {view.text(s) for s in sides if s is not None and s.type in (*NUMBERS, *STRINGS)}
        if node.type == "identifier" or node.type == "shorthand_property_identifier":
            uses[view.text(node)] += 1
        called = view.text(one) if (one := get_field(node, "function")) is not None else ""
        calls[called] += called in view.functions
        thrown += node.type == "throw_statement" or called == "panic"
        swallowing += node.type == "catch_clause" and not _holds_code(get_field(node, "body"))
        statements += view.is_statement(node)
        dead += _is_dead(node, view)
        if view.enclosing_function(node) is not None and node.type == "identifier":
            declared.add(view.text(node))
    unread = frozenset(name for name in declared if uses[name] == 1 and name not in view.functions)
    return (frozenset(compared), dead, +calls, thrown, swallowing, unread, statements)


def _holds_code(body: Node | None) -> bool:
    return body is not None and any(child.type != "comment" for child in body.named_children)


def _is_dead(node: Node, view: SyntaxTree) -> bool:
    """A statement behind an exit, or a condition whose truth is known."""
    if view.is_statement(node) and node.type not in ("function_declaration",):
        before = node.prev_named_sibling
        above = node.parent
        return before is not None and before.type in EXITS and above is not None and above.type in BLOCKS
    test = tested(node)
    if test is not None and test.type in ("true", "false") and node.type != "while_statement":
        return True
    sign = node.child_by_field_name("operator")
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type != "binary_expression" or sign is None or left is None or right is None:
        return False
    settled = view.text(sign) in ("&&", "||") and left.type in ("true", "false")
    alike = view.text(sign) in ALIKE and view.text(left) == view.text(right) and not is_same_node(left, right)
    return settled or (alike and "(" not in view.text(left))
