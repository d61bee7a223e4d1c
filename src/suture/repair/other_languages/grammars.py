"""What changes know of each language's syntax; its trees are tree-sitter's (`languages/grammars.py`).

JavaScript, TypeScript and Go call most things alike in their grammars, so the kinds of nodes below serve all.
A row says only what a language writes in another way.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.languages import LANGUAGES
from suture.languages.grammars import tree_of
from suture.records import Language

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """What a language writes in its own way.

    Attributes:
        length: Of `{}`, a sequence.
        end: Of a statement.
        test: An `if` with a condition and a statement.
        equal: Whether two are the same, and whether they are not.
        nothing: What stands for no value.
        put: How a value `{1}` gets into a sequence `{0}`.
        around: Expressions that people forget around or behind `{}`, the likeliest first.
        answers: What a function may return where it has nothing to say.
        families: Names of which one is easily taken for another.
    """

    length: str
    end: str
    test: str
    equal: tuple[str, str]
    nothing: str
    put: str
    around: tuple[str, ...]
    answers: tuple[str, ...]
    families: tuple[tuple[str, ...], ...]


JAVASCRIPT_FAMILIES = (
    *(("min", "max"), ("floor", "ceil", "round", "trunc", "abs"), ("push", "unshift", "concat")),
    *(("pop", "shift"), ("slice", "splice", "substring", "substr"), ("indexOf", "lastIndexOf", "search")),
    *(("startsWith", "endsWith", "includes"), ("toLowerCase", "toUpperCase"), ("isNaN", "isFinite")),
    *(("trim", "trimStart", "trimEnd"), ("some", "every", "filter", "find", "findIndex", "map")),
    *(("map", "flatMap", "forEach", "filter"), ("parseInt", "parseFloat", "Number", "String")),
    *(("keys", "values", "entries"), ("has", "get", "delete"), ("padStart", "padEnd"), ("add", "delete")),
    *(("charAt", "charCodeAt", "at"), ("reduce", "reduceRight"), ("replace", "replaceAll")),
)
GO_FAMILIES = (
    *(("min", "max"), ("Min", "Max"), ("Floor", "Ceil", "Round", "Trunc", "Abs")),
    *(("HasPrefix", "HasSuffix", "Contains"), ("Index", "LastIndex", "IndexByte", "Count")),
    *(("ToLower", "ToUpper", "Title"), ("TrimLeft", "TrimRight", "TrimSpace", "Trim")),
    *(("TrimPrefix", "TrimSuffix"), ("Ints", "Strings", "Float64s"), ("Split", "SplitN", "Fields")),
    *(("IsUpper", "IsLower", "IsDigit", "IsLetter", "IsSpace"), ("Replace", "ReplaceAll")),
    *(("Lock", "RLock", "Unlock", "RUnlock"), ("Before", "After", "Equal"), ("Errorf", "Error")),
    *(("Seconds", "Minutes", "Hours"), ("Add", "Sub"), ("Atoi", "Itoa"), ("Push", "Pop")),
)
JAVASCRIPT = Grammar(
    length="{}.length",
    end=";",
    test="if ({}) {{ {} }}",
    equal=("===", "!=="),
    nothing="null",
    put="{}.push({});",
    around=(
        *("Math.abs({})", "Math.floor({})", "{}.length", "-{}", "{}.toLowerCase()", "{}.sort()"),
        *("Math.ceil({})", "Math.round({})", "{}.reverse()", "Number({})", "String({})", "{}.toString()"),
        *("{}.trim()", "{}.slice(1)", "{}.slice(0, -1)", "{}[0]", "[...{}]", "{}.toUpperCase()"),
        *("{}.join('')", "{}.split('')", "parseInt({})", "{} % 2", "await {}", "[...new Set({})]", "[{}]"),
        *("{}.slice()", "Math.sqrt({})", "{}.sort((a, b) => a - b)", "({} ?? '')", "({} ?? 0)"),
    ),
    answers=("true", "false", "0", "[]", "''", "null", "-1", "1", "undefined"),
    families=JAVASCRIPT_FAMILIES,
)
GRAMMARS: Mapping[Language, Grammar] = {
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "go": Grammar(
        length="len({})",
        end="",
        test="if {} {{ {} }}",
        equal=("==", "!="),
        nothing="nil",
        put="{0} = append({0}, {1})",
        around=(
            *("len({})", "-{}", "strings.ToLower({})", "strings.TrimSpace({})", "math.Abs({})", "int({})"),
            *("float64({})", "{}[1:]", "{}[0]", "string({})", "{} % 2", "{}.Len()", "&{}", "*{}"),
            *("math.Floor({})", "math.Ceil({})", "math.Round({})", "strings.ToUpper({})", "{}[:len({})-1]"),
        ),
        answers=("true", "false", "0", "nil", '""', "-1", "1"),
        families=GO_FAMILIES,
    ),
}

FUNCTIONS = frozenset(
    (
        *("function_declaration", "function_expression", "arrow_function", "method_definition"),
        *("generator_function_declaration", "generator_function", "method_declaration", "func_literal"),
    )
)
BLOCKS = frozenset(("statement_block", "statement_list", "program", "switch_case", "switch_default"))
CALLS = frozenset(("call_expression", "new_expression"))
ARGUMENTS = frozenset(("arguments", "argument_list"))
MEMBERS = frozenset(("member_expression", "selector_expression"))
PARTS = frozenset(("subscript_expression", "index_expression"))
NUMBERS = frozenset(("number", "int_literal", "float_literal"))
STRINGS = frozenset(("string", "interpreted_string_literal", "rune_literal", "raw_string_literal"))
LOOPS = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement"))
LISTS = frozenset(("array", "literal_value"))
RETURNS = frozenset(("return_statement",))
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
    packages = {package for package, _ in LANGUAGES[language].grammars.values()}
    needed = ("tree_sitter", *packages)
    return language in GRAMMARS and all(importlib.util.find_spec(name) for name in needed)


def parsed_tree(text: str, path: str, language: Language) -> Node:
    """The syntax tree of a file; what the grammar cannot read is a node of its own in it.

    Args:
        text: The file.
        path: For its ending.
        language: One that `has_grammar` knows.
    """
    return tree_of(text, path, LANGUAGES[language].grammars)
