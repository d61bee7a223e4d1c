"""Mending without a model: where a fault may lie, small changes of the code, and a search among them.

This room owns fault localisation, the mutation operators and the search. It asks no model and no network,
and it does not decide: what its search lets through is judged by the trusted suite like any other candidate.
"""

from suture.judge.tampering.warnings import literals_of, warnings_about
from suture.search.failing_project import FailingProject
from suture.search.limits import SearchLimits
from suture.search.ordering.reverts import Hunk, hunks_between
from suture.search.other_languages.comparing.ranking import rank_elsewhere
from suture.search.other_languages.looking_ahead import LookAhead, look_elsewhere
from suture.search.other_languages.recovering import recover_elsewhere, unreadable_elsewhere
from suture.search.other_languages.searching import search_elsewhere
from suture.search.ranking import rank_repairs
from suture.search.recovering import recover
from suture.search.scoring import Difference, Repair
from suture.search.search_result import Findings
from suture.search.searching.ready import Ready
from suture.search.searching.search import search

__all__ = [
    "Difference",
    "FailingProject",
    "Findings",
    "Hunk",
    "LookAhead",
    "Ready",
    "Repair",
    "SearchLimits",
    "hunks_between",
    "literals_of",
    "look_elsewhere",
    "rank_elsewhere",
    "rank_repairs",
    "recover",
    "recover_elsewhere",
    "search",
    "search_elsewhere",
    "unreadable_elsewhere",
    "warnings_about",
]
