"""The records of what models say about a task or a candidate.

They inform the run. Only checks decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suture.core.records.result import Strategy


@dataclass(frozen=True, kw_only=True)
class Critique:
    """A critic's opinion of a candidate.

    Attributes:
        issues: What is wrong with it, the worst first.
        score: How good it is, in [0, 1].
        approved: Whether the critic would accept it as it is.
    """

    issues: tuple[str, ...]
    score: float
    approved: bool


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
"""The kind of mistake. The codes mean, in this order: the code does not parse; a name or an import is missing; a
value has the wrong type; the computation is wrong; it is wrong for boundary values only; an input is not
handled; data is changed or shared by mistake; the result has the wrong format; the code takes too long; the
mistake is not in the code."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What is wrong with a candidate, and how to repair it.

    Attributes:
        category: Kind of mistake.
        root_cause: What goes wrong and where, in one or two sentences.
        strategy: How to repair it.
        confidence: How sure the author is, in [0, 1]. A small model's confidence means little.
    """

    category: FaultCategory
    root_cause: str
    strategy: Strategy
    confidence: float


@dataclass(frozen=True, kw_only=True)
class Subtask:
    """One part of a plan.

    Attributes:
        goal: What is to be done, in one or two sentences.
        needs: Numbers of the subtasks that must be done before, from 1.
    """

    goal: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A task that is split into subtasks.

    Attributes:
        subtasks: The subtasks. Each one needs only earlier ones.
    """

    subtasks: tuple[Subtask, ...]

    def __post_init__(self) -> None:
        """Check that the plan can be carried out.

        Raises:
            ValueError: A subtask needs itself, a later one, or one that does not exist.
        """
        for number, subtask in enumerate(self.subtasks, 1):
            invalid = [need for need in subtask.needs if not 1 <= need < number]
            if invalid:
                raise ValueError(f"subtask {number} needs {invalid}, and may need only earlier ones")

    @property
    def waves(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the subtasks, in groups.

        The subtasks of one group need only those of earlier groups, so they can be done in parallel.
        """
        wave_by_subtask: dict[int, int] = {}
        for number, subtask in enumerate(self.subtasks, 1):
            wave_by_subtask[number] = 1 + max((wave_by_subtask[need] for need in subtask.needs), default=-1)
        return tuple(
            tuple(number for number in wave_by_subtask if wave_by_subtask[number] == wave)
            for wave in range(max(wave_by_subtask.values(), default=-1) + 1)
        )
