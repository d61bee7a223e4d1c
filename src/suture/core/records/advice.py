"""What models say of a task or a candidate: critique, review, lessons, diagnosis, plan. Checks decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suture.core.records.result import Strategy

ConcernKind = Literal["security", "correctness", "performance", "readability"]
Severity = Literal["low", "medium", "high"]


@dataclass(frozen=True, kw_only=True)
class Critique:
    """A critic's view of a candidate.

    Attributes:
        issues: What is wrong with it, the worst first; none where nothing is.
        score: How good it is, in [0, 1].
        approved: Whether the critic would take it as it is.
    """

    issues: tuple[str, ...]
    score: float
    approved: bool


@dataclass(frozen=True, kw_only=True)
class Concern:
    """One finding of a reviewer.

    Attributes:
        kind: What it concerns.
        severity: How bad it is.
        line: The line of the code, counted from 1; 0 where it has no one place.
        problem: What is wrong there.
    """

    kind: ConcernKind
    severity: Severity
    line: int
    problem: str


@dataclass(frozen=True, kw_only=True)
class CodeReview:
    """What a reviewer found in code that works.

    Attributes:
        concerns: The findings; none where there is nothing to say.
    """

    concerns: tuple[Concern, ...]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One short sentence worth keeping from what was tried."""

    text: str


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


@dataclass(frozen=True, kw_only=True)
class Subtask:
    """One part of a task.

    Attributes:
        goal: What is to be done, in a sentence or two.
        needs: Numbers of the parts that must be done before, counted from 1.
    """

    goal: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parts of a task.

    Attributes:
        subtasks: The parts; each needs only parts that stand before it.
    """

    subtasks: tuple[Subtask, ...]

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be followed.

        Raises:
            ValueError: A part needs itself, a later part, or one that is not there.
        """
        for number, subtask in enumerate(self.subtasks, 1):
            odd = [need for need in subtask.needs if not 1 <= need < number]
            if odd:
                raise ValueError(f"part {number} needs {odd}, and may need only parts before it")

    @property
    def waves(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the parts in groups: those of one need none of each other, only of groups before."""
        depth: dict[int, int] = {}
        for number, subtask in enumerate(self.subtasks, 1):
            depth[number] = 1 + max((depth[need] for need in subtask.needs), default=-1)
        return tuple(
            tuple(number for number in depth if depth[number] == level)
            for level in range(max(depth.values(), default=-1) + 1)
        )
