"""The mutation operators, one family a file. Each knows Python and nothing of any program."""

from suture.repair.operators import (
    arithmetic,
    calls,
    comparisons,
    exceptions,
    insertions,
    names,
    statements,
    templates,
)
from suture.repair.operators.change import Change, Operator

__all__ = ["OPERATORS", "Change", "Operator"]

OPERATORS: tuple[Operator, ...] = tuple(
    operator
    for family in (comparisons, arithmetic, names, calls, statements, insertions, exceptions, templates)
    for operator in family.OPERATORS
)
