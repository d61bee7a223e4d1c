"""Hold what was started ahead of a search: its worker processes, or a baseline run in another language."""

from __future__ import annotations

from dataclasses import dataclass

from suture.judge import Suite
from suture.search import (
    DriverSession,
    EarlyBaseline,
    FailingProject,
    PythonSession,
    SearchLimits,
    TrialPool,
    TrialSession,
)


@dataclass(kw_only=True)
class SearchPrefetch:
    """Work that is started before it is known that a search is needed; it only saves time.

    Attributes:
        pool: Worker processes that were started and that nobody has taken.
        baseline: A baseline run in another language than Python that nobody has taken.
    """

    pool: TrialPool | None = None
    baseline: EarlyBaseline | None = None

    async def open_session(
        self, project: FailingProject, suite: Suite, limits: SearchLimits
    ) -> TrialSession | None:
        """Return the trials of a search with what was started for it; `None` if nothing fits.

        What was started is for the suite's own command and for the files as they were then.
        """
        pool, self.pool = self.pool, None
        baseline, self.baseline = self.baseline, None
        if pool is not None and project.command is suite.command:
            return PythonSession(project, limits, pool)
        if pool is not None:
            await pool.close()
        if baseline is not None and baseline.is_for(suite.command, project.texts):
            return DriverSession(project, limits, baseline)
        if baseline is not None:
            await baseline.close()
        return None

    async def close(self) -> None:
        """End everything that nobody has taken."""
        pool, self.pool = self.pool, None
        baseline, self.baseline = self.baseline, None
        if pool is not None:
            await pool.close()
        if baseline is not None:
            await baseline.close()
