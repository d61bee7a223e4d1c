"""Guesses the kind of value of expressions and variables, and compares operators by their frequency in other code.

The frequencies were counted in Python code. They are used for JavaScript, TypeScript and Go too, because people compare
and calculate in the same way in these languages. The lists of names and nodes are chosen by judgement. They were
written for JavaScript: in Go, an assignment such as `x := 1` says nothing about `x`.

The kinds of nodes in the syntax trees of JavaScript, TypeScript and Go.

The grammars name most nodes alike, so each set below lists the node types of all three languages. What
the languages write differently is in their `SyntaxTemplates`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.errors import UsageError
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.sign_frequencies import AUGMENTED, BINARY, COMPARED, IDENTITY_OPERATORS, frequency_ratio
from suture.project.languages import LANGUAGES
from suture.project.languages.language import SyntaxTemplates
from suture.project.languages.reports import parse_tree

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
"""Nodes of expressions that operators change or copy; functions, objects and types are not among them."""
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
    """Return the syntax tree of a file; source that does not parse becomes an error node.

    Args:
        path: Its path, whose extension may select a dialect.
        language: A language for which `has_grammar` is true.
    """
    return parse_tree(text, path, LANGUAGES[language].grammars)


NUMERIC_CALLS = (
    "len", "int", "Number", "parseInt", "parseFloat", "abs", "floor", "ceil", "round", "sqrt",
    "indexOf",
)  # fmt: skip
SEQUENCE_METHODS = (
    "push", "pop", "shift", "unshift", "sort", "reverse", "map", "filter", "forEach", "join", "reduce",
    "every", "some", "splice", "concat",
)  # fmt: skip
TEXT_METHODS = (
    "split", "toLowerCase", "toUpperCase", "charCodeAt", "charAt", "trim", "startsWith", "endsWith",
)  # fmt: skip
MAPPING_METHODS = ("set", "has", "entries")
NUMERIC_OPERATORS = ("-", "*", "/", "%", "**")
LOOSE_EQUALITY = {"===": "==", "!==": "!="}
KIND_BY_METHOD: dict[str, ValueKind] = {
    **dict.fromkeys(SEQUENCE_METHODS, "sequence"),
    **dict.fromkeys(TEXT_METHODS, "text"),
    **dict.fromkeys(MAPPING_METHODS, "mapping"),
}
KIND_BY_NODE: dict[str, ValueKind] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys((*STRINGS, "template_string"), "text"),
    **dict.fromkeys(("update_expression", "inc_statement", "dec_statement"), "number"),
    **dict.fromkeys(("array", "slice_expression"), "sequence"),
    # By judgement: what `new` creates is most often a `Map` or another object with named parts.
    **dict.fromkeys(("object", "new_expression"), "mapping"),
}


def guess_node_kind(node: Node) -> ValueKind:
    """Return the kind of value that an expression seems to have."""
    kind = KIND_BY_NODE.get(node.type, "unknown")
    if node.type in (*CALLS, *MEMBERS) and _last_name(node) in (*NUMERIC_CALLS, "length"):
        return "number"
    sign = node.child_by_field_name("operator")
    if node.type in ("binary_expression", "unary_expression") and sign is not None:
        return "number" if sign.type in NUMERIC_OPERATORS else "unknown"
    return kind


def find_kind_evidence(node: Node) -> Iterator[tuple[Node, ValueKind]]:
    """Yield `(name, kind)` for names in a node whose kind of value the node shows.

    For example, `i++` shows that `i` is a number.
    """
    above = node.parent
    if node.type in ("variable_declarator", "assignment_expression", "augmented_assignment_expression"):
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and value is not None and (kind := guess_node_kind(value)) != "unknown":
            yield target, kind
    elif node.type in ("binary_expression", "update_expression", "inc_statement", "dec_statement"):
        sign = node.child_by_field_name("operator")
        if node.type != "binary_expression" or (sign is not None and sign.type in NUMERIC_OPERATORS):
            yield from ((side, "number") for side in node.named_children)
    elif node.type in SUBSCRIPTS and node.named_child_count > 1:
        if node.named_children[1].type in NUMBERS:
            yield node.named_children[0], "sequence"
    elif node.type == "argument_list" and above is not None and above.type in CALLS:  # Go
        if _last_name(above) == "append":
            yield from ((argument, "sequence") for argument in node.named_children[:1])
    elif node.type in MEMBERS and above is not None and above.type in CALLS:
        kind = KIND_BY_METHOD.get(_last_name(node), "unknown")
        if kind != "unknown":
            yield node.named_children[0], kind


def kind_fit(kind: ValueKind, replacement_kind: ValueKind) -> float:
    """Return how well a variable of one kind can replace one of another, in (0, 1].

    The numbers are chosen by judgement: a variable of an unknown kind often fits, one of another kind seldom.
    """
    if "unknown" in (kind, replacement_kind):
        return 0.8
    return 1.0 if kind == replacement_kind else 0.25


def sign_ratio(left: Node, old_sign: str, new_sign: str, right: Node) -> float:
    """Return the factor on the weight of replacing an operator, such as `<` with `<=`.

    It is the ratio of how frequent the new and the old one are between such operands; 1 where no counts exist.
    In the tables of `sign_frequencies`, the kind is that of the right operand. `text first` and `number first`
    mean that only the kind of the left one is known. `other` is for unknown kinds, and holds every operator.
    """
    old, new = LOOSE_EQUALITY.get(old_sign, old_sign), LOOSE_EQUALITY.get(new_sign, new_sign)
    left_kind, right_kind = _operand_kind(left), _operand_kind(right)
    if old in COMPARED["other"] and new in COMPARED["other"]:
        kind = right_kind
        if kind == "other" and left_kind in ("text", "number"):
            kind = f"{left_kind} first"
        if kind in ("none", "bool"):
            old, new = IDENTITY_OPERATORS.get(old, old), IDENTITY_OPERATORS.get(new, new)
        return frequency_ratio(COMPARED[kind].get(old, 0), COMPARED[kind].get(new, 0))
    # In Python, `%` formats strings and `*` repeats strings and lists: what is counted there says nothing here.
    are_binary = old in BINARY["other"] and new in BINARY["other"]
    if are_binary and not {"text", "display"} & {left_kind, right_kind}:
        kind = "number" if right_kind == "number" else "number first" if left_kind == "number" else "other"
        return frequency_ratio(_operator_frequency(BINARY[kind], old), _operator_frequency(BINARY[kind], new))
    return 1.0


def assignment_ratio(old_sign: str, new_sign: str, value: Node) -> float:
    """Return the same factor as `sign_ratio` for assignments such as `+=`; 1 for a plain `=`."""
    old, new = old_sign.removesuffix("="), new_sign.removesuffix("=")
    if not old or not new:
        return 1.0
    frequencies = AUGMENTED["number" if _operand_kind(value) == "number" else "other"]
    return frequency_ratio(_operator_frequency(frequencies, old), _operator_frequency(frequencies, new))


def _operator_frequency(frequencies: dict[str, int], sign: str) -> int:
    """Return the frequency of an operator; `/` includes both divisions of Python."""
    return frequencies.get(sign, 0) + (frequencies.get("//", 0) if sign == "/" else 0)


def _operand_kind(node: Node) -> str:
    """Return the kind of an operand as the tables of `sign_frequencies` name it."""
    if node.type in NULLS:
        return "none"
    if node.type in ("true", "false"):
        return "bool"
    if node.type in ("array", "object"):
        return "display"
    if node.type not in (*NUMBERS, *STRINGS, "template_string", *CALLS, *MEMBERS, "unary_expression"):
        return "other"
    kind = guess_node_kind(node)
    return kind if kind in ("number", "text") else "other"


def _last_name(node: Node) -> str:
    """Return the last name of a called function or member: `c` of `a.b.c`."""
    callee = node.child_by_field_name("function") or node
    name = callee.child_by_field_name("property") or callee.child_by_field_name("field") or callee
    return (name.text or b"").decode("utf-8", "replace")
