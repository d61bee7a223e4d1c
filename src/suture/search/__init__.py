"""Repairs without a model: where a fault may be, small changes of the code, and a search among them.

This package owns fault localisation, the order of candidates, the search, and the ranking of what it finds.
It uses no model and no network, and it does not decide: what the search proposes is judged by the trusted
suite like any other candidate.
"""

from suture.search.engine.python_search import search_python
from suture.search.engine.syntax_recovery import recover_python
from suture.search.engine.trial_pool import TrialPool
from suture.search.ordering.reverts import Hunk, compute_hunks
from suture.search.ranking.python_ranking import rank_python_repairs
from suture.search.ranking.repair_scoring import PlausibleRepairs, Repair
from suture.search.search_records import FailingProject, SearchLimits, SearchResult
from suture.search.tree_sitter.driver_trials import EarlyBaseline, start_early_baseline
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.tree_ranking import rank_tree_repairs
from suture.search.tree_sitter.tree_recovery import (
    UnparsableFile,
    find_unparsable_file,
    recover_with_tree_sitter,
)
from suture.search.tree_sitter.tree_search import search_with_tree_sitter

__all__ = [
    "EarlyBaseline",
    "FailingProject",
    "Hunk",
    "PlausibleRepairs",
    "Repair",
    "SearchLimits",
    "SearchResult",
    "TrialPool",
    "UnparsableFile",
    "collect_tree_literals",
    "compute_hunks",
    "find_tree_warnings",
    "find_unparsable_file",
    "rank_python_repairs",
    "rank_tree_repairs",
    "recover_python",
    "recover_with_tree_sitter",
    "search_python",
    "search_with_tree_sitter",
    "start_early_baseline",
]
