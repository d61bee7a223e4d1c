"""The user's test command: pytest with a signed report, other runners by their report or exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace

from suture.core.records import CheckOutcome, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.coverage.reached_functions import TestReach, read_reach
from suture.judge.failures import decode_output
from suture.judge.runners.collection import CollectionResult, read_collection
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.django_command import DjangoCommand
from suture.judge.runners.exit_status_runner import ExitStatusRunner
from suture.judge.runners.pytest_outcomes import (
    find_changed_input,
    find_inconsistent_ending,
    find_machinery_changes,
    find_reached_code,
    judge_examples,
    judge_skip,
    make_notes,
    make_outcomes,
    needs_base_report,
    reject_unconfirmed_passes,
)
from suture.judge.runners.pytest_report import (
    Pair,
    PytestReport,
    find_renamed_functions,
    find_unstable_functions,
    get_function,
    make_test_outcome,
    map_ids_by_position,
    rename_tests,
)
from suture.judge.runners.pytest_runner import REACH_PATH, PytestRunner, RunAddition, is_misused
from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.judge.runners.reporting_runner import ReportingRunner
from suture.judge.runners.run_inputs import RunInputs
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.project.languages import Interpreter, is_pytest_command
from suture.project.mixed_files import find_mixed_files
from suture.project.workspace import DEFAULT_PROTECTED, is_protected
from suture.sandbox import BOX, Channel, RunResult, Sandbox
from suture.sandbox.services import ServiceSandbox


class TestCommand:
    """A task's test command inside the sandbox.

    Args:
        interpreter: The interpreter that `python` in the command stands for.
        recorded: Where the results of runs on the task's own files are kept, if they may be used again.
        records_reach: Whether to record which functions each test runs, in the run on the task's own files.
        only: Ids of test functions, and test files, to which all runs are restricted; empty for all tests.
    """

    __test__ = False  # keeps pytest from collecting this class

    def __init__(
        self,
        task: Task,
        sandbox: Sandbox,
        settings: SandboxSettings,
        interpreter: Interpreter,
        *,
        recorded: BaseRunRecord | None = None,
        records_reach: bool = False,
        only: Collection[str] = (),
    ) -> None:
        self._task = task
        self._recorded = recorded
        self._records_reach = records_reach
        self._only = frozenset(only)
        self.reach: TestReach | None = None
        """Which functions each test ran on the task's own files; `None` if that is unknown."""
        self.sandbox = sandbox
        self.test_sandbox: Sandbox = sandbox
        """The sandbox in which the task's services start before each program."""
        if task.services:
            self.test_sandbox = ServiceSandbox(sandbox, task.services, interpreter.site_packages)
        self._line = CommandLine(task=task, settings=settings, interpreter=interpreter)
        self.interpreter = interpreter
        self.is_pytest = is_pytest_command(task.test_command)
        self.rootdir = "."
        """The folder that pytest's ids are relative to, relative to the project's root."""
        self.search_path: frozenset[str] = frozenset()
        """Entries of `sys.path` in the run that collected the tests, as in `PytestReport`; empty if unknown."""
        self.loaded_modules: frozenset[Pair] = frozenset()
        """The modules that this run loaded, as in `PytestReport`."""
        self._other_runner: ExitStatusRunner | ReportingRunner = ExitStatusRunner(
            self._line, self.test_sandbox
        )
        self._collected = CollectionResult()
        self._pytest = PytestRunner(self._line, self.test_sandbox)
        self._django: DjangoCommand | None = None
        """The user's own command, if it is Django's and pytest runs its tests."""
        self._first_run: tuple[RunResult, PytestReport] | None = None
        self._unstable_functions: frozenset[str] | None = None
        self._base_lock = asyncio.Lock()
        self._base_report: PytestReport | None = None
        self.opened_data: frozenset[str] = frozenset()
        """Files other than Python code that tests opened in the run that collected them."""
        self._inputs = RunInputs(task)
        self._base_result: RunResult | None = None
        """A run of the task's own files in which all of them were watched."""

    @property
    def task_files(self) -> Mapping[str, bytes]:
        """The task's own files."""
        return self._task.files

    @property
    def has_services(self) -> bool:
        """Whether services start before each run, so that runs in one process would share their data."""
        return bool(self._task.services)

    @property
    def settings(self) -> SandboxSettings:
        """The sandbox limits."""
        return self._line.settings

    @property
    def backdated_files(self) -> list[str]:
        """The files that need their original time stamp for their bytecode to be used."""
        return self._pytest.list_unchanged_sources()

    @property
    def test_files(self) -> tuple[str, ...]:
        """The project's files that hold the command's tests; empty until the tests are collected."""
        return self._collected.files

    async def collect(self, *, run: bool = False) -> None:
        """Learn which tests every run must report, before any candidate exists.

        Args:
            run: Whether to run the whole command if a single run can both collect and judge the task's own
                files. `run` then returns that result when it is called with these files.

        Raises:
            UsageError: The command cannot start, or there are no tests.
        """
        if not self.is_pytest:
            await self._collect_django(run=run)
        if not self.is_pytest:
            await self._collect_without_pytest()
        elif self._django is None:
            await self._collect_with_pytest(run=run)

    async def _collect_django(self, *, run: bool) -> None:
        """Have pytest run the tests of Django's own command, if both collect the same tests with the same results."""
        django = await DjangoCommand.try_base(self._line, self.test_sandbox)
        if django is None:
            return
        self._pytest = PytestRunner(django.pytest_line, self.test_sandbox)
        try:
            await self._collect_with_pytest(run=True)
        except UsageError:
            return
        if self._first_run is None or not django.agrees_with(*self._first_run):
            self._first_run = None
            self._collected = CollectionResult()
            return
        self.is_pytest, self._django = True, django
        self._first_run = self._first_run if run else None

    async def _collect_with_pytest(self, *, run: bool) -> None:
        result, report = await self._pytest.run(
            self._task.files,
            options="" if run else "--collect-only",
            only=self._only,
            compile_for_later=True,
            records_reach=run and self._records_reach,
            recorded=self._recorded if run else None,
        )
        if run and (report.items or report.uncollectable):
            if self._records_reach:
                self.reach = read_reach(result.files.get(REACH_PATH, b""))
                result, report = await self._run_unrecorded(result, report)
            self._first_run = result, report
        elif run:  # other processes collect its tests, or pytest ended before the collection
            result, report = await self._pytest.run(
                self._task.files, options="--collect-only", only=self._only, compile_for_later=True
            )
        if not report.begun or is_misused(result, report):
            self._line.refuse_start(result)
        self._collected = read_collection(report, self._task.files)
        self.rootdir = report.rootdir
        self.search_path, self.loaded_modules = report.search_path, report.loaded_modules
        self.opened_data = report.opened
        self._inputs = RunInputs(self._task, self._collected.files, self.opened_data)
        self._pytest.forget_bytecode({*self._inputs.files, *filter(is_protected, self._task.files)})
        if not self._collected.all_ids and not self._collected.unimportable_examples:
            self._line.refuse_empty_collection()

    async def _run_unrecorded(
        self, result: RunResult, report: PytestReport
    ) -> tuple[RunResult, PytestReport]:
        """Return a run on the task's own files without the recording, if that made a test fail."""
        outcomes = make_outcomes(report, result, read_collection(report, self._task.files))
        failed = {outcome.check_id for outcome in outcomes if outcome.status not in ("passed", "skipped")}
        if not failed:
            return result, report
        _, alone = await self._pytest.run(
            self._task.files, only={get_function(test) for test in failed}, recorded=self._record("failed")
        )
        passing = {test for test in failed if make_test_outcome(test, alone.phases.get(test, ())).passed}
        if not passing:
            return result, report
        return await self._pytest.run(
            self._task.files, only=self._only, compile_for_later=True, recorded=self._record("unrecorded")
        )

    def _record(self, name: str) -> BaseRunRecord | None:
        return replace(self._recorded, name=name) if self._recorded is not None else None

    def forget_recorded(self) -> None:
        """Remove the recorded runs on the task's own files."""
        if self._recorded is not None:
            self._recorded.forget_all()

    async def _collect_without_pytest(self) -> None:
        reporting_runner = await ReportingRunner.try_base(self._line, self.test_sandbox)
        if reporting_runner is not None:
            self._other_runner = reporting_runner
            self._collected = CollectionResult(files=reporting_runner.test_files)
            return
        exit_status_runner = ExitStatusRunner(self._line, self.test_sandbox)
        self._other_runner = exit_status_runner
        await exit_status_runner.try_base()

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the command on a project's files and judge the result."""
        is_base = dict(files) == dict(self._task.files)
        if not self.is_pytest:
            return await self._other_runner.run(files, is_base=is_base)
        result, report = await self._run_all(files, is_base)
        if is_base:
            self._base_report = report
        outcomes = make_outcomes(report, result, self._collected)
        if not is_base and any(outcome.status == "skipped" for outcome in outcomes):
            base = await self._get_base_report()
            outcomes = [judge_skip(outcome, report, base, self._task) for outcome in outcomes]
        base = await self._get_base_report() if needs_base_report(report) else report
        outcomes = judge_examples(outcomes, report, self._collected, files)
        outcomes = reject_unconfirmed_passes(outcomes, report, base)
        outcomes += await self._find_machinery_changes(report, base)
        outcomes += find_reached_code(self._line.shown, report, base, files, self._task.files)
        outcomes += [] if is_base else await self._find_input_change(result, report)
        outcomes += find_inconsistent_ending(self._line.shown, result, outcomes)
        if self._django is not None and not is_base:
            outcomes += await self._django.confirm(files, outcomes)
        notes = make_notes(report, base, result, outcomes)
        return CommandRun(
            outcomes=tuple(outcomes), output=decode_output(result), notes=notes, wall_s=result.wall_s
        )

    def _is_protected_test(self, path: str) -> bool:
        """Return whether candidates may not write any part of a file of the project."""
        if path in find_mixed_files(self._task.files):
            return False
        return path in self.test_files or is_protected(path, self._task.protected or DEFAULT_PROTECTED)

    async def _run_all(self, files: Mapping[str, bytes], is_base: bool) -> tuple[RunResult, PytestReport]:
        """Run all tests once, under the ids that they had first.

        The first run of the task's own files is used once instead of a new run.
        """
        if is_base and self._first_run is not None:
            first_run, self._first_run = self._first_run, None
            return first_run
        watched = self._task.files.keys() if is_base else self._inputs.files
        first_report = self._first_run[1] if self._first_run is not None else None
        before = None if is_base else self._base_report or first_report
        result, report = await self._pytest.run(
            files, only=self._only, watched=watched, before=before, checks_each_test=True
        )
        ids = self._collected.ids
        if is_base:
            self._base_result = result
            self._unstable_functions = find_unstable_functions(ids, report.items)
        renamed = find_renamed_functions(ids, report.items)
        if renamed and self._unstable_functions is None:
            _, collection = await self._pytest.run(
                self._task.files, options="--collect-only", only=self._only
            )
            self._unstable_functions = find_unstable_functions(ids, collection.items)
        if renamed and self._unstable_functions:
            names = map_ids_by_position(ids, report.items, renamed & self._unstable_functions)
            report = rename_tests(report, names)
        return result, report

    async def run_selected(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        wall_s: float | None = None,
        *,
        options: str = "",
        addition: RunAddition | None = None,
    ) -> tuple[CheckOutcome, ...]:
        """Run some of the tests outside of a verdict.

        Args:
            tests: Ids of the tests; empty for all. A command that is not pytest runs whole.
            wall_s: The time limit in seconds; the setting `test_timeout_s` by default.
            options: Options of pytest.
            addition: What a run of pytest has besides the reporting plugin.
        """
        if not self.is_pytest:
            return await self._other_runner.run_selected(files, tests, wall_s)
        outcomes, _ = await self.run_until(files, tests, wall_s, options=options, addition=addition)
        return outcomes

    async def run_until(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        wall_s: float | None,
        *,
        options: str = "",
        addition: RunAddition | None = None,
    ) -> tuple[tuple[CheckOutcome, ...], bool]:
        """Run some of the tests with pytest; see `run_selected`.

        Returns:
            Their outcomes, and whether the time limit ended the run.
        """
        result, report = await self._pytest.run(
            files, only=tests, wall_s=wall_s, options=options, addition=addition
        )
        is_cut_off = result.status == "timeout" and report.exit_code is None
        return self._select(report, result, tests), is_cut_off

    async def run_together_and_isolated(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        isolated: Collection[str],
        wall_s: float | None = None,
        *,
        addition: RunAddition | None = None,
    ) -> tuple[tuple[CheckOutcome, ...], tuple[CheckOutcome, ...]]:
        """Run some tests together, and then some of them each in its own process, outside of a verdict.

        Args:
            tests: Ids of the tests. A command that is not pytest runs whole, once for both.

        Returns:
            The outcomes of the tests together, and those of the isolated tests.
        """
        if not self.is_pytest:
            outcomes = await self.run_selected(files, tests, wall_s)
            return outcomes, tuple(outcome for outcome in outcomes if outcome.check_id in isolated)
        result, report = await self._pytest.run(
            files, only=tests, isolated=isolated, wall_s=wall_s, addition=addition
        )
        if report.joint_report is None:  # other processes run the tests, or a test ended pytest's process
            together = self._select(report, result, tests)
            if report.uncollectable or result.status == "timeout":
                return together, ()
            return together, await self.run_selected(files, isolated, wall_s, addition=addition)
        return self._select(report.joint_report, result, tests), self._select(report, result, isolated)

    def _select(
        self, report: PytestReport, result: RunResult, tests: Collection[str]
    ) -> tuple[CheckOutcome, ...]:
        outcomes = make_outcomes(report, result, self._collected)
        return tuple(outcome for outcome in outcomes if not tests or outcome.check_id in tests)

    def restrict(self, only: Collection[str]) -> TestCommand:
        """Return the same command restricted to some tests.

        Args:
            only: Ids of test functions, and test files; a command other than pytest is not restricted.
        """
        other = copy(self)
        other._only = frozenset(only)
        other._collected = self._collected.restrict(other._only)
        other._first_run = None
        other._recorded = None
        return other

    async def run_with(
        self, files: Mapping[str, bytes], addition: RunAddition, tests: Collection[str] = ()
    ) -> bytes | None:
        """Run pytest outside of a verdict, and return the output of an addition; `None` if it wrote none.

        Args:
            tests: Ids of test functions, and test files; empty for all.
        """
        result, _ = await self._pytest.run(files, only=tests or self._only, addition=addition)
        return result.files.get(*addition.collect)

    async def record_reach(self, files: Mapping[str, bytes]) -> TestReach:
        """Run pytest outside of a verdict, and return which functions of the project each test runs."""
        result, _ = await self._pytest.run(files, only=self._only, records_reach=True)
        return read_reach(result.files.get(REACH_PATH, b""))

    def copy_with_settings(self, settings: SandboxSettings) -> TestCommand:
        """Return the same command with other limits, with everything that is known about its tests."""
        return self._copy_with_line(replace(self._line, settings=settings))

    def copy_with_interpreter(self, interpreter: Interpreter) -> TestCommand:
        """Return the same command for an interpreter that sees more packages."""
        return self._copy_with_line(replace(self._line, interpreter=interpreter))

    def _copy_with_line(self, line: CommandLine) -> TestCommand:
        other = copy(self)
        other._line, other.interpreter = line, line.interpreter
        other._other_runner = self._other_runner.copy_with_line(line)
        other._django = None if self._django is None else self._django.copy_with_line(line)
        other._pytest = self._pytest.copy_with_line(
            line if other._django is None else other._django.pytest_line
        )
        return other

    def copy_with_files(self, files: Mapping[str, bytes]) -> TestCommand:
        """Return the same command for a task with other files, whose tests are not collected yet."""
        task = replace(self._task, files=files)
        return TestCommand(task, self.sandbox, self._line.settings, self.interpreter)

    def copy_on_files(self, files: Mapping[str, bytes]) -> TestCommand:
        """Return the same command for trials of changed files, with everything that is known about its tests."""
        return self._copy_with_line(replace(self._line, task=replace(self._line.task, files=files)))

    def open_with_plugin(
        self, plugin: str, suture_files: Mapping[str, bytes], *, wall_s: float
    ) -> AbstractAsyncContextManager[Channel]:
        """Start pytest on the task's own files with another plugin, and talk to that plugin.

        Nothing that the plugin says decides a verdict.

        Args:
            plugin: The plugin's module name. Pytest's stdin and stdout are the channel to the plugin.
            suture_files: Files for Suture's own folder next to the project, name -> content, including the
                plugin.
        """
        return self._pytest.open_with(plugin, suture_files, wall_s=wall_s)

    async def run_helper_program(
        self,
        argv: Callable[[str, str], tuple[str, ...]],
        files: Mapping[str, bytes],
        suture_files: Mapping[str, bytes],
        *,
        collect: str,
        wall_s: float,
    ) -> bytes:
        """Run one of Suture's own programs on a project, inside the sandbox of the command.

        Nothing that the program says decides a verdict.

        Args:
            argv: Returns the arguments, given the paths of the interpreter and of Suture's own folder.
            suture_files: Files for Suture's own folder, name -> content.
            collect: The name of the file in that folder that is collected.

        Returns:
            The content of that file; empty if the program did not write it.
        """
        all_files = {
            **drop_private_files(files),
            **{f"{PRIVATE_FOLDER}/{name}": text for name, text in suture_files.items()},
        }
        output_path = f"{PRIVATE_FOLDER}/{collect}"
        request = self._line.request(all_files, wall_s=wall_s, collect=(output_path,))
        arguments = argv(self.interpreter.executable, f"{BOX}/{PRIVATE_FOLDER}")
        result = await self.test_sandbox.run(self._line.link_packages(replace(request, argv=arguments)))
        return result.files.get(output_path, b"")

    async def _get_base_report(self) -> PytestReport:
        """Return the report of the task's own files. It is run once, and only if a verdict depends on it."""
        async with self._base_lock:
            if self._base_report is None:
                self._base_report = await self._run_base()
            return self._base_report

    async def _run_base(self) -> PytestReport:
        self._base_result, report = await self._pytest.run(
            self._task.files,
            only=self._only,
            watched=self._task.files,
            recorded=self._record("watched"),
            checks_each_test=True,
        )
        return report

    async def _find_machinery_changes(self, report: PytestReport, base: PytestReport) -> list[CheckOutcome]:
        """Return a failure of the whole command if code under test changed the test machinery, unlike the base run.

        The first run of the task's own files does not look for changes that a test itself undoes. Another run does if
        that decides.
        """
        changes = find_machinery_changes(self._line.shown, report, base, self._is_protected_test)
        if changes and self._base_result is None:
            base = await self._get_watched_base_report()
            changes = find_machinery_changes(self._line.shown, report, base, self._is_protected_test)
        return changes

    async def _get_watched_base_report(self) -> PytestReport:
        """Return the report of a run on the task's own files in which everything was watched."""
        async with self._base_lock:
            if self._base_result is None or self._base_report is None:
                self._base_report = await self._run_base()
            return self._base_report

    async def _find_input_change(self, result: RunResult, report: PytestReport) -> list[CheckOutcome]:
        """Return a failure of the whole command if code under test changed what decides its run."""
        # What the tests' own code writes is legitimate, even if the base run did not get that far.
        result = replace(result, changed=result.changed - (report.written - report.overwritten))
        if self._inputs.find_change(self._line.shown, result, None) is None:
            return []
        await self._get_watched_base_report()
        return find_changed_input(self._line.shown, result, self._base_result, self._inputs)
