"""The one seam to a measure of accepted code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from suture.judge import Suite
from suture.project.languages import Interpreter


@dataclass(frozen=True, kw_only=True)
class QualitySubject:
    """Accepted code, and what judged it.

    Attributes:
        files: The candidate's Python files, path -> text: what it wrote, not the rest of the project.
        suite: The task with its checks, the wall and its limits.
        interpreter: The user's, where the project has one.
    """

    files: Mapping[str, str]
    suite: Suite
    interpreter: Interpreter | None = None


@dataclass(frozen=True, kw_only=True)
class QualityResult:
    """What an evaluator found.

    Attributes:
        values: Metric -> number; each name says its unit where it has one.
        findings: Places in the code, `path:line: what`.
        absent: Why nothing was measured; empty where something was.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    absent: str = ""


@runtime_checkable
class Evaluator(Protocol):
    """Measures one side of the quality of accepted code. It decides nothing."""

    @property
    def name(self) -> str:
        """One word, unique among the evaluators."""
        ...

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Measure; what is missing for it is said in `absent`, and never guessed.

        Raises:
            SandboxError: The wall failed.
        """
        ...
