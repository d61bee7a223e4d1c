"""The mutation operators, one family a file. Each knows Python and nothing of any program."""

from suture.mutation.python.operators import arithmetic, calls, comparisons, exceptions, insertions, names, statements, templates
from suture.mutation.python.operators import beginner_mistakes as beginners
from suture.mutation.python.operators import undefined_names as undefined
from suture.mutation.python.operators import code_reuse as usage
from suture.mutation.changes import Change, Operator

__all__ = ["OPERATORS", "Change", "Operator"]

FIRST = (undefined, comparisons, arithmetic, names, calls)
LATER = (statements, insertions, beginners, exceptions, usage, templates)
OPERATORS: tuple[Operator, ...] = tuple(
    operator for family in (*FIRST, *LATER) for operator in family.OPERATORS
)
