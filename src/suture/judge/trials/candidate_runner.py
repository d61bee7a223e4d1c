"""The contract of what tries candidates on the tests of a project."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from suture.judge.trials.trial_records import Proposal, TestLines, Trial

TrialReport = tuple[Proposal, Trial | None]
"""A candidate and its trial; `None` if it could not be tried at all."""


class CandidateRunner(ABC):
    """Tries candidates on the tests, a batch at a time.

    Attributes:
        notes: What the user should know about the trials.
        is_patient: Whether a candidate that timed out can be tried again with longer timeouts.
        min_run_s: Wall-clock seconds below which it is not worthwhile to run a batch.
        max_overrun_s: Wall-clock seconds by which a batch may exceed its timeout.
    """

    notes: list[str]
    is_patient: bool = False
    min_run_s: float = 0.0
    max_overrun_s: float = 1.0

    @property
    def usable(self) -> bool:
        """Whether candidates can be tried here."""
        return True

    @property
    def can_finish(self) -> bool:
        """Whether a trial can run all tests."""
        return True

    @property
    def batch_size(self) -> int:
        """Candidates that the next batch should have."""
        return 1

    @property
    @abstractmethod
    def max_rivals(self) -> int:
        """Candidates that are tried after the first plausible repair."""

    async def wait_for_spectrum(self, timeout_s: float) -> bool:
        """Wait until a trial can run all tests, and return whether it can."""
        return self.can_finish

    @abstractmethod
    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> Sequence[TrialReport]:
        """Try candidates in their order, as many as fit into the time.

        Args:
            extra_cpu_s: CPU seconds that each test may take in addition to its limit, if `is_patient`.

        Raises:
            SandboxError: The sandbox failed.
        """

    async def trace_lines(self, proposal: Proposal) -> TestLines:
        """Return the lines that failing tests run with a change; empty if they cannot be traced."""
        return {}
