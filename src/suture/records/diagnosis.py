"""Why a candidate fails, as far as somebody could say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suture.records.nouns import Strategy

__all__ = ["Diagnosis", "FaultCategory"]

FaultCategory = Literal[
    "syntax",
    "missing_name",
    "wrong_type",
    "wrong_logic",
    "boundary",
    "unhandled_case",
    "shared_state",
    "wrong_format",
    "too_slow",
    "environment",
]
"""What kind of mistake it is: the code does not parse; a name or an import is missing; a value has the wrong
type; the computation is wrong; it is wrong at the edges; an input is not handled; data is changed or shared
that should not be; the result has the wrong form; it takes too long; the mistake is not in the code."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What is wrong with a candidate, and how to go about mending it.

    Attributes:
        category: The kind of mistake.
        root_cause: What goes wrong and where, in a sentence or two.
        strategy: How to mend it.
        confidence: How sure whoever said so is, in [0, 1]; a small model's is worth little.
    """

    category: FaultCategory
    root_cause: str
    strategy: Strategy
    confidence: float
