"""A search in languages other than Python: changes of a syntax tree, tried on the failing tests first.

Trials are quick where a driver of ours can run the tests of many candidates in one start (`node:test`,
`go test`); elsewhere each costs a run of the user's command. What a trial says orders candidates and decides
nothing.
"""

from suture.repair.other_languages.comparing.ranking import rank_elsewhere
from suture.repair.other_languages.gaming import tree_literals, tree_warnings
from suture.repair.other_languages.grammars import has_grammar
from suture.repair.other_languages.looking_ahead import LookAhead, look_elsewhere
from suture.repair.other_languages.reading import tree_has_fault
from suture.repair.other_languages.recovering import recover_elsewhere, unreadable_elsewhere
from suture.repair.other_languages.searching import search_elsewhere
from suture.repair.other_languages.tree_mutants import tree_mutants

__all__ = [
    "LookAhead",
    "has_grammar",
    "look_elsewhere",
    "rank_elsewhere",
    "recover_elsewhere",
    "search_elsewhere",
    "tree_has_fault",
    "tree_literals",
    "tree_mutants",
    "tree_warnings",
    "unreadable_elsewhere",
]
