"""Mending without a model: where a fault may lie, small changes of the code, and a search among them.

This room owns fault localisation, the mutation operators and the search. It asks no model and no network,
and it does not decide: what its search lets through is judged by the trusted suite like any other candidate.
"""

from suture.repair.edits import Edit, Mutant, mutated
from suture.repair.mutants import mutants

__all__ = ["Edit", "Mutant", "mutants", "mutated"]
