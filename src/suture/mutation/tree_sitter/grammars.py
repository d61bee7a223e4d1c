"""What the nodes of a syntax tree are called; the trees are tree-sitter's (`languages/grammars.py`).

JavaScript, TypeScript and Go call most things alike in their grammars, so the kinds of nodes below serve all.
What each writes in another way is its `Syntax`.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.errors import UsageError
from suture.project.languages import LANGUAGES
from suture.project.languages.grammars import tree_of
from suture.project.languages.language import Syntax

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTIONS = frozenset(
    (
        *("function_declaration", "function_expression", "arrow_function", "method_definition"),
        *("generator_function_declaration", "generator_function", "method_declaration", "func_literal"),
    )
)
BLOCKS = frozenset(("statement_block", "statement_list", "program", "switch_case", "switch_default"))
SCOPES = frozenset(
    (
        *("statement_block", "block", "for_statement", "for_in_statement", "if_statement", "catch_clause"),
        *("switch_body", "expression_switch_statement", "type_switch_statement", "expression_case"),
        *("default_case", "type_case", "communication_case", "program"),
    )
)
"""What a name that is declared in it is known in."""
CALLS = frozenset(("call_expression", "new_expression"))
ARGUMENTS = frozenset(("arguments", "argument_list"))
MEMBERS = frozenset(("member_expression", "selector_expression"))
PARTS = frozenset(("subscript_expression", "index_expression"))
NUMBERS = frozenset(("number", "int_literal", "float_literal"))
STRINGS = frozenset(("string", "interpreted_string_literal", "rune_literal", "raw_string_literal"))
LOOPS = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement"))
EXITS = frozenset(("return_statement", "throw_statement", "break_statement", "continue_statement"))
LISTS = frozenset(("array", "literal_value"))
EXPRESSIONS = frozenset(
    (
        *("identifier", "binary_expression", "unary_expression", "ternary_expression", "template_string"),
        *("true", "false", "null", "nil", "undefined", "slice_expression", "parenthesized_expression"),
        *(*CALLS, *MEMBERS, *PARTS, *NUMBERS, *STRINGS, "array", "this"),
    )
)
DECLARES = frozenset(
    (
        *("formal_parameters", "required_parameter", "optional_parameter", "variable_declarator"),
        *("parameter_declaration", "var_spec", "const_spec", "array_pattern", "rest_pattern"),
        *("assignment_pattern", "for_in_statement"),
    )
)
"""What holds the names that it declares itself; in Go `:=` and `range` have a list between."""
DECLARING_LISTS = frozenset(("short_var_declaration", "range_clause"))


def has_grammar(language: Language) -> bool:
    """Whether files of a language can be changed here."""
    facts = LANGUAGES[language]
    needed = ("tree_sitter", *(package for package, _ in facts.grammars.values()))
    return facts.syntax is not None and all(importlib.util.find_spec(name) for name in needed)


def get_syntax(language: Language) -> Syntax:
    """How a language is written.

    Raises:
        UsageError: Nothing is known of that; `has_grammar` tells.
    """
    facts = LANGUAGES[language]
    if facts.syntax is None:
        raise UsageError(f"there is no syntax of {facts.label} to change code by")
    return facts.syntax


def parse_tree(text: str, path: str, language: Language) -> Node:
    """The syntax tree of a file; what the grammar cannot read is a node of its own in it.

    Args:
        text: The file.
        path: For its ending.
        language: One that `has_grammar` knows.
    """
    return tree_of(text, path, LANGUAGES[language].grammars)
