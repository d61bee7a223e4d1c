"""Mutants of a change: the code that they are made from, and the operators that make them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from suture.core.records import Language, UnmeasuredReason
from suture.judge.coverage.changed_statements import find_changed_lines
from suture.judge.coverage.coverage_run import MAX_SOURCE_BYTES, find_touched_by_file
from suture.mutation import Mutant, OperatorName, generate_mutants, has_grammar
from suture.mutation.syntax_repair.tree_repair import tree_has_error
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import decode_text

COMPILABLE_OPERATORS: tuple[OperatorName, ...] = (
    "comparison",
    "boolean_operator",
    "negation",
    "returned_condition",
    "arithmetic_operator",
    "off_by_one",
    "constant",
    "delete_statement",
)
"""Operators whose changes a compiler accepts in most cases."""
ALL_OPERATORS: tuple[OperatorName, ...] = (
    *COMPILABLE_OPERATORS,
    "variable",
    "attribute",
    "arguments",
    "return_value",
)
"""Operators that change or remove code. Mutants of those that add code are mostly equivalent."""


def find_mutable_lines(
    before: Mapping[str, bytes], after: Mapping[str, bytes], language: Language
) -> dict[str, tuple[range, ...]]:
    """Return path -> the code that mutants of a change are made from, as line ranges of `after`.

    In Python these are the touched statements, and in other languages the changed lines. A file with a syntax
    error has none, because the meaning of its changes is unknown. Paths without any are omitted.
    """
    if LANGUAGES[language].parsed:
        return find_touched_by_file(before, after)
    if not has_grammar(language):
        return {}
    lines_by_path: dict[str, tuple[range, ...]] = {}
    for path, content in sorted(after.items()):
        is_changed = before.get(path) != content and len(content) <= MAX_SOURCE_BYTES
        if not is_changed or not is_source(path, language):
            continue
        text = decode_text(content)
        if not tree_has_error(text, path, language):
            lines = find_changed_lines(decode_text(before.get(path, b"")), text)
            lines_by_path[path] = tuple(range(line, line + 1) for line in sorted(lines))
    return {path: ranges for path, ranges in lines_by_path.items() if ranges}


def explain_no_mutable_code(language: Language) -> UnmeasuredReason:
    """Return why a change without mutable code has no mutants."""
    is_supported = LANGUAGES[language].parsed or has_grammar(language)
    return "no_changed_code" if is_supported else "unsupported_language"


def generate_file_mutants(
    path: str, source: str, lines: Collection[int], language: Language
) -> Iterator[Mutant]:
    """Yield the mutants of some lines of a file.

    Args:
        lines: The lines that mutants may begin on, from 1.
    """
    facts = LANGUAGES[language]
    if facts.parsed:
        return generate_mutants(
            source, lines, operators=ALL_OPERATORS, on_fault=lambda operator, line, fault: None
        )
    if not facts.compiled:
        return generate_tree_mutants(source, path, language, lines, ALL_OPERATORS)
    raw = source.encode("utf-8", "surrogatepass")
    mutants = generate_tree_mutants(source, path, language, lines, COMPILABLE_OPERATORS)
    return (mutant for mutant in mutants if not _deletes_return(mutant, raw))


def _deletes_return(mutant: Mutant, raw: bytes) -> bool:
    """Return whether a mutant deletes a `return`: compilers refuse a function that ends without one."""
    return any(
        not edit.text and raw[edit.start : edit.end].split()[:1] == [b"return"] for edit in mutant.edits
    )


def is_parsable_mutant(path: str, source: str, language: Language) -> bool:
    """Return whether a mutated file still parses; Python mutants always do."""
    return LANGUAGES[language].parsed or not tree_has_error(source, path, language)
