"""The progress of a benchmark, as its caller receives it after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from suture.bench.rows import BenchmarkRow

BenchmarkPhase = Literal["references", "controls", "tasks", "grading"]
"""What is being done: grading the references, running the control solvers, measuring, or grading again."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkProgress:
    """The progress of a benchmark.

    Attributes:
        done: Number of finished steps of the phase, including those of earlier sessions.
        total: Number of all steps of the phase.
        row: The row that was just finished, if any.
    """

    phase: BenchmarkPhase
    done: int
    total: int
    row: BenchmarkRow | None = None


ProgressListener = Callable[[BenchmarkProgress], None]
