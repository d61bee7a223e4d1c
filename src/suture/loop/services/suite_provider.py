"""Provide the suite that judges a run's candidates, and the current task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from suture.core.ledger import Budget, Ledger, last_payload
from suture.core.ledger.kinds import PackagesInstalled, TriageFinished
from suture.core.records import Candidate, Check, Task, Verdict
from suture.core.settings import SandboxSettings, Settings
from suture.judge import Suite, TriageResult, prepare_suite
from suture.judge.runners.diagnostics import DiagnosticsRunner
from suture.judge.signs import read_test_texts
from suture.loop.review.examples import add_confirmed_examples
from suture.loop.tuning import MAX_RUN_SHARE
from suture.project.languages import Interpreter
from suture.project.recorded_task import add_accepted_test
from suture.sandbox import Sandbox
from suture.sandbox.packages import AddedPackages, InstalledPackages, NewProjectPackages, packages_for_task
from suture.search import (
    DriverSession,
    EarlyBaseline,
    FailingProject,
    PythonSession,
    SearchLimits,
    TrialPool,
    TrialSession,
)


@dataclass(kw_only=True, eq=False)
class SuiteProvider:
    """Prepares the task's suite once, and again when a person has accepted a new test or confirmed results.

    The suite is only a cache: what a run decides by is in the graph's state, the ledger and the run folder.

    Attributes:
        user_task: The task as the user gave it.
        interpreter: The program that the test command's `python` means.
        budget: The run's budget, which limits the time of one run of the tests.
        vet: Returns a verdict on a candidate that must not run, else `None`.
    """

    user_task: Task
    settings: Settings
    sandbox: Sandbox
    interpreter: Interpreter | None
    ledger: Ledger
    budget: Budget
    vet: Callable[[Candidate], Verdict | None]
    _extended_task: Task | None = None
    _suite: Suite | None = None

    @property
    def task(self) -> Task:
        """Return the task, including the test that a person has accepted or the results that they confirmed."""
        given = self.user_task
        # Only a bug report leads to such a test, and only a task that shows no result leads to such a question.
        is_complete = (
            bool(given.checks or given.test_command) if given.kind == "write" else not given.statement
        )
        if is_complete:
            return given
        if self._extended_task is None:
            extend = add_confirmed_examples if given.kind == "write" else add_accepted_test
            task = extend(given, self.ledger.events)
            if task is given:
                return task
            self._extended_task, self._suite = task, None
        return self._extended_task

    @property
    def packages(self) -> NewProjectPackages | AddedPackages | None:
        """Return the packages of the suite; `None` if it has none or is not prepared yet."""
        return self._suite.packages if self._suite is not None else None

    @property
    def diagnostics(self) -> DiagnosticsRunner | None:
        """Return the linters, type checkers and compilers of the suite; `None` if there are none, or no suite yet."""
        return self._suite.diagnostics if self._suite is not None else None

    async def load(self, *, runs_baseline: bool = False) -> Suite:
        """Return the suite of the task's own checks, prepared on the first call and again after a resume.

        Args:
            runs_baseline: Whether the tests are run on the unchanged files next. The suite then finds out in
                one run which tests there are and how they end.
        """
        task = self.task  # First, because an accepted test discards the suite.
        if self._suite is None:
            suite = await prepare_suite(
                task,
                self.sandbox,
                self._limits(),
                self.interpreter,
                run=runs_baseline,
                packages=packages_for_task(task, self.settings, on_installed=self._record_packages),
            )
            self._suite = replace(suite, vet=self.vet)
        triage = last_payload(self.ledger.events, TriageFinished)
        if triage is not None and triage.flaky_tests != self._suite.flaky_tests:
            self._suite = replace(self._suite, flaky_tests=triage.flaky_tests)
        return self._suite

    async def prepare(self, task: Task) -> Suite:
        """Prepare the suite of another task with the same sandbox, such as the task with one more test."""
        suite = await prepare_suite(task, self.sandbox, self.settings.sandbox, self.interpreter, run=False)
        return replace(suite, vet=self.vet)

    def test_texts(self) -> dict[str, str]:
        """Return path -> text of the tests and of the data files that they name; none before the suite is prepared."""
        return read_test_texts(self._suite) if self._suite is not None else {}

    def _record_packages(self, installed: InstalledPackages) -> None:
        self.ledger.append(PackagesInstalled(packages=installed.names))

    def _limits(self) -> SandboxSettings:
        """Return the sandbox limits. One run of the tests leaves time for another, which a repair needs."""
        limits, left_s = self.settings.sandbox, self.budget.remaining_s()
        if not left_s:  # There is no limit, or the time is up, which ends the run before the tests start.
            return limits
        timeout_s = min(limits.test_timeout_s, MAX_RUN_SHARE * left_s)
        return limits.model_copy(update={"test_timeout_s": timeout_s})


def add_checks(suite: Suite, generated: Sequence[Check]) -> Suite:
    """Return a suite with further checks, each with the trust that it has earned."""
    task_check_ids = {check.id for check in suite.task.checks}
    new = tuple(check for check in generated if check.id not in task_check_ids)
    return replace(suite, task=replace(suite.task, checks=(*suite.task.checks, *new))) if new else suite


@dataclass(frozen=True, kw_only=True)
class FirstTests:
    """What the first run of the tests showed.

    Attributes:
        verdict: On the code as it is; `None` if its tests have not run.
        triage: Which failing tests are not the code's fault; `None` if that has not been examined.
    """

    verdict: Verdict | None = None
    triage: TriageResult | None = None


@dataclass(kw_only=True)
class SearchPrefetch:
    """Work that is started before it is needed; it only saves time.

    Attributes:
        first_tests: The first run of the tests, if it began as the run was opened.
        pool: Worker processes that were started and that nothing has used yet.
        baseline: A baseline run in a language other than Python that nothing has used yet.
    """

    first_tests: asyncio.Task[FirstTests] | None = None
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
        """End everything that nothing has used."""
        if self.first_tests is not None:
            self.first_tests.cancel()
            await asyncio.gather(self.first_tests, return_exceptions=True)
        pool, self.pool = self.pool, None
        baseline, self.baseline = self.baseline, None
        if pool is not None:
            await pool.close()
        if baseline is not None:
            await baseline.close()
