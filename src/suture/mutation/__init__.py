"""Mutation operators as pure text edits, for Python and for languages that tree-sitter parses.

The search applies them to find repairs, and mutation testing applies them to measure how well tests guard a
change. `syntax_repair` holds the changes that make a broken source parsable. This package runs no code, and
must not import `search` or `judge`.
"""

from suture.mutation.edits import Edit, Mutant, OperatorName, apply_edits
from suture.mutation.mutant_generation import generate_mutants
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.mutation.tree_sitter.value_kinds import has_grammar

__all__ = [
    "Edit",
    "Mutant",
    "OperatorName",
    "apply_edits",
    "generate_mutants",
    "generate_tree_mutants",
    "has_grammar",
]
