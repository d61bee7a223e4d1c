"""What a critic, a reviewer and a summariser say. None of it decides: checks do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Concern", "ConcernKind", "Critique", "Lesson", "Review", "Severity"]

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
class Review:
    """What a reviewer found in code that works.

    Attributes:
        concerns: The findings; none where there is nothing to say.
    """

    concerns: tuple[Concern, ...]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One short sentence worth keeping from what was tried."""

    text: str
