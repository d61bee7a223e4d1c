"""Mutation operators as pure text edits, for Python and for languages that tree-sitter parses.

The search applies them to find repairs; mutation testing applies them to measure how well tests guard a
change. This package runs nothing and knows neither of the two.
"""

from suture.mutation.python.editing.edits import Edit, Mutant, mutated
from suture.mutation.python.python_mutants import mutants
from suture.mutation.trees.grammars import has_grammar
from suture.mutation.trees.tree_mutants import tree_mutants

__all__ = ["Edit", "Mutant", "has_grammar", "mutants", "mutated", "tree_mutants"]
