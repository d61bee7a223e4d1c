"""The baseline run of a search, and the candidates that follow from it, both in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from suture.core.records import CheckOutcome
from suture.judge.trials.trial_records import Spectrum
from suture.search.ordering.candidate_order import MutantGenerator, OrderedCandidates, order_candidates
from suture.search.ordering.reverts import Hunk
from suture.search.search_records import SearchLimits
from suture.search.tuning import MAX_SINGLES


class Baseline(Protocol):
    """Trials of the unchanged code."""

    async def run_failing_tests(self) -> Spectrum:
        """Return what the failing tests did: enough to begin a search."""
        ...

    async def run_all_tests(self) -> Spectrum:
        """Return what all tests did."""
        ...

    async def close(self) -> None:
        """Cancel the run; safe to call twice."""
        ...


class BaselineCandidates:
    """Runs the baseline of one search and generates its candidates, both in the background.

    Args:
        outcomes: The outcomes of the tests in the user's run; they show where to look if no line is known to run.
    """

    def __init__(
        self,
        baseline: Baseline,
        texts: Mapping[str, str],
        limits: SearchLimits,
        generate: MutantGenerator,
        outcomes: Sequence[CheckOutcome] = (),
    ) -> None:
        self._baseline, self._texts, self._limits = baseline, texts, limits
        self._generate, self._outcomes = generate, outcomes
        self._early: asyncio.Future[OrderedCandidates] = asyncio.get_running_loop().create_future()
        self._failing_tests = asyncio.create_task(baseline.run_failing_tests())
        self._ordered = asyncio.create_task(self._order_by_failing_tests())

    async def _order_by_failing_tests(self) -> OrderedCandidates | None:
        spectrum = await self._failing_tests
        return await self._order(spectrum) if spectrum.target_tests else None

    async def _order(self, spectrum: Spectrum, hunks: Sequence[Hunk] = ()) -> OrderedCandidates:
        limits = self._limits
        return await order_candidates(
            spectrum,
            self._texts,
            hunks,
            generate=self._generate,
            outcomes=self._outcomes,
            seed=limits.seed,
            limit=min(limits.max_candidates, MAX_SINGLES),
            seconds=limits.max_seconds,
            factors=limits.operator_factors,
            on_early=self._set_early,
        )

    def _set_early(self, candidates: OrderedCandidates) -> None:
        if not self._early.done():
            self._early.set_result(candidates)

    async def early_candidates(self, hunks: Sequence[Hunk]) -> OrderedCandidates | None:
        """Return the likeliest changes of the most suspicious lines; `None` if all changes are ready.

        Args:
            hunks: What changed when the tests began to fail. Reverts of it are tried before everything else,
                so that there are no early candidates then.
        """
        if hunks:
            return None
        await asyncio.wait((self._ordered, self._early), return_when=asyncio.FIRST_COMPLETED)
        return None if self._ordered.done() else self._early.result()

    def is_ordered(self) -> bool:
        """Return whether all candidates that follow from the failing tests are ready."""
        return self._ordered.done()

    async def ordered_candidates(self, spectrum: Spectrum, hunks: Sequence[Hunk]) -> OrderedCandidates:
        """Return the candidates of a search.

        Args:
            spectrum: The result of a baseline run. The candidates for that of the failing tests exist
                already.
            hunks: What changed when the tests began to fail.
        """
        candidates = await self._ordered
        is_for_spectrum = spectrum is self._failing_tests.result() and not hunks
        if candidates is not None and is_for_spectrum:
            return candidates
        return await self._order(spectrum, hunks)

    async def run_failing_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_failing_tests`."""
        return await self._failing_tests

    async def run_all_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_all_tests`."""
        return await self._baseline.run_all_tests()

    async def close(self) -> None:
        """Cancel the baseline run and the generation of candidates."""
        for task in (self._ordered, self._failing_tests):
            task.cancel()
        await asyncio.gather(self._ordered, self._failing_tests, return_exceptions=True)
        await self._baseline.close()
