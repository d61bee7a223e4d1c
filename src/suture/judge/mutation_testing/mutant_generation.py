"""What mutants of a change are made of, and by what: Python by its own syntax, the rest by a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from suture.core.records import Language
from suture.judge.coverage.changed_statements import changed_lines, why_unmeasured
from suture.judge.coverage.coverage_run import LARGEST_BYTES, touched
from suture.mutation import Mutant, OperatorName, generate_mutants, has_grammar
from suture.mutation.syntax_repair.tree_repair import tree_has_error
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import text_of

FITTING: tuple[OperatorName, ...] = (
    "comparison",
    "boolean_operator",
    "negation",
    "returned_condition",
    "arithmetic_operator",
    "off_by_one",
    "constant",
    "delete_statement",
)
"""Operators whose changes a compiler mostly takes."""
OPERATORS: tuple[OperatorName, ...] = (*FITTING, "variable", "attribute", "arguments", "return_value")
"""Operators that change or remove what is there; those that add code mostly mean the same."""


def find_mutable_lines(
    before: Mapping[str, bytes], after: Mapping[str, bytes], language: Language
) -> dict[str, tuple[range, ...]]:
    """Path -> what mutants of a change are made of, as lines of `after`; paths without any are left out.

    In Python that is the touched statements, elsewhere each changed line. A file whose tree has a fault has
    none: what its changes mean cannot be told.

    Args:
        before: The project before the change.
        after: The project with it.
        language: What it is written in.
    """
    if LANGUAGES[language].parsed:
        return touched(before, after)
    if not has_grammar(language):
        return {}
    found: dict[str, tuple[range, ...]] = {}
    for path, content in sorted(after.items()):
        changed = before.get(path) != content and len(content) <= LARGEST_BYTES
        if changed and is_source(path, language) and not tree_has_error(text_of(content), path, language):
            lines = changed_lines(text_of(before.get(path, b"")), text_of(content))
            found[path] = tuple(range(line, line + 1) for line in sorted(lines))
    return {path: spots for path, spots in found.items() if spots}


def why_no_mutants(language: Language) -> str:
    """Why a change of which no code was touched has no mutants."""
    facts = LANGUAGES[language]
    if facts.parsed:
        return why_unmeasured(language)
    if has_grammar(language):
        return f"no {facts.label} that can be read was changed, or only in a file that is too large"
    return f"nothing here reads {facts.label}"


def generate_file_mutants(
    path: str, source: str, lines: Collection[int], language: Language
) -> Iterator[Mutant]:
    """The mutants of some lines of a file.

    Args:
        path: The file.
        source: Its text.
        lines: Where they begin, from 1.
        language: What it is written in.
    """
    facts = LANGUAGES[language]
    if facts.parsed:
        return generate_mutants(
            source, lines, operators=OPERATORS, on_fault=lambda operator, line, fault: None
        )
    if not facts.compiled:
        return generate_tree_mutants(source, path, language, lines, OPERATORS)
    raw = source.encode("utf-8", "surrogatepass")
    made = generate_tree_mutants(source, path, language, lines, FITTING)
    return (mutant for mutant in made if not _answers_no_more(mutant, raw))


def _answers_no_more(mutant: Mutant, raw: bytes) -> bool:
    """Whether a mutant takes a `return` away: compilers refuse a function that ends without one."""
    return any(
        not edit.text and raw[edit.start : edit.end].split()[:1] == [b"return"] for edit in mutant.edits
    )


def is_parsable_mutant(path: str, source: str, language: Language) -> bool:
    """Whether a mutated file is still one of its language; Python's mutants all are."""
    return LANGUAGES[language].parsed or not tree_has_error(source, path, language)
