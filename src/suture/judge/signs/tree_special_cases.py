"""List the comparisons with literals in JavaScript, TypeScript and Go files, and find added special cases of tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.judge.signs.literal_comparisons import LiteralComparison, find_special_cases
from suture.judge.signs.tampering_warning import TamperingWarning
from suture.judge.signs.tree_signs import COMMON_LITERALS, COMPARISON_SIGNS, fold_nodes
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS, LISTS

if TYPE_CHECKING:
    from tree_sitter import Node

EQUALITY_SIGNS = ("==", "!=", "===", "!==")
CASES = ("switch_case", "expression_case")
SWITCHES = ("switch_statement", "expression_switch_statement")
WORDS = re.compile(r"[\w$]+")
SHORT_TEXT = re.compile(r"""(["'`]).{0,2}\1""", re.DOTALL)
"""Strings of up to two characters, which parsers compare with, and single characters of Go."""
LENGTH = re.compile(r"len\(.*\)|.*\.length", re.DOTALL)
MAX_CALL_LEVELS = 5
"""Levels of callers in the same file that are followed. Chosen by judgement."""


def find_tree_special_cases(
    before: str,
    after: str,
    path: str,
    language: Language,
    tests: Iterable[tuple[str, str]],
    *,
    reported: Iterable[TamperingWarning] = (),
) -> tuple[TamperingWarning, ...]:
    """Return a sign if a change adds equality tests with literals of the tests.

    Of 524 commits of cobra and date-fns, 1 shows it (2026-11-29).

    Args:
        path: The path of the changed file, whose extension may select a dialect.
        tests: `(path, text)` of each test file.
        reported: The other signs of the change, whose literals are not repeated.
    """
    old, new = SyntaxTree(before, path, language), SyntaxTree(after, path, language)
    if old.root.has_error:
        return ()
    added, known = ([*_iter_comparisons(tree, language)] for tree in (new, old))
    pairs = {(case.subject, case.literals) for case in known}
    if all((case.subject, case.literals) in pairs for case in added if case.is_equality):
        return ()  # without reading the tests
    literals, lengths = _read_values(tests, language, _list_changed_names(old, new))
    found = find_special_cases(added=added, removed=known, known=known, literals=literals, lengths=lengths)
    for name in {name for sign in reported for name in sign.names} & found.keys():
        del found[name]
    if not found:
        return ()
    names, line = tuple(sorted(found)), min(found.values())
    return (TamperingWarning(code="compares_with_test_literals", names=names, line=line),)


def _list_changed_names(old: SyntaxTree, new: SyntaxTree) -> set[str]:
    """Return the names of changed functions, and of functions of the file that use them."""
    before, after = old.list_functions(), new.list_functions()
    names = {name for name, text in after.items() if before.get(name) != text}
    words = {name: {*WORDS.findall(text)} for name, text in after.items()}
    for _ in range(MAX_CALL_LEVELS):
        names |= {name for name, used in words.items() if used & names}
    return names


def _read_values(
    tests: Iterable[tuple[str, str]], language: Language, functions: set[str]
) -> tuple[set[str], set[str]]:
    """Return the literals, and the lengths of lists and strings, in the tests of some functions and outside of tests.

    All tests count if no changed function has a name.
    """
    literals, lengths = set[str](), set[str]()
    for path, text in tests:
        tree = SyntaxTree(text, path, language)
        for part in tree.root.named_children:
            nodes = [node for node in walk(part) if node.is_named]
            has_function = any(node.type in FUNCTIONS for node in nodes)
            if has_function and functions and functions.isdisjoint(WORDS.findall(tree.text(part))):
                continue
            values = {*fold_nodes(nodes, tree, language).values()}
            literals |= {value for value in values if not SHORT_TEXT.fullmatch(value)}
            lengths |= {str(node.named_child_count) for node in nodes if node.type in LISTS}
    return literals - {*COMMON_LITERALS}, lengths - {*COMMON_LITERALS}


def _iter_comparisons(tree: SyntaxTree, language: Language) -> Iterator[LiteralComparison]:
    """Yield the comparisons of the functions of a file with literals."""
    nodes = [node for node in walk(tree.root) if node.is_named]
    values = fold_nodes(nodes, tree, language)
    for node in nodes:
        sides, is_equality = _read_compared(tree, node)
        literals = tuple(
            values[side.id] for side in sides if side.id in values and values[side.id] not in COMMON_LITERALS
        )
        for side in sides if literals else ():
            if _uses_variables(tree, side):
                yield LiteralComparison(
                    subject=tree.text(side),
                    literals=literals,
                    line=node.start_point[0] + 1,
                    is_equality=is_equality,
                    is_parameter=side.type == "identifier" and _is_parameter(tree, side),
                    is_length=LENGTH.fullmatch(tree.text(side)) is not None,
                )


def _read_compared(tree: SyntaxTree, node: Node) -> tuple[Sequence[Node], bool]:
    """Return what a node compares with each other, and whether it tests for equality; nothing for most nodes."""
    sign = node.child_by_field_name("operator")
    if node.type == "binary_expression" and sign is not None and tree.text(sign) in COMPARISON_SIGNS:
        sides = (get_field(node, "left"), get_field(node, "right"))
        return [side for side in sides if side is not None], tree.text(sign) in EQUALITY_SIGNS
    value = get_field(node, "value")
    above = node.parent
    while node.type in CASES and above is not None and above.type not in SWITCHES:
        above = above.parent
    switched = get_field(above, "value") if node.type in CASES and above is not None else None
    if value is not None and switched is not None:
        return [switched, *(value.named_children if value.type == "expression_list" else [value])], True
    function, arguments = get_field(node, "function"), get_field(node, "arguments")
    owner = get_field(function, "object") if function is not None else None
    if owner is not None and owner.type == "array" and arguments is not None:  # [3, 5].includes(n)
        return [*arguments.named_children, *owner.named_children], True
    return [], False


def _uses_variables(tree: SyntaxTree, node: Node) -> bool:
    """Return whether an expression uses a variable or parameter of a function around it, or its object."""
    return any(
        part.type == "this" or (part.type == "identifier" and tree.is_declared(part)) for part in walk(node)
    )


def _is_parameter(tree: SyntaxTree, name: Node) -> bool:
    function = tree.enclosing_function(name)
    parameters = get_field(function, "parameters", "parameter") if function is not None else None
    return parameters is not None and tree.text(name) in WORDS.findall(tree.text(parameters))
