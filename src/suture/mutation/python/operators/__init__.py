"""The mutation operators, one family a file. Each knows Python and nothing of any program."""

from suture.mutation.python.operators import (
    arithmetic,
    beginners,
    calls,
    comparisons,
    exceptions,
    insertions,
    names,
    statements,
    templates,
    undefined,
    usage,
)
from suture.mutation.python.operators.change import Change, Operator

__all__ = ["OPERATORS", "Change", "Operator"]

FIRST = (undefined, comparisons, arithmetic, names, calls)
LATER = (statements, insertions, beginners, exceptions, usage, templates)
OPERATORS: tuple[Operator, ...] = tuple(
    operator for family in (*FIRST, *LATER) for operator in family.OPERATORS
)
