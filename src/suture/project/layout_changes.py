"""Distinguish changes of layout, and of imports that nothing uses, from changes of what a file does.

A formatter, or the fix of a linter, may change tests in this way: they decide as before.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.languages.reports import parse_tree
from suture.project.python_source.parsing import parse_module
from suture.project.tuning import MAX_NODE_DEPTH

if TYPE_CHECKING:
    from tree_sitter import Node


LAYOUT_TOKENS = frozenset((";", ",", "\n"))
"""Tokens that formatters of JavaScript, TypeScript and Go add and remove."""
STRING_NODES = frozenset(("string", "interpreted_string_literal"))
LOOPS = frozenset(("for_statement", "for_clause"))
"""Nodes in which semicolons separate parts that may be absent."""
BLOCKS = frozenset(("program", "statement_block"))
ENDED_BY_NEWLINE = frozenset(("return", "break", "continue", "throw", "yield"))
"""Keywords that a line break separates from what follows. Tree-sitter does not know this where `(` or `[` follows."""


def changes_only_layout(path: str, before: str, after: str) -> bool:
    """Return whether a change of a file preserves its behaviour, and at most removes or moves imports.

    Args:
        path: The file's path, whose extension gives its language.
    """
    if path.endswith(".py"):
        old, new = parse_module(before), parse_module(after)
        if old is None or new is None:
            return False
        old_imports, new_imports = _cut_imports(old), _cut_imports(new)
        return ast.dump(old) == ast.dump(new) and not new_imports - old_imports
    language = next(iter(detect_file_languages((path,))), None)
    grammars = LANGUAGES[language].grammars if language is not None else {}
    if not grammars:
        return False
    tokens = _read_tokens(parse_tree(before, path, grammars))
    return tokens is not None and tokens == _read_tokens(parse_tree(after, path, grammars))


def _cut_imports(tree: ast.Module) -> Counter[str]:
    """Remove the imports at the top of a module, and return them, one import for each name."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    tree.body = [node for node in tree.body if node not in imports]
    return Counter(
        ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "names": [alias]}))
        for node in imports
        for alias in node.names
    )


def _read_tokens(root: Node) -> list[tuple[str, str]] | None:
    """Return type and source of each node of a syntax tree without layout; `None` for a tree with errors.

    Inner nodes have no source. Comments are read too: Go runs the example above `// Output: 5`, and Jest obeys
    `@jest-environment`.
    """
    if root.has_error:
        return None
    tokens: list[tuple[str, str]] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_NODE_DEPTH:
            return None
        text = (node.text or b"").decode("utf-8", "replace")
        if node.type == "comment":
            tokens.append((node.type, " ".join(text.split())))
        elif node.is_named and node.type in STRING_NODES and not {*text[1:-1]} & {*"'\"\\"}:
            tokens.append((node.type, text[1:-1]))
        elif not _is_layout(node):
            tokens.append((node.type, "" if node.children else text))
            waiting += [(child, depth + 1) for child in reversed(node.children)]
            if node.type in ENDED_BY_NEWLINE and _ends_line(node):
                tokens.append(("\n", ""))
    return tokens


def _is_layout(node: Node) -> bool:
    """Return whether a node is a separator that does nothing, unlike a hole of an array or an empty loop."""
    parent = node.parent
    if node.type == "empty_statement":
        return parent is not None and parent.type in BLOCKS
    if node.is_named or node.type not in LAYOUT_TOKENS or parent is None:
        return False
    if node.type == ",":
        previous = _find_neighbour(node, -1)
        return previous is None or previous.type not in (",", "[")
    return parent.type not in LOOPS


def _ends_line(node: Node) -> bool:
    following = _find_neighbour(node, 1)
    return following is not None and following.is_named and following.start_point.row > node.end_point.row


def _find_neighbour(node: Node, step: int) -> Node | None:
    """Return the next (step 1) or previous (step -1) sibling that is not a comment."""
    neighbour: Node | None = node
    while neighbour is not None and (neighbour == node or neighbour.type == "comment"):
        neighbour = neighbour.next_sibling if step > 0 else neighbour.prev_sibling
    return neighbour
