"""The mutation operators for Python, one family per file. They know Python and nothing of any program."""

from typing import get_args

from suture.mutation.edits import OperatorName
from suture.mutation.python.operators import (
    arithmetic,
    beginner_mistakes,
    calls,
    code_reuse,
    comparisons,
    exceptions,
    names,
    statements,
    undefined_names,
)
from suture.mutation.python.python_tree import PythonOperator

__all__ = ["OPERATORS", "PythonOperator"]

_FAMILIES = (
    undefined_names, comparisons, arithmetic, names, calls, statements, beginner_mistakes, exceptions, code_reuse,
)  # fmt: skip
_ORDER = get_args(OperatorName)
OPERATORS: tuple[PythonOperator, ...] = tuple(
    sorted(
        (operator for family in _FAMILIES for operator in family.OPERATORS),
        key=lambda operator: _ORDER.index(operator.name),
    )
)
"""All operators, in the order of `operator_names`."""
