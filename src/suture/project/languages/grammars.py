"""Syntax trees of languages other than Python: tree-sitter's, loaded when the first file is read."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node

Grammars = dict[str, tuple[str, str]]
"""Ending of a file, or none for all others -> the package of its grammar, and what gives it."""


def parse_tree(text: str, path: str, grammars: Grammars) -> Node:
    """The syntax tree of a file; what the grammar cannot read is a node of its own in it.

    Args:
        text: The file.
        path: For its ending.
        grammars: The language's; not empty.
    """
    from tree_sitter import Parser

    return Parser(grammar_for(path, grammars)).parse(text.encode("utf-8", "surrogatepass")).root_node


def grammar_for(path: str, grammars: Grammars) -> Grammar:
    """The grammar of a file.

    Args:
        path: For its ending.
        grammars: The language's; not empty.
    """
    ending = next((known for known in grammars if known and path.endswith(known)), "")
    return load_grammar(*grammars[ending])


@cache
def load_grammar(package: str, name: str) -> Grammar:
    """A grammar, loaded once."""
    from tree_sitter import Language as Grammar

    return Grammar(getattr(importlib.import_module(package), name)())
