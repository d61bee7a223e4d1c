"""Mending without a model: where a fault may lie, small changes of the code, and a search among them.

This room owns fault localisation, the mutation operators and the search. It asks no model and no network,
and it does not decide: what its search lets through is judged by the trusted suite like any other candidate.
"""

from suture.judge.tampering import literals_of, warnings_about
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.ordering.reverts import Hunk, compute_hunks
from suture.search.tree_sitter.tree_ranking import rank_tree_repairs
from suture.search.tree_sitter.early_baseline import EarlyBaseline, start_early_baseline
from suture.search.tree_sitter.tree_recovery import recover_with_tree_sitter, find_unparsable_file
from suture.search.tree_sitter.tree_search import search_with_tree_sitter
from suture.search.ranking.python_ranking import rank_python_repairs
from suture.search.engine.syntax_recovery import recover_python
from suture.search.ranking.repair_scoring import Difference, Repair
from suture.search.search_result import SearchResult
from suture.search.engine.trial_pool import TrialPool
from suture.search.engine.python_search import search_python

__all__ = [
    "Difference",
    "FailingProject",
    "SearchResult",
    "Hunk",
    "EarlyBaseline",
    "TrialPool",
    "Repair",
    "SearchLimits",
    "compute_hunks",
    "literals_of",
    "start_early_baseline",
    "rank_tree_repairs",
    "rank_python_repairs",
    "recover_python",
    "recover_with_tree_sitter",
    "search_python",
    "search_with_tree_sitter",
    "find_unparsable_file",
    "warnings_about",
]
