"""The kinds of nodes in the syntax trees of JavaScript, TypeScript and Go.

The grammars name most nodes alike, so that each set below lists the node types of all three languages. What
the languages write differently is in their `SyntaxTemplates`.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.errors import UsageError
from suture.project.languages import LANGUAGES
from suture.project.languages.grammars import parse_tree
from suture.project.languages.language import SyntaxTemplates

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTIONS = frozenset((
    "function_declaration", "function_expression", "arrow_function", "method_definition",
    "generator_function_declaration", "generator_function", "method_declaration", "func_literal",
))  # fmt: skip
BLOCKS = frozenset(("statement_block", "statement_list", "program", "switch_case", "switch_default"))
"""Nodes whose children are statements."""
SCOPES = frozenset((
    "statement_block", "block", "for_statement", "for_in_statement", "if_statement", "catch_clause",
    "switch_body", "expression_switch_statement", "type_switch_statement", "expression_case",
    "default_case", "type_case", "communication_case", "program",
))  # fmt: skip
"""Nodes that limit the scope of a name declared inside."""
CALLS = frozenset(("call_expression", "new_expression"))
ARGUMENTS = frozenset(("arguments", "argument_list"))
MEMBERS = frozenset(("member_expression", "selector_expression"))
"""Nodes such as `a.b`."""
SUBSCRIPTS = frozenset(("subscript_expression", "index_expression"))
"""Nodes such as `a[b]`."""
NULLS = frozenset(("null", "nil", "undefined"))
NUMBERS = frozenset(("number", "int_literal", "float_literal"))
STRINGS = frozenset(("string", "interpreted_string_literal", "rune_literal", "raw_string_literal"))
LOOPS = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement"))
EXITS = frozenset(("return_statement", "throw_statement", "break_statement", "continue_statement"))
LISTS = frozenset(("array", "literal_value"))
"""Literals of a list: `[a, b]` in JavaScript, the braces of `[]int{a, b}` in Go."""
EXPRESSIONS = frozenset((
    "identifier", "binary_expression", "unary_expression", "ternary_expression", "template_string",
    "true", "false", "slice_expression", "parenthesized_expression", "array", "this",
    *NULLS, *CALLS, *MEMBERS, *SUBSCRIPTS, *NUMBERS, *STRINGS,
))  # fmt: skip
"""Nodes of expressions that operators change or copy; functions, objects and types are none."""
DECLARING_NODES = frozenset((
    "formal_parameters", "required_parameter", "optional_parameter", "variable_declarator",
    "parameter_declaration", "var_spec", "const_spec", "array_pattern", "rest_pattern",
    "assignment_pattern", "for_in_statement",
))  # fmt: skip
"""Nodes whose direct children are the names that they declare."""
DECLARING_LISTS = frozenset(("short_var_declaration", "range_clause"))
"""Nodes of Go that declare names too, but hold them in an `expression_list`."""


def has_grammar(language: Language) -> bool:
    """Return whether files of a language can be mutated with the installed grammars."""
    facts = LANGUAGES[language]
    packages = ("tree_sitter", *(package for package, _ in facts.grammars.values()))
    return facts.syntax is not None and all(importlib.util.find_spec(name) for name in packages)


def get_syntax(language: Language) -> SyntaxTemplates:
    """Return the syntax templates of a language.

    Raises:
        UsageError: The language has none; check `has_grammar` first.
    """
    facts = LANGUAGES[language]
    if facts.syntax is None:
        raise UsageError(f"{facts.label} has no syntax templates, so that its code cannot be mutated")
    return facts.syntax


def parse_source_tree(text: str, path: str, language: Language) -> Node:
    """Return the syntax tree of a file; text that does not parse becomes an error node.

    Args:
        path: Its path, whose extension may select a dialect.
        language: A language for which `has_grammar` is true.
    """
    return parse_tree(text, path, LANGUAGES[language].grammars)
