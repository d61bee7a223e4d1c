"""Mutation operators as pure text edits, for Python and for languages that tree-sitter parses.

The search applies them to find repairs; mutation testing applies them to measure how well tests guard a
change. This package runs nothing and knows neither of the two.
"""

from suture.mutation.edits import Edit, Mutant, apply_edits
from suture.mutation.python.python_mutants import generate_mutants
from suture.mutation.tree_sitter.grammars import has_grammar
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants

__all__ = ["Edit", "Mutant", "has_grammar", "generate_mutants", "apply_edits", "generate_tree_mutants"]
