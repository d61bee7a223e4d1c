"""The protocol of an evaluator, which measures one aspect of accepted code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from suture.judge import Suite
from suture.project.languages import Interpreter


@dataclass(frozen=True, kw_only=True)
class QualitySubject:
    """Accepted code, and the suite that judged it.

    Attributes:
        files: The Python files that the candidate wrote, path -> text, without the rest of the project.
        suite: The task with its checks, the sandbox and its limits.
        interpreter: The project's interpreter, if it has one.
    """

    files: Mapping[str, str]
    suite: Suite
    interpreter: Interpreter | None = None


@dataclass(frozen=True, kw_only=True)
class QualityResult:
    """What an evaluator measured.

    Attributes:
        values: Metric -> number; a metric with a unit has it in its name.
        findings: Places in the code, as `path:line: text`.
        unmeasured: Why nothing was measured, for people; empty if something was.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    unmeasured: str = ""


@runtime_checkable
class Evaluator(Protocol):
    """Measures one aspect of the quality of accepted code. It decides nothing."""

    @property
    def name(self) -> str:
        """One word that is unique among the evaluators."""
        ...

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Measure the subject. What cannot be measured is reported as `unmeasured`, never guessed.

        Raises:
            SandboxError: The sandbox failed.
        """
        ...
