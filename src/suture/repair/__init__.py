"""Mending without a model: where a fault may lie, small changes of the code, and a search among them.

This room owns fault localisation, the mutation operators and the search. It asks no model and no network,
and it does not decide: what its search lets through is judged by the trusted suite like any other candidate.
"""

from suture.repair.editing.edits import Edit, Mutant, mutated
from suture.repair.failing_project import FailingProject
from suture.repair.gaming.warnings import literals_of, warnings_about
from suture.repair.limits import SearchLimits
from suture.repair.mutants import mutants
from suture.repair.ordering.reverts import Hunk, hunks_between
from suture.repair.other_languages.comparing.ranking import rank_elsewhere
from suture.repair.other_languages.grammars import has_grammar
from suture.repair.other_languages.looking_ahead import LookAhead, look_elsewhere
from suture.repair.other_languages.recovering import recover_elsewhere, unreadable_elsewhere
from suture.repair.other_languages.searching import search_elsewhere
from suture.repair.ranking import rank_repairs
from suture.repair.recovering import recover
from suture.repair.scoring import Difference, Repair
from suture.repair.search_result import Findings
from suture.repair.searching.ready import Ready
from suture.repair.searching.search import search
from suture.repair.trials.records import Proposal

__all__ = [
    "Difference",
    "Edit",
    "FailingProject",
    "Findings",
    "Hunk",
    "LookAhead",
    "Mutant",
    "Proposal",
    "Ready",
    "Repair",
    "SearchLimits",
    "has_grammar",
    "hunks_between",
    "literals_of",
    "look_elsewhere",
    "mutants",
    "mutated",
    "rank_elsewhere",
    "rank_repairs",
    "recover",
    "recover_elsewhere",
    "search",
    "search_elsewhere",
    "unreadable_elsewhere",
    "warnings_about",
]
