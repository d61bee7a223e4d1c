"""Try candidates on one process: target tests first, then tests that run the changed lines, then all tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from suture.judge.trials.process_reports import AttemptReport, unpack_lines, valid_places
from suture.judge.trials.spectrum import compute_cpu_limits
from suture.judge.trials.target_tests import choose_failure_limits
from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestLines, Trial
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import (
    CLOCK_MARGIN_S,
    MAX_COVERING_TESTS,
    MAX_RESTARTS,
    MAX_SCREENED_CPU_S,
    MAX_SCREENED_WAIT_S,
    MAX_TARGET_TESTS,
    MAX_WHOLE_SUITE_S,
    MAX_WHOLE_SUITE_TESTS,
    MIN_TRIAL_S,
    NO_COVERING_RUN_BELOW_S,
    SCREENED_CANDIDATES,
    SILENCE_S,
    TRACED_TRIAL_S,
)

UNSETTLED = Trial(passing=0, failing=0, broken=0, is_plausible=False, timed_out=False, is_unsettled=True)
REIMPORT_NOTE = (
    "changes of what an import does were not tried, because tests that fail pass after a new import"
)


class TrialRunner:
    """Tries candidates one after another.

    Args:
        worker: A process that has collected the tests.
        spectrum: What the tests do on the unchanged code, as far as it is known.
        full_spectrum: A task that returns the complete spectrum, if it is not known yet.

    Attributes:
        notes: What the user should know about these trials, as text for the event of the search.
    """

    def __init__(
        self,
        worker: TrialWorker,
        spectrum: Spectrum,
        texts: Mapping[str, str],
        full_spectrum: asyncio.Task[Spectrum] | None = None,
    ) -> None:
        self._worker, self._texts, self._full_spectrum = worker, texts, full_spectrum
        self._number = 0
        self._end_s = 0.0
        self._restarts = 0
        self._fails_when_reimported: bool | None = None
        self._turn = asyncio.Lock()
        self._can_screen = True
        self.notes: list[str] = []
        self._use_spectrum(spectrum)

    def _use_spectrum(self, spectrum: Spectrum) -> None:
        self._spectrum = spectrum
        self._limits = compute_cpu_limits(spectrum)
        self._runs = {test.id: test for test in spectrum.tests}
        self._target_tests = list(spectrum.target_tests)
        self._runs_whole_suite = (
            spectrum.suite_s <= MAX_WHOLE_SUITE_S and len(spectrum.collected) <= MAX_WHOLE_SUITE_TESTS
        )
        self._max_failures = choose_failure_limits(
            [self._runs[test].seconds if test in self._runs else 0.0 for test in self._target_tests]
        )
        self._worker_has_limits = False

    @property
    def usable(self) -> bool:
        """Whether candidates can be tried here."""
        return self._worker.alive

    @property
    def can_finish(self) -> bool:
        """Whether the complete spectrum is known, so that a trial can run all tests."""
        return self._full_spectrum is None or self._full_spectrum.done()

    async def wait_for_spectrum(self, timeout_s: float) -> bool:
        """Wait for the complete spectrum, and return whether it is known."""
        if self._full_spectrum is not None and not self._full_spectrum.done():
            await asyncio.wait([self._full_spectrum], timeout=max(0.0, timeout_s))
        return self.can_finish

    @property
    def batch_size(self) -> int:
        """Candidates that the next batch should have: several if their tests are quick, because they share a fork."""
        runs = [self._runs[test] for test in self._target_tests if test in self._runs][
            : self._max_failures[0]
        ]
        cpu_s, waited_s = sum(run.fastest_s for run in runs), sum(run.waited_s for run in runs)
        is_quick = cpu_s <= MAX_SCREENED_CPU_S and waited_s <= MAX_SCREENED_WAIT_S
        return SCREENED_CANDIDATES if self._can_screen and is_quick else 1

    def ends_batch(self, proposal: Proposal) -> bool:
        """Return whether a batch ends with a candidate: a reimport takes as long as dozens of quick trials."""
        return not proposal.is_swappable

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[tuple[Proposal, Trial | None]]:
        """Try one candidate, or drop those of several with which no target test passes.

        The trials of the others are `is_unsettled`.
        """
        if len(proposals) == 1:
            return [(proposals[0], await self.run_trial(proposals[0], timeout_s, extra_cpu_s))]
        settled: dict[int, Trial] = {}
        swappable = [proposal for proposal in proposals if proposal.is_swappable]
        if len(swappable) > 1 and self.batch_size > 1:
            async with self._turn:
                await self._prepare_worker()
                reports = await self._worker.screen(
                    swappable,
                    self._target_tests,
                    number=self._number + 1,
                    max_failures=self._max_failures,
                    silence_s=self._get_silence_s(self._target_tests),
                    timeout_s=max(MIN_TRIAL_S, timeout_s),
                )
                self._number += len(swappable)
            # Where the failure of the unchanged code is not repeated, no candidate is ever dropped.
            self._can_screen = not reports or any(not report.unsupported for report in reports)
            for proposal, report in zip(swappable, reports, strict=False):  # no report if the process died
                if not report.unsupported and "P" not in report.outcomes:
                    settled[id(proposal)] = self._make_failing_trial(report)
        return [(proposal, settled.get(id(proposal), UNSETTLED)) for proposal in proposals]

    async def run_trial(self, proposal: Proposal, timeout_s: float, extra_cpu_s: float = 0.0) -> Trial | None:
        """Try a candidate; return `None` if it could not be tried at all.

        Args:
            extra_cpu_s: CPU seconds that each test may take in addition to its limit.
        """
        async with self._turn:
            self._end_s = time.monotonic() + timeout_s
            await self._prepare_worker()
            return await self._try(proposal, extra_cpu_s)

    async def trace_lines(self, proposal: Proposal) -> TestLines:
        """Return the lines that the target tests run with a candidate.

        Line numbers are those of the unchanged file, so a candidate that adds or removes lines is not traced.
        """
        raw = self._texts[proposal.path].encode("utf-8", "surrogatepass")
        moves_lines = any("\n" in edit.text or b"\n" in raw[edit.start : edit.end] for edit in proposal.edits)
        if moves_lines or not proposal.is_swappable:
            return {}
        async with self._turn:
            self._end_s = time.monotonic() + TRACED_TRIAL_S
            await self._prepare_worker()
            report = await self._attempt(
                proposal, self._target_tests, False, self._max_failures, TRACED_TRIAL_S, traces_lines=True
            )
        failures = () if report is None else report.failures
        return {
            failure.test: {path: unpack_lines(lines) for path, lines in failure.lines.items()}
            for failure in failures
        }

    def _left_s(self) -> float:
        """Return the wall-clock seconds that remain for the current candidate."""
        return max(0.0, self._end_s - time.monotonic())

    async def _prepare_worker(self) -> None:
        """Adopt the complete spectrum once it is known, and send the tests' limits to the process."""
        if self._full_spectrum is not None and self._full_spectrum.done():
            self._use_spectrum(self._full_spectrum.result())
            self._full_spectrum = None
        if not self._worker_has_limits:
            self._worker_has_limits = True
            await self._worker.set_limits(self._limits)

    async def _try(self, proposal: Proposal, extra_cpu_s: float) -> Trial | None:
        reimports = not proposal.is_swappable
        if reimports and not await self._can_reimport():
            return None
        targets, limits = self._target_tests, self._max_failures
        report = await self._attempt(proposal, targets, reimports, limits, extra_cpu_s)
        if report is not None and report.unsupported and not reimports:
            reimports = True
            if not await self._can_reimport():
                return None
            report = await self._attempt(proposal, targets, reimports, limits, extra_cpu_s)
        if report is None:
            return None
        passing = report.outcomes.count("P")
        if report.has_failed or not report.finished or not passing:
            return self._make_failing_trial(report)
        if not self.can_finish:
            return _make_trial(report, is_pending=True)
        await self._prepare_worker()
        rest = await self._attempt_other_tests(proposal, reimports, extra_cpu_s)
        if rest is None:
            return None
        if not rest.finished and self._left_s() <= CLOCK_MARGIN_S:
            return _make_trial(report, is_pending=True)
        return Trial(
            passing=passing,
            failing=0,
            broken=int(rest.has_failed),
            is_plausible=rest.finished and not rest.has_failed,
            timed_out=not rest.finished,
            broken_test=rest.failures[0].test if rest.has_failed and rest.failures else "",
        )

    def _make_failing_trial(self, report: AttemptReport) -> Trial:
        """Return the trial of a candidate with which the target tests do not all pass."""
        pairs = zip(self._target_tests, report.outcomes, strict=False)  # the last targets may not have run
        # After the first limit of failures the process stops on purpose, so that is not a time-out.
        timed_out = not report.finished and report.outcomes.count("f") < self._max_failures[0]
        now_passing = frozenset(test for test, outcome in pairs if outcome == "P")
        return _make_trial(report, timed_out=timed_out, now_passing=now_passing)

    async def _attempt_other_tests(
        self, proposal: Proposal, reimports: bool, extra_cpu_s: float
    ) -> AttemptReport | None:
        """Run the tests that cover the change, then all tests in their order; the first failure ends each run."""
        covering = self._find_covering_tests(proposal)
        is_tiny = self._runs_whole_suite and self._spectrum.suite_s < NO_COVERING_RUN_BELOW_S
        report: AttemptReport | None = AttemptReport(outcomes="", finished=True, unsupported=False)
        if covering and not is_tiny:
            report = await self._attempt(proposal, covering, reimports, (1, 1), extra_cpu_s)
            if report is None or not report.finished or report.has_failed:
                return report
        if self._runs_whole_suite:
            report = await self._attempt(proposal, None, reimports, (1, 1), extra_cpu_s)
        return report

    def _find_covering_tests(self, proposal: Proposal) -> list[str]:
        """Return tests that run a changed line, and failing tests whose lines are not known."""
        raw = self._texts[proposal.path].encode("utf-8", "surrogatepass")
        lines = {
            line
            for edit in proposal.edits
            for line in range(raw.count(b"\n", 0, edit.start) + 1, raw.count(b"\n", 0, edit.end) + 2)
        }
        # Inserted code is next to the lines that tests ran.
        near = {line + step for line in lines for step in (-1, 0, 1)}
        chosen = [
            test
            for test in self._spectrum.collected
            if test in self._limits
            and (run := self._runs.get(test)) is not None
            and (not near.isdisjoint(run.lines.get(proposal.path, ())) or (run.failed and not run.lines))
        ]
        if len(chosen) > MAX_COVERING_TESTS:
            chosen = chosen[:: len(chosen) // MAX_COVERING_TESTS + 1]
        return chosen

    async def _can_reimport(self) -> bool:
        """Return whether the target tests also fail after the unchanged project is imported again.

        Otherwise every candidate that needs a new import would seem to repair them.
        """
        if self._fails_when_reimported is None:
            count = len(self._target_tests)
            report = await self._attempt(None, self._target_tests, True, (count, count), 0.0)
            self._fails_when_reimported = report is not None and "P" not in report.outcomes
            if not self._fails_when_reimported:
                self.notes.append(REIMPORT_NOTE)
        return self._fails_when_reimported

    async def _attempt(
        self,
        proposal: Proposal | None,
        tests: list[str] | None,
        reimports: bool,
        max_failures: tuple[int, int],
        extra_cpu_s: float,
        *,
        traces_lines: bool = False,
    ) -> AttemptReport | None:
        self._number += 1
        names = tests or list(self._limits)
        import_cpu_s = 4 * self._spectrum.collect_s + 2  # chosen by judgement; not measured
        silence_s = self._get_silence_s(names) + 2 * extra_cpu_s
        report = await self._worker.attempt(
            proposal,
            tests,
            number=self._number,
            reimports=reimports,
            max_failures=max_failures,
            extra_cpu_s=extra_cpu_s,
            traces_lines=traces_lines,
            silence_s=silence_s + (3 * import_cpu_s if reimports else 0.0),
            timeout_s=max(MIN_TRIAL_S, self._left_s()),
            import_cpu_s=import_cpu_s,
        )
        # A new import happens in a fork of a process that has imported nothing, and cannot end the other one.
        if report is None and not reimports:
            await self._restart_worker()
        return report

    def _get_silence_s(self, tests: Sequence[str]) -> float:
        """Return after how many seconds without a message a trial of some tests is killed."""
        longest_wall_s = max((self._runs[test].wall_s for test in tests if test in self._runs), default=0.0)
        longest_limit_s = max((self._limits[test][1] for test in tests if test in self._limits), default=1.0)
        # The factors are chosen by judgement; not measured.
        return SILENCE_S + 3 * longest_wall_s + 2 * longest_limit_s

    async def _restart_worker(self) -> None:
        """Collect the tests again after a candidate has ended the process that had collected them."""
        self._restarts += 1
        if self._restarts > MAX_RESTARTS:
            await self._worker.close()
            return
        if not self._worker.alive:
            await self._worker.start()
        await self._worker.collect(trace=False, timeout_s=self._left_s())
        self._worker_has_limits = False
        await self._prepare_worker()


def _make_trial(
    report: AttemptReport,
    *,
    timed_out: bool | None = None,
    now_passing: frozenset[str] = frozenset(),
    is_pending: bool = False,
) -> Trial:
    """Return the trial of a candidate for which only the target tests ran."""
    return Trial(
        passing=report.outcomes.count("P"),
        failing=report.outcomes.count("f"),
        broken=0,
        is_plausible=False,
        timed_out=not report.finished if timed_out is None else timed_out,
        failures=tuple(
            FailurePoint(test=failure.test, error=failure.error, traceback=valid_places(failure.traceback))
            for failure in report.failures[:MAX_TARGET_TESTS]
        ),
        now_passing=now_passing,
        is_pending=is_pending,
    )


async def run_until_all_end(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines together. If one raises, cancel the others, wait for them, and raise its exception."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
