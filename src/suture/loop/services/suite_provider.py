"""Provide the suite that judges a run's candidates, and the task as it stands now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from suture.core.ledger import Budget, Ledger
from suture.core.ledger.kinds import PackagesInstalled
from suture.core.records import Candidate, Check, Task, Verdict
from suture.core.settings import SandboxSettings, Settings
from suture.judge import Suite, prepare_suite
from suture.loop.tuning import MAX_RUN_SHARE
from suture.project.languages import Interpreter
from suture.project.recorded_task import add_accepted_test
from suture.project.workspace import decode_text
from suture.sandbox import Sandbox
from suture.sandbox.packages import AddedPackages, InstalledPackages, NewProjectPackages, packages_for_task


class SuiteProvider:
    """Prepares the task's suite once, and again when a person has accepted a new test.

    The suite is only a cache: what a run decides by is in the graph's state, the ledger and the run folder.

    Args:
        task: The task as the user gave it.
        settings: The settings of the run.
        sandbox: The sandbox.
        interpreter: The program that the test command's `python` means.
        ledger: The run's ledger.
        budget: The run's budget, which limits the time of one run of the tests.
        vet: Returns a verdict on a candidate that must not run, else `None`.
    """

    def __init__(
        self,
        task: Task,
        settings: Settings,
        sandbox: Sandbox,
        interpreter: Interpreter | None,
        ledger: Ledger,
        budget: Budget,
        vet: Callable[[Candidate], Verdict | None],
    ) -> None:
        self._given = task
        self._settings = settings
        self._sandbox = sandbox
        self._interpreter = interpreter
        self._ledger = ledger
        self._budget = budget
        self._vet = vet
        self._task_with_test: Task | None = None
        self._suite: Suite | None = None

    @property
    def task(self) -> Task:
        """Return the task, including the test that a person has accepted, if any."""
        if self._given.kind != "heal" or not self._given.statement:
            return self._given
        if self._task_with_test is None:
            task = add_accepted_test(self._given, self._ledger.events)
            if task is self._given:
                return task
            self._task_with_test, self._suite = task, None
        return self._task_with_test

    @property
    def packages(self) -> NewProjectPackages | AddedPackages | None:
        """Return the packages of the suite; `None` if it has none or is not prepared yet."""
        return self._suite.packages if self._suite is not None else None

    async def load(self, *, runs_baseline: bool = False) -> Suite:
        """Return the suite of the task's own checks, prepared on the first call and again after a resume.

        Args:
            runs_baseline: Whether the tests are run on the unchanged files next. The suite then finds out in
                one run which tests there are and how they end.

        Raises:
            UsageError: The test command cannot start, or there are no tests.
            SandboxError: The sandbox failed.
        """
        task = self.task  # First, because an accepted test discards the suite.
        if self._suite is None:
            suite = await prepare_suite(
                task,
                self._sandbox,
                self._limits(),
                self._interpreter,
                run=runs_baseline,
                packages=packages_for_task(task, self._settings, on_installed=self._record_packages),
            )
            self._suite = replace(suite, vet=self._vet)
        return self._suite

    async def load_with_checks(self, generated: Sequence[Check]) -> Suite:
        """Return the suite with generated checks that have earned enough trust to decide.

        Raises:
            UsageError: The test command cannot start, or there are no tests.
            SandboxError: The sandbox failed.
        """
        return add_checks(await self.load(), generated)

    async def prepare(self, task: Task) -> Suite:
        """Prepare the suite of another task in the same surroundings, such as the task with one more test."""
        suite = await prepare_suite(task, self._sandbox, self._settings.sandbox, self._interpreter, run=False)
        return replace(suite, vet=self._vet)

    def test_sources(self) -> dict[str, str]:
        """Return the texts of the project's tests, as far as the prepared suite knows them: path -> text."""
        paths = self._suite.test_files if self._suite is not None else ()
        return {path: decode_text(self.task.files[path]) for path in paths if path in self.task.files}

    def follow_up_notes(self, candidate: Candidate) -> tuple[str, ...]:
        """Return what remains to do for whoever takes over a candidate, besides its files."""
        packages = self.packages
        return packages.follow_up_notes(candidate.files) if isinstance(packages, AddedPackages) else ()

    def _record_packages(self, installed: InstalledPackages) -> None:
        self._ledger.append(PackagesInstalled(packages=installed.names))

    def _limits(self) -> SandboxSettings:
        """Return the sandbox limits. No run of the tests may take the time that a repair of them needs."""
        limits, left_s = self._settings.sandbox, self._budget.remaining_s()
        if not left_s:
            return limits
        timeout_s = min(limits.test_timeout_s, MAX_RUN_SHARE * left_s)
        return limits.model_copy(update={"test_timeout_s": timeout_s})


def add_checks(suite: Suite, generated: Sequence[Check]) -> Suite:
    """Return a suite with further checks, each with the trust that it has earned."""
    own = {check.id for check in suite.task.checks}
    new = tuple(check for check in generated if check.id not in own)
    return replace(suite, task=replace(suite.task, checks=(*suite.task.checks, *new))) if new else suite
