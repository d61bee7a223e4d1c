"""Tell changes of layout, and of imports that nothing uses, from changes of what a file does.

A formatter, or the fix of a linter, may change tests in this way: they decide as before.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.languages.grammars import parse_tree
from suture.project.python_source.parsing import parse_module
from suture.project.tuning import MAX_NODE_DEPTH

if TYPE_CHECKING:
    from tree_sitter import Node

LAYOUT_TOKENS = frozenset((";", ",", "\n"))
"""Tokens that formatters of JavaScript, TypeScript and Go add and remove."""
STRING_NODES = frozenset(("string", "interpreted_string_literal"))


def changes_only_layout(path: str, before: str, after: str) -> bool:
    """Return whether a change of a file keeps all that it does, and at most removes or moves imports.

    Args:
        path: The file's path, which tells its language.
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
    return _read_tokens(parse_tree(before, path, grammars)) == _read_tokens(parse_tree(after, path, grammars))


def _cut_imports(tree: ast.Module) -> Counter[str]:
    """Remove the imports at the top of a module, and return them, each name by itself."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    tree.body = [node for node in tree.body if node not in imports]
    return Counter(
        ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "names": [alias]}))
        for node in imports
        for alias in node.names
    )


def _read_tokens(root: Node) -> list[str] | None:
    """Return the tokens of a syntax tree without comments and layout; `None` for a tree with errors."""
    if root.has_error:
        return None
    tokens: list[str] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        text = (node.text or b"").decode("utf-8", "replace")
        if node.type == "comment" or depth > MAX_NODE_DEPTH:
            continue
        if node.type in STRING_NODES and not {*text[1:-1]} & {*"'\"\\"}:
            tokens.append(text[1:-1])
        elif node.children:
            waiting += [(child, depth + 1) for child in reversed(node.children)]
        elif text not in LAYOUT_TOKENS:
            tokens.append(text)
    return tokens
