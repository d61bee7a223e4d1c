"""Find changes of JavaScript and TypeScript whose work never runs, or whose objects answer by what is asked of them.

Calling a generator function runs nothing of its body. A `Proxy` can answer each property differently, so that only what
the tests read is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.judge.signs.changed_arguments import name_function
from suture.judge.signs.tampering_warning import TamperingWarning
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS

if TYPE_CHECKING:
    from tree_sitter import Node

TRAPS = frozenset(("get", "has", "getOwnPropertyDescriptor"))
"""Functions of a Proxy's handler that get the name of a property as their second argument."""
EQUALITY_SIGNS = frozenset(("==", "===", "!=", "!=="))
ASKS_PRESENCE = re.compile(r"\btypeof\b|\bin\b|\bhas\w*\b|\bReflect\b")
ITERATING = frozenset((
    "next", "return", "throw", "map", "filter", "take", "drop", "flatMap", "reduce", "toArray", "forEach", "some",
    "every", "find",
))  # fmt: skip
"""Members of a generator that run its work; it has no other members."""
WORDS = re.compile(r"[\w$]+")
MAKES_PROXY = re.compile(r"\bnew\s+Proxy\b|\bProxy\s*\.\s*revocable\b")


def find_lazy_tree_signs(
    before: str, after: str, path: str, language: Language, tests: Iterable[tuple[str, str]]
) -> tuple[TamperingWarning, ...]:
    """Return signs that a change makes functions lazy whose results nothing reads, or adds a deciding Proxy.

    Args:
        path: The path of the changed file, whose extension may select a dialect.
        tests: `(path, text)` of each test file.
    """
    old, new = SyntaxTree(before, path, language), SyntaxTree(after, path, language)
    signs: list[TamperingWarning] = []
    lazy = _find_generators(new) & _find_plain_functions(old)
    trees = [SyntaxTree(text, name, language) for name, text in tests] if lazy else []
    unread = tuple(sorted(name for name in lazy if _is_only_discarded(name, trees, new)))
    if unread:
        signs.append(TamperingWarning(code="never_runs", names=unread))
    # A change of a file that traps properties already is part of what it is for: the traps of libraries decide, too.
    if not _find_traps(old) and any(_decides_by_property(trap, new) for trap in _find_traps(new)):
        signs.append(TamperingWarning(code="answers_by_property"))
    return tuple(signs)


def _find_generators(tree: SyntaxTree) -> set[str]:
    return {name for name, is_generator in _iter_functions(tree) if is_generator}


def _find_plain_functions(tree: SyntaxTree) -> set[str]:
    found = list(_iter_functions(tree))
    return {name for name, _ in found} - {name for name, is_generator in found if is_generator}


def _iter_functions(tree: SyntaxTree) -> Iterator[tuple[str, bool]]:
    """Yield the name of each function that has one, and whether it is a generator function."""
    for node in walk(tree.root):
        if node.type in FUNCTIONS and (name := _get_name(node, tree)):
            yield name, node.type.startswith("generator") or any(part.type == "*" for part in node.children)


def _get_name(function: Node, tree: SyntaxTree) -> str:
    above = function.parent
    if above is not None and above.type == "variable_declarator":
        name = get_field(above, "name")
        return tree.text(name) if name is not None else ""
    return name_function(function, tree)


def _is_only_discarded(name: str, tests: Iterable[SyntaxTree], file: SyntaxTree) -> bool:
    """Return whether each call in the tests, or else in the file, is a statement of its own."""
    calls = Counter[bool]()
    for tree in tests:
        calls += _count_calls(name, tree)
    calls = calls or _count_calls(name, file)
    return bool(calls[True]) and not calls[False]


def _count_calls(name: str, tree: SyntaxTree) -> Counter[bool]:
    """Count the calls of a function by whether their result is discarded; its name as an argument counts as read."""
    calls: Counter[bool] = Counter()
    for node in walk(tree.root):
        function = get_field(node, "function") if node.type == "call_expression" else None
        if function is not None and re.split(r"\W+", tree.text(function))[-1] == name:
            above = node.parent
            is_discarded = above is not None and (
                above.type == "expression_statement"
                or (
                    above.type == "member_expression"
                    and get_text(get_field(above, "property")) not in ITERATING
                )
            )
            calls[is_discarded] += 1
        elif node.type == "identifier" and node.parent is not None and node.parent.type == "arguments":
            calls[False] += tree.text(node) == name
    return +calls


def _find_traps(tree: SyntaxTree) -> list[Node]:
    """Return the functions of Proxy handlers that get the name of a property."""
    if not MAKES_PROXY.search(tree.source):
        return []
    return [node for node in walk(tree.root) if node.type in FUNCTIONS and name_function(node, tree) in TRAPS]


def _decides_by_property(trap: Node, tree: SyntaxTree) -> bool:
    parameters = get_field(trap, "parameters")
    named = [part for part in parameters.named_children if part.type != "comment"] if parameters else []
    # A rest parameter contains the name of the property, among others.
    given = next((part for part in named if "..." in tree.text(part)), named[1] if len(named) > 1 else None)
    body = get_field(trap, "body")
    if given is None or body is None:
        return False
    words = set(WORDS.findall(tree.text(given)))
    return any(_decides(node, words, tree) for node in walk(body))


def _decides(node: Node, words: set[str], tree: SyntaxTree) -> bool:
    """Return whether a node chooses by one of some names; whether a property exists is not such a choice."""
    found: tuple[Node | None, ...] = ()
    if node.type == "binary_expression":
        sign = get_field(node, "operator")
        is_equality = sign is not None and tree.text(sign) in EQUALITY_SIGNS
        found = (get_field(node, "left"), get_field(node, "right")) if is_equality else ()
    elif node.type in ("if_statement", "ternary_expression"):
        condition = get_field(node, "condition")
        found = (
            (condition,) if condition is not None and not ASKS_PRESENCE.search(tree.text(condition)) else ()
        )
    elif node.type == "switch_statement":
        found = (get_field(node, "value"),)
    elif node.type == "subscript_expression":
        owner = get_field(node, "object")
        found = (get_field(node, "index"),) if owner is not None and owner.type == "object" else ()
    texts = [tree.text(part) for part in found if part is not None]
    return any(not text.startswith("typeof ") and words.intersection(WORDS.findall(text)) for text in texts)
