"""Hold what was started ahead of a search: its worker processes, or a baseline run in another language."""

from __future__ import annotations

from collections.abc import Mapping

from suture.judge import Suite
from suture.judge.runners.test_command import TestCommand
from suture.search import EarlyBaseline, TrialPool


class SearchPrefetch:
    """Worker processes and baseline runs that are started before it is known that a search is needed.

    They only save time. Whoever takes one closes it; `close` ends those that nobody has taken.
    """

    def __init__(self) -> None:
        self._pool: TrialPool | None = None
        self._baseline: EarlyBaseline | None = None

    @property
    def pool(self) -> TrialPool | None:
        """Return the worker processes, which still belong to the prefetch."""
        return self._pool

    def keep_pool(self, pool: TrialPool) -> None:
        """Keep worker processes until they are taken or closed."""
        self._pool = pool

    def keep_baseline(self, baseline: EarlyBaseline) -> None:
        """Keep a baseline run in another language than Python until it is taken or closed."""
        self._baseline = baseline

    async def take_pool(self, command: TestCommand, suite: Suite) -> TrialPool | None:
        """Return the worker processes if the search runs the suite's own command, for which they were
        started.

        They belong to the caller from now on.
        """
        pool, self._pool = self._pool, None
        if pool is not None and command is not suite.command:
            await pool.close()
            return None
        return pool

    async def take_baseline(self, suite: Suite, texts: Mapping[str, str]) -> EarlyBaseline | None:
        """Return the baseline run if it is one of this suite and these files; it belongs to the caller
        then.
        """
        baseline, self._baseline = self._baseline, None
        if baseline is not None and not baseline.is_for(suite.command, texts):
            await baseline.close()
            return None
        return baseline

    async def close(self) -> None:
        """End everything that nobody has taken."""
        pool, self._pool = self._pool, None
        baseline, self._baseline = self._baseline, None
        for started in (pool, baseline):
            if started is not None:
                await started.close()
