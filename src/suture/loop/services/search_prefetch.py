"""Hold what was started ahead of a search: its worker processes, or a baseline run in another language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.judge import Suite
from suture.judge.runners.test_command import TestCommand
from suture.search import EarlyBaseline, TrialPool


@dataclass(kw_only=True)
class SearchPrefetch:
    """Work that is started before it is known that a search is needed; it only saves time.

    Attributes:
        pool: Worker processes that were started and that nobody has taken.
        baseline: A baseline run in another language than Python that nobody has taken.
    """

    pool: TrialPool | None = None
    baseline: EarlyBaseline | None = None

    async def take_pool(self, command: TestCommand, suite: Suite) -> TrialPool | None:
        """Return the worker processes, which the caller must close; `None` if they run another command.

        They were started for the suite's own command.
        """
        pool, self.pool = self.pool, None
        if pool is not None and command is not suite.command:
            await pool.close()
            return None
        return pool

    async def take_baseline(self, suite: Suite, texts: Mapping[str, str]) -> EarlyBaseline | None:
        """Return the baseline run, which the caller must close; `None` if it is one of other files."""
        baseline, self.baseline = self.baseline, None
        if baseline is not None and not baseline.is_for(suite.command, texts):
            await baseline.close()
            return None
        return baseline

    async def close(self) -> None:
        """End everything that nobody has taken."""
        pool, self.pool = self.pool, None
        baseline, self.baseline = self.baseline, None
        if pool is not None:
            await pool.close()
        if baseline is not None:
            await baseline.close()
