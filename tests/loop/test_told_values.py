"""What the loop tells the ledger of values of other rooms: nothing of them is left out or named otherwise."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from suture.agents import Hint
from suture.api.delivery.undo import UndoResult
from suture.core.ledger.kinds import (
    BrokenOperator,
    DifferingAnswers,
    NotTheCodes,
    PartialRepair,
    TreeUndone,
)
from suture.judge.triage.triage import NotCode
from suture.mutation.python.python_mutants import OperatorFault
from suture.search import Difference


@pytest.mark.parametrize(
    ("told", "value", "more"),
    [
        (NotTheCodes, NotCode, set()),
        (PartialRepair, Hint, set()),
        (DifferingAnswers, Difference, set()),
        (BrokenOperator, OperatorFault, {"path"}),
        (TreeUndone, UndoResult, {"why"}),
    ],
)
def test_a_value_is_told_with_all_its_fields(told: Any, value: Any, more: set[str]) -> None:
    assert {one.name for one in fields(told)} == {one.name for one in fields(value)} | more
