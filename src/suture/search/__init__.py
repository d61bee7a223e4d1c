"""Repairs without a model: where a fault may be, small changes of the code, and a search among them.

This package owns fault localisation, the order of candidates, the search, and the ranking of what it finds. One
engine serves all languages; `search.languages` holds what it needs to know of each. The package uses no model and no
network, and it does not decide: what the search proposes is judged by the trusted suite like any other candidate.
"""

from suture.judge.trials.drivers.driver_trials import EarlyBaseline, start_early_baseline
from suture.judge.trials.target_tests import FailingProject
from suture.search.engine.syntax_recovery import find_repairs
from suture.search.languages.language_adapter import TrialSession
from suture.search.languages.python_adapter import PythonSession, TrialPool
from suture.search.languages.tree_adapter import DriverSession
from suture.search.ordering.reverts import Hunk, compute_hunks
from suture.search.ranking.repair_scoring import PlausibleRepairs, Repair, rank_repairs
from suture.search.search_records import SearchLimits, SearchProgress, SearchResult, listen_to_search

__all__ = [
    "DriverSession",
    "EarlyBaseline",
    "FailingProject",
    "Hunk",
    "PlausibleRepairs",
    "PythonSession",
    "Repair",
    "SearchLimits",
    "SearchProgress",
    "SearchResult",
    "TrialPool",
    "TrialSession",
    "compute_hunks",
    "find_repairs",
    "listen_to_search",
    "rank_repairs",
    "start_early_baseline",
]
