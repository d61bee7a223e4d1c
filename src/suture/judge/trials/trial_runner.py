"""Candidates on one process: failing tests first, then those that run what changed, then all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any

from suture.judge.trials.process_reports import AttemptReport, lines_of, valid_places
from suture.judge.trials.spectrum import compute_cpu_limits
from suture.judge.trials.target_tests import MOST_GUIDING, choose_failure_limits
from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestLines, Trial
from suture.judge.trials.trial_worker import TrialRequest, TrialWorker

SLACK_S = 4.0
"""Wall-clock seconds without a word, beyond a test's own, after which a trial is killed."""
MOST_COVERING = 300
"""Of more tests that run a changed line only every so many is run: the verdict runs all."""
WHOLE_S = 12.0
"""Wall-clock seconds of all tests, above which only those that run what changed are: the verdict runs all."""
MOST_STARTS = 3
"""A candidate may take the process with it; of a project whose candidates go on doing so none is tried."""
LEAST_RUN_S = 0.1
"""What a process is given at least, where the time is nearly up."""
TRACED_S = 1.5
"""Wall-clock seconds for the lines that failing tests run with a change that is gone on from."""
CUT_S = 0.2
"""Wall-clock seconds before the end of a trial's time, from which on that is what has cut it off."""


class TrialRunner:
    """Tries candidates one after another.

    Args:
        worker: A process that has collected the tests.
        spectrum: What they do on the code as it is, as far as it is known.
        coming: Where not all of it is: all of it.
        texts: Path -> text of the files that candidates change.
    """

    def __init__(
        self,
        worker: TrialWorker,
        spectrum: Spectrum,
        texts: Mapping[str, str],
        coming: asyncio.Task[Spectrum] | None = None,
    ) -> None:
        self._worker, self._texts, self._coming = worker, texts, coming
        self._number = 0
        self._end_s = 0.0
        self._starts = 0
        self._anew_agrees: bool | None = None
        self._is_told = False
        self._turn = asyncio.Lock()
        self.notes: list[str] = []
        self._learn(spectrum)

    def _learn(self, spectrum: Spectrum) -> None:
        self._spectrum = spectrum
        self._limits = compute_cpu_limits(spectrum)
        self._runs = {test.id: test for test in spectrum.tests}
        self._guiding = list(spectrum.target_tests)
        self._whole = spectrum.suite_s <= WHOLE_S
        took_s = [self._runs[test].seconds if test in self._runs else 0.0 for test in self._guiding]
        self._enough = choose_failure_limits(took_s)
        self._is_told = False

    @property
    def usable(self) -> bool:
        """Whether candidates can be tried here."""
        return self._worker.alive

    @property
    def can_finish(self) -> bool:
        """Whether it is known what all tests do, so that a candidate can be tried to its end."""
        return self._coming is None or self._coming.done()

    async def wait_for_spectrum(self, seconds: float) -> bool:
        """Wait until that is known, for so many seconds; whether it is."""
        if self._coming is not None and not self._coming.done():
            await asyncio.wait([self._coming], timeout=max(0.0, seconds))
        return self.can_finish

    def _left_s(self) -> float:
        """Of what the candidate may take that is being tried."""
        return max(0.0, self._end_s - time.monotonic())

    async def _prepare(self) -> None:
        """Say what each test may take, as far as that is known and not said yet."""
        if self._coming is not None and self._coming.done():
            self._learn(self._coming.result())
            self._coming = None
        if not self._is_told:
            self._is_told = True
            await self._worker.set_limits(self._limits)

    async def run_trial(self, proposal: Proposal, seconds: float, patience: float = 0.0) -> Trial | None:
        """Try a candidate; `None` where it could not be tried at all.

        Args:
            proposal: The candidate.
            seconds: Wall-clock seconds for it, at most.
            patience: CPU seconds that each test may take beyond its limit.
        """
        async with self._turn:
            self._end_s = time.monotonic() + seconds
            await self._prepare()
            return await self._tried(proposal, patience)

    async def trace_lines(self, proposal: Proposal) -> TestLines:
        """The lines that failing tests run with a change; none of those that a trial of it did not come to.

        A line stands where it stood without the change: one that moves lines is not looked at.
        """
        raw = self._texts[proposal.path].encode("utf-8", "surrogatepass")
        if not proposal.is_swappable or any(
            "\n" in e.text or b"\n" in raw[e.start : e.end] for e in proposal.edits
        ):
            return {}
        async with self._turn:
            self._end_s = time.monotonic() + TRACED_S
            await self._prepare()
            seen = await self._run(proposal, self._guiding, False, self._enough, TRACED_S, trace=True)
        told = () if seen is None else seen.marks
        return {one.test: {path: lines_of(lines) for path, lines in one.lines.items()} for one in told}

    async def _tried(self, proposal: Proposal, patience: float) -> Trial | None:
        anew = not proposal.is_swappable
        if anew and not await self._is_right_anew():
            return None
        first = await self._run(proposal, self._guiding, anew, self._enough, patience)
        if first is not None and first.unsupported and not anew:
            anew = True
            if not await self._is_right_anew():
                return None
            first = await self._run(proposal, self._guiding, anew, self._enough, patience)
        if first is None:
            return None
        passing, failing = first.words.count("P"), first.words.count("f")
        if failing or not first.ended or not passing:
            passed = (t for t, w in zip(self._guiding, first.words, strict=False) if w == "P")
            late = not first.ended and failing < self._enough[0]  # behind that it is not asked to end
            return replace(_trial(first, passing, failing), passed=frozenset(passed), late=late)
        if not self.can_finish:
            return replace(_trial(first, passing, failing), held=True)
        await self._prepare()
        rest = await self._rest(proposal, anew, patience)
        if rest is None:
            return None
        late = not rest.ended
        if late and self._left_s() <= CUT_S:  # it is the clock's fault
            return replace(_trial(first, passing, failing), held=True)
        return Trial(
            passing=passing,
            failing=0,
            broken=int("f" in rest.words),
            is_plausible=rest.ended and "f" not in rest.words,
            timed_out=late,
        )

    async def _rest(self, proposal: Proposal, anew: bool, patience: float) -> AttemptReport | None:
        """The tests beyond the failing ones: those that run the changed lines, then all in their order."""
        covering = self._covering(proposal)
        attempted: AttemptReport | None = AttemptReport(words="", ended=True, unsupported=False)
        if covering and not (self._whole and self._spectrum.suite_s < 1.0):
            attempted = await self._run(proposal, covering, anew, (1, 1), patience)
            if attempted is None or not attempted.ended or "f" in attempted.words:
                return attempted
        if self._whole:
            attempted = await self._run(proposal, None, anew, (1, 1), patience)
        return attempted

    def _covering(self, proposal: Proposal) -> list[str]:
        """Tests that run what a candidate changes, the failing ones that were not run before among them."""
        text = self._texts[proposal.path].encode("utf-8", "surrogatepass")
        lines = {
            line
            for edit in proposal.edits
            for line in range(text.count(b"\n", 0, edit.start) + 1, text.count(b"\n", 0, edit.end) + 2)
        }
        near = lines | {line + step for line in lines for step in (-1, 1)}  # what is added stands beside them
        chosen = [
            test
            for test in self._spectrum.collected
            if test in self._limits
            and (run := self._runs.get(test)) is not None
            and (not near.isdisjoint(run.lines.get(proposal.path, ())) or (run.failed and not run.lines))
        ]
        if len(chosen) > MOST_COVERING:
            chosen = chosen[:: len(chosen) // MOST_COVERING + 1]
        return chosen

    async def _is_right_anew(self) -> bool:
        """Whether the tests that fail do so too where the unchanged project is imported anew."""
        if self._anew_agrees is None:
            most = len(self._guiding)
            attempted = await self._run(None, self._guiding, True, (most, most), 0.0)
            self._anew_agrees = attempted is not None and "P" not in attempted.words
            if not self._anew_agrees:
                self.notes.append(
                    "changes of what an import does were not tried: tests that fail pass in a trial of those"
                )
        return self._anew_agrees

    async def _run(
        self,
        proposal: Proposal | None,
        tests: list[str] | None,
        anew: bool,
        fails: tuple[int, int],
        patience: float,
        *,
        trace: bool = False,
    ) -> AttemptReport | None:
        self._number += 1
        wall_s = [self._runs[test].wall_s for test in tests or self._limits if test in self._runs]
        longest_s = max(
            (self._limits[test][1] for test in tests or self._limits if test in self._limits), default=1.0
        )
        import_s = 4 * self._spectrum.collect_s + 2
        quiet_s = SLACK_S + 3 * max(wall_s, default=0.0) + 2 * (longest_s + patience)
        attempted = await self._worker.attempt(
            TrialRequest(
                proposal=proposal,
                number=self._number,
                tests=tests,
                anew=anew,
                fails=fails,
                patience=patience,
                trace=trace,
                quiet_s=quiet_s + (3 * import_s if anew else 0.0),
                seconds=max(LEAST_RUN_S, self._left_s()),
                import_s=import_s,
            )
        )
        if attempted is None and not anew:
            await self._start_again()
        return attempted

    async def _start_again(self) -> None:
        """A candidate may take the process that has collected the tests with it."""
        self._starts += 1
        if self._starts > MOST_STARTS:
            await self._worker.close()
            return
        if not self._worker.alive:
            await self._worker.start()
        await self._worker.collect(trace=False, seconds=self._left_s())
        self._is_told = False
        await self._prepare()


def _trial(attempted: AttemptReport, passing: int, failing: int) -> Trial:
    return Trial(
        passing=passing,
        failing=failing,
        broken=0,
        is_plausible=False,
        timed_out=not attempted.ended,
        failures=tuple(
            FailurePoint(test=got.test, error=got.fault, traceback=valid_places(got.reached))
            for got in attempted.marks[:MOST_GUIDING]
        ),
    )


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for several, which all have ended when this ends; the first fault is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
