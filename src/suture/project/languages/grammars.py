"""Parse languages other than Python with tree-sitter. Grammars are loaded when the first file is parsed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node

Grammars = dict[str, tuple[str, str]]
"""File extension -> (package of the grammar, function in it that returns the grammar).

The empty extension stands for all others."""


def parse_tree(text: str, path: str, grammars: Grammars) -> Node:
    """Return the root of the syntax tree of a file. Invalid syntax becomes error nodes."""
    from tree_sitter import Parser

    return Parser(grammar_for(path, grammars)).parse(text.encode("utf-8", "surrogatepass")).root_node


def grammar_for(path: str, grammars: Grammars) -> Grammar:
    """Return the grammar for a file."""
    return load_grammar(*find_grammar(path, grammars))


def find_grammar(path: str, grammars: Grammars) -> tuple[str, str]:
    """Return `(package, function)` of the grammar for a file, by its extension."""
    extension = next((extension for extension in grammars if extension and path.endswith(extension)), "")
    return grammars[extension]


@cache
def load_grammar(package: str, name: str) -> Grammar:
    """Return a grammar; it is loaded only once."""
    from tree_sitter import Language as Grammar

    return Grammar(getattr(importlib.import_module(package), name)())
