"""Trials that a driver makes: a baseline run of the unchanged code, then candidates in rounds.

A *driver* is a program that runs in the sandbox and tries many candidates in one process. In each round, a few
processes try a batch of candidates each. A run is *silent* if it was stopped before it reported any test, such as
in an endless loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials import tuning
from suture.judge.trials.command_trials import CandidateRunner, TrialReport, was_whole_command_stopped
from suture.judge.trials.drivers.driver_protocol import (
    Driver,
    find_driver,
    run_driver,
    run_rounds,
    shell_lines,
)
from suture.judge.trials.drivers.driver_reports import (
    GOOD_STATUSES,
    baseline_tests,
    build_test_runs,
    build_trial,
    file_of_test,
    find_covering_files,
    find_disagreements,
    find_stuck_files,
    longest_passing_ms,
    select_trial_reports,
    total_seconds,
)
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal, Spectrum

DriverReport = tuple[Proposal, dict[str, Any]]
"""`(candidate, line of the driver's report about it)`."""


class DriverTrials(CandidateRunner):
    """The trials of one search."""

    max_overrun_s = tuning.DRIVER_START_S
    waits_for_compounds = True

    def __init__(self, driver: Driver, project: FailingProject) -> None:
        self._driver, self.project, self.language = driver, project, project.language
        # What the user's run of the unchanged code reported: test -> status, or the command -> its status.
        self._before = {outcome.check_id: outcome.status for outcome in project.outcomes}
        self._has_status_only = any(outcome.evidence == "exit_status" for outcome in project.outcomes)
        self._common: dict[str, Any] = {}
        self._timeout_s = driver.min_timeout_s
        self._never_ends = self._is_silent
        self._has_seen_test = False
        self._has_tried = False
        self.notes = []
        self.min_run_s = driver.min_timeout_s
        """Before a repair is found: the minimum timeout of a trial. Then: the duration of the baseline run, with the
        start of a runner or compiler."""
        self._baseline_s = driver.min_timeout_s
        self.is_lost = False
        """Whether the driver cannot run any test: no runner can be loaded, or the files are not of its kind.

        Then no candidate was tried, and each trial has to be a run of the whole command.
        """

    @property
    def uses_own_runner(self) -> bool:
        """Whether the project's own runner runs the tests, and not a harness of ours."""
        return bool(self._driver.own_runner)

    @property
    def max_rivals(self) -> int:
        """Candidates that are tried after the first that passes."""
        return tuning.ENDLESS_RIVALS if self._never_ends else self._driver.max_rivals

    @property
    def _is_silent(self) -> bool:
        """Whether the user's command was stopped before it reported tests, such as in an endless loop."""
        return " ".join(self.project.argv) in self._before and not self._has_status_only

    async def run_baseline(self, seconds: float) -> Spectrum:
        """Run the tests on the unchanged code, and find out which of them trials can use.

        Raises:
            SandboxError: The sandbox failed.
        """
        if self._is_silent:
            can_interrupt = self._driver.make_interruptible is not None
            max_s = tuning.INTERRUPTIBLE_BASELINE_S if can_interrupt else tuning.ENDLESS_BASELINE_S
            seconds = min(seconds, max_s)
        seconds = min(seconds, tuning.MAX_BASELINE_S)
        files, texts, test_files = self.project.files, self.project.texts, self._test_files()
        driver_settings = self._driver.build_common(files, test_files, shell_lines(self.project.argv, files))
        test_files = driver_settings.get("test_files", test_files)
        common = {**driver_settings, "texts": dict(texts), "test_files": test_files}
        # Files that got stuck in the user's run have their own job, which may time out. A runner that
        # stays loaded ("engine") runs all files in one job.
        has_engine = "engine" in driver_settings
        stuck = [] if has_engine else find_stuck_files({*test_files} & {*files}, self._before)
        others = [path for path in test_files if path not in stuck]
        file_groups = [group for group in (others, stuck) if group]
        interruptible = self._interruptible_texts()
        jobs = [{"test_files": group, "texts": interruptible} for group in file_groups]
        began_s = time.monotonic()
        plan = _build_plan(common, jobs, timeout_s=seconds, max_rivals=0, linger_ms=0)
        reports = await run_driver(self._driver, self.project, plan, seconds)
        self._baseline_s = time.monotonic() - began_s
        tests = baseline_tests(reports)
        if self._has_status_only:  # the driver knows better which files the command loads
            test_files = sorted({file_of_test(str(test["id"])) for test in tests if test.get("id")})
            common["test_files"] = test_files
        timed_out = [line.get("number") for line in reports if line.get("timed_out") is True]
        is_stuck_again = bool(stuck) and len(file_groups) - 1 in timed_out
        return self._prepare_trials(tests, common, test_files, stuck if is_stuck_again else [])

    def _prepare_trials(
        self,
        tests: Sequence[Mapping[str, Any]],
        common: Mapping[str, Any],
        test_files: Sequence[str],
        stuck: Sequence[str],
    ) -> Spectrum:
        """Build the spectrum of a baseline run, and set what the trials of candidates need.

        The `stuck` test files never ended, neither in the user's run nor here; each stands for its tests.
        """
        is_unreported = self._is_silent or self._has_status_only
        # Files of which the user's run reported no single test: all tests that are seen in them here are used.
        unlisted = {*test_files} if is_unreported else {path for path in test_files if path in self._before}

        def is_known(name: str) -> bool:
            return name in self._before or file_of_test(name) in unlisted

        runs = tuple(build_test_runs(tests, self.project.texts, self._driver.extract_error, is_known))
        statuses = {run.id: run.outcome for run in runs}
        self._has_seen_test = any("::" in name for name in statuses)
        self._never_ends = (self._never_ends and not self._has_seen_test) or bool(stuck)
        new = [name for name in statuses if name not in self._before and file_of_test(name) in unlisted]
        failed_before = [name for name, status in self._before.items() if status not in GOOD_STATUSES]
        targets = [name for name in (*failed_before, *new) if statuses.get(name) == "failed"]
        targets += stuck
        if self._is_silent:  # if no test was seen here either, each file stands for its tests
            targets = [name for name, status in statuses.items() if status == "failed"] or list(test_files)
        passed_before = (name for name, status in self._before.items() if status == "passed")
        passing = [name for name in (*passed_before, *new) if statuses.get(name) == "passed"]
        suite_s = total_seconds(tests)
        max_cpu_ms = max(tuning.MIN_TEST_CPU_MS, tuning.CPU_TIMEOUT_FACTOR * longest_passing_ms(tests))
        self._timeout_s = max(
            tuning.ENDLESS_TRIAL_S if self._never_ends else 0.0,
            self._driver.min_timeout_s,
            tuning.TRIAL_TIMEOUT_FACTOR * suite_s,
            tuning.LOADED_FACTOR * max_cpu_ms / 1000 if self._driver.make_interruptible else 0.0,
        )
        failed = {name for name, status in statuses.items() if status == "failed"}
        self._common = {
            **common,
            "target_tests": targets,
            "expected_passes": [*passing, *targets],
            "covering_files": find_covering_files(runs),
            # What fails here and not in the user's run is not the fault of a candidate.
            "ignored_failures": sorted(failed - {*targets}),
            # A target that is a whole file has no name by which a runner could select its tests.
            "targets_alone": all("::" in name for name in targets),
            "max_cpu_ms": max_cpu_ms,
        }
        # An exit status names no tests. It only contradicts a baseline run in which no test fails.
        is_comparable = not (self._has_status_only and targets)
        return Spectrum(
            tests=runs,
            collected=tuple(statuses),
            failing_in_suite=frozenset(targets),
            target_tests=tuple(targets),
            disagreements=find_disagreements(self._before, statuses) if is_comparable else (),
            compared=len(self._before),
            traced=sum(bool(run.lines) for run in runs),
            suite_s=suite_s,
        )

    def failed_again(self, spectrum: Spectrum) -> frozenset[str]:
        """Return the ids of tests that failed in the user's run and in the baseline run."""
        failing = {name for name, status in self._before.items() if status not in GOOD_STATUSES}
        if self._has_status_only and spectrum.target_tests:
            return frozenset(failing)
        return frozenset(failing & {*spectrum.target_tests})

    def _interruptible_texts(self) -> dict[str, str]:
        """Return path -> text of the files whose loops the driver can interrupt."""
        make_interruptible, texts = self._driver.make_interruptible, self.project.texts
        if make_interruptible is None:
            return {}
        changed = {path: make_interruptible(path, text, self.language) for path, text in texts.items()}
        return {path: text for path, text in changed.items() if text != texts[path]}

    def _test_files(self) -> list[str]:
        """Return the files that the runner is to load."""
        if self._is_silent or self._has_status_only:
            return self.project.named_tests()
        return sorted({file_of_test(name) for name in self._before})

    @property
    def usable(self) -> bool:
        """Whether the driver can run tests here."""
        return not self.is_lost

    @property
    def batch_size(self) -> int:
        """Candidates of the next round of all processes; fewer in the first one, because likely ones are soon known."""
        round_size = tuning.ENDLESS_ROUND if self._never_ends else self._driver.round_size
        if not self._has_tried:
            round_size = min(round_size, self._driver.round_size // tuning.FIRST_ROUND_DIVISOR)
        return self._driver.parallel * round_size

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        """Try candidates in one round of all processes. If `is_lost` is true afterwards, none could be tried."""
        reports = await self._run_rounds(proposals, timeout_s)
        self.is_lost = self._has_lost_all([line for _, line in reports])
        if self.is_lost:
            return []
        self._has_tried = True
        targets = self._common["target_tests"]
        trials: list[TrialReport] = [(proposal, build_trial(line, targets)) for proposal, line in reports]
        if any(trial is not None and trial.is_plausible for _, trial in trials):
            self.min_run_s = self._baseline_s
        return trials

    async def _run_rounds(self, batch: Sequence[Proposal], seconds: float) -> list[DriverReport]:
        """Run the driver once in each parallel process, with every n-th candidate of the batch."""

        def has_passing(reports: Sequence[DriverReport]) -> bool:
            return any(line.get("passes") is True for _, line in reports)

        parallel = self._driver.parallel
        parts = [batch[number::parallel] for number in range(parallel)]
        return await run_rounds([self._run_round(part, seconds) for part in parts if part], has_passing)

    async def _run_round(self, proposals: Sequence[Proposal], seconds: float) -> list[DriverReport]:
        """Run the driver once, in one process; candidates that it cannot try have no report."""
        supported: list[tuple[Proposal, dict[str, Any]]] = []
        for proposal in proposals:
            job = self._driver.build_job(proposal, self.project.texts[proposal.path], self.language)
            if job is not None:
                supported.append((proposal, job))
        jobs = [job for _, job in supported]
        plan = _build_plan(self._common, jobs, self._timeout_s, self.max_rivals, tuning.LINGER_MS)
        reports = await run_driver(self._driver, self.project, plan, seconds)
        lines = select_trial_reports(reports, len(supported))
        return [(supported[number][0], line) for number, line in lines.items()]

    def _has_lost_all(self, reports: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether no test runs here: candidates or all processes have ended, and none reported a test."""
        for line in reports:
            names_test = "::" in str(line.get("failed_test", ""))[: tuning.MAX_STACK_CHARS]
            self._has_seen_test = self._has_seen_test or names_test or line.get("passes") is True
        if not reports or self._has_seen_test:
            return False
        ended = (line for line in reports if line.get("timed_out") is not True)
        has_ended_without_test = any(line.get("failed_test") == "" for line in ended)
        return has_ended_without_test or all(line.get("process_lost") is True for line in reports)


def _build_plan(
    common: Mapping[str, Any],
    jobs: Sequence[Mapping[str, Any]],
    timeout_s: float,
    max_rivals: int,
    linger_ms: int,
) -> dict[str, Any]:
    """Return the plan that a driver reads."""
    return {
        "common": common,
        "jobs": jobs,
        "trial_timeout_ms": 1000 * timeout_s,
        "start_timeout_ms": tuning.PROCESS_START_MS,
        "max_rivals": max_rivals,
        "linger_ms": linger_ms,
    }


class EarlyBaseline:
    """A baseline run in the background, started before it is known whether there will be a search.

    Args:
        trials: The trials to which it belongs.
        seconds: Wall-clock seconds that it may take.
    """

    def __init__(self, trials: DriverTrials, seconds: float) -> None:
        self.trials = trials
        self._run = asyncio.create_task(trials.run_baseline(seconds))

    @property
    def is_rerun(self) -> bool:
        """Whether the project's own runner runs the tests, so that the run is a second run of the user's tests."""
        return self.trials.uses_own_runner

    def is_for(self, command: TestCommand | None, texts: Mapping[str, str]) -> bool:
        """Return whether the run is of these files, with this command."""
        project = self.trials.project
        return command is project.command and texts == project.texts

    async def run_failing_tests(self) -> Spectrum:
        """Return the result of the run, in which all tests run.

        Raises:
            SandboxError: The sandbox failed.
        """
        return await self._run

    async def run_all_tests(self) -> Spectrum:
        """Return the same result as `run_failing_tests`."""
        return await self._run

    async def failing_again(self) -> frozenset[str]:
        """Return the ids of tests that failed both in the user's run and here.

        If the user's run was judged by the exit status of the command, the only id is that of the command.

        Raises:
            SandboxError: The sandbox failed.
        """
        return self.trials.failed_again(await self._run)

    async def close(self) -> None:
        """Cancel the run; safe to call twice."""
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)


def start_early_baseline(project: FailingProject, max_seconds: float) -> EarlyBaseline | None:
    """Start a baseline run in the background; `None` if no driver can run the tests.

    With services none can, because a driver tries many candidates in one run, on the same data.

    Args:
        project: The project. The baseline run gets a multiple of its `wall_s`, because it shows nothing if it is cut
            off.
        max_seconds: Wall-clock seconds of the search.
    """
    if project.command.has_services or any(map(was_whole_command_stopped, project.outcomes)):
        return None
    driver = find_driver(project.argv, project.files, project.language)
    if driver is None:
        return None
    seconds = max(tuning.BASELINE_SHARE * max_seconds, tuning.BASELINE_SLOWDOWN * project.wall_s)
    return EarlyBaseline(DriverTrials(driver, project), seconds)
