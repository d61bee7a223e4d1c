"""The user's test command: pytest with a signed report, others by their runner's report or exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace

from suture.core.records import CheckOutcome, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.failures import decode_output
from suture.judge.runners.collection import Collected, collected_from
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.exit_status_runner import PlainCommand
from suture.judge.runners.pytest_outcomes import (
    is_odd,
    notes_on,
    outcomes_of,
    where_changed,
    where_they_disagree,
    where_unvouched,
)
from suture.judge.runners.pytest_report import PytestReport
from suture.judge.runners.pytest_runner import PytestRuns, is_misused
from suture.judge.runners.reporting_runner import RunnerCommand
from suture.judge.runners.skips import rule_on_examples, rule_on_skip
from suture.judge.runners.unsteady_names import lost_and_new, names_in_place, under_names, unsteady_functions
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.project.languages import Interpreter, is_pytest_command
from suture.project.workspace import DEFAULT_PROTECTED, is_protected
from suture.sandbox import BOX, Channel, RunResult, Sandbox


class TestCommand:
    """A task's test command behind the wall.

    Args:
        task: A task with a test command.
        sandbox: The wall.
        settings: Its limits.
        interpreter: What `python` means in the command.
    """

    __test__ = False  # pytest must not collect it

    def __init__(
        self, task: Task, sandbox: Sandbox, settings: SandboxSettings, interpreter: Interpreter
    ) -> None:
        self._task = task
        self.sandbox = sandbox
        self._line = CommandLine(task=task, settings=settings, interpreter=interpreter)
        self.interpreter = interpreter
        self.is_pytest = is_pytest_command(task.test_command)
        self.rootdir = "."
        """The folder from which pytest itself counts its ids, seen from the project's root."""
        self._plain: PlainCommand | RunnerCommand = PlainCommand(self._line, sandbox)
        self._collected = Collected()
        self._pytest = PytestRuns(self._line, sandbox)
        self._first: tuple[RunResult, PytestReport] | None = None
        self._unsteady: frozenset[str] | None = None
        self._base_lock = asyncio.Lock()
        self._base: PytestReport | None = None

    @property
    def settings(self) -> SandboxSettings:
        """The wall's limits."""
        return self._line.settings

    @property
    def backdated_files(self) -> list[str]:
        """The files that must be as old as in the first run, for what they were compiled to be believed."""
        return self._pytest.dated()

    @property
    def test_files(self) -> tuple[str, ...]:
        """The project's files that hold the command's tests; known once they are collected."""
        return self._collected.files

    async def collect(self, *, run: bool = False) -> None:
        """Learn, before any candidate is there, which tests must be reported.

        Args:
            run: Whether the whole command is run for that, where one run can tell both: how the tests end on
                the task's own files is known then, and is answered when it is next asked for.

        Raises:
            UsageError: The command cannot start, or there are no tests.
        """
        if not self.is_pytest:
            await self._collect_plain()
            return
        result, report = await self._pytest.run(
            self._task.files, options="" if run else "--collect-only", compile_for_later=True
        )
        if run and (report.items or report.uncollectable):
            self._first = result, report
        elif run:  # its tests are collected by other processes, or it did not get there
            result, report = await self._pytest.run(
                self._task.files, options="--collect-only", compile_for_later=True
            )
        if not report.begun or is_misused(result, report):
            self._line.refuse_start(result)
        self._collected = collected_from(report, self._task.files)
        self.rootdir = report.rootdir
        self._pytest.compile_anew({*self._collected.files, *filter(is_protected, self._task.files)})
        if not self._collected.all_ids and not self._collected.torn:
            raise UsageError(
                f"{self._line.shown!r} collects no tests",
                remedy="write a function `test_...` in a file `test_*.py`, or name its file in the command",
            )

    async def _collect_plain(self) -> None:
        reported = await RunnerCommand.tried_out(self._line, self.sandbox)
        if reported is not None:
            self._plain = reported
            self._collected = Collected(files=reported.test_files)
            return
        self._plain = plain = PlainCommand(self._line, self.sandbox)
        await plain.try_out()

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the command on a project's files; whatever they do to it is a verdict on them.

        Raises:
            SandboxError: The wall failed.
        """
        is_base = dict(files) == dict(self._task.files)
        if not self.is_pytest:
            return await self._plain.run(files, is_base=is_base)
        result, report = await self._whole(files, is_base)
        if is_base:
            self._base = report
        outcomes = outcomes_of(report, result, self._collected)
        if not is_base and any(outcome.status == "skipped" for outcome in outcomes):
            base = await self._base_report()
            outcomes = [rule_on_skip(outcome, report, base, self._task) for outcome in outcomes]
        base = await self._base_report() if is_odd(report) else report
        outcomes = rule_on_examples(outcomes, report, self._collected, files)
        outcomes = [where_unvouched(outcome, report, base) for outcome in outcomes]
        outcomes += where_changed(self._line.shown, report, base, self._is_tests)
        outcomes += where_they_disagree(self._line.shown, result, outcomes)
        notes = notes_on(report, base, result, outcomes)
        return CommandRun(
            outcomes=tuple(outcomes), output=decode_output(result), notes=notes, wall_s=result.wall_s
        )

    def _is_tests(self, path: str) -> bool:
        """Whether no candidate may write a file of the project."""
        return path in self.test_files or is_protected(path, self._task.protected or DEFAULT_PROTECTED)

    async def _whole(self, files: Mapping[str, bytes], is_base: bool) -> tuple[RunResult, PytestReport]:
        """One run of all tests, under the names that they had first; the very first one answers once."""
        first, self._first = (self._first, None) if is_base else (None, self._first)
        if first is not None:
            return first
        result, report = await self._pytest.run(files)
        names = self._collected.ids
        if is_base:
            self._unsteady = unsteady_functions(names, report.items)
        changed = lost_and_new(names, report.items)
        if changed and self._unsteady is None:
            _, again = await self._pytest.run(self._task.files, options="--collect-only")
            self._unsteady = unsteady_functions(names, again.items)
        if changed and self._unsteady:
            report = under_names(report, names_in_place(names, report.items, changed & self._unsteady))
        return result, report

    async def run_selected(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        wall_s: float | None = None,
    ) -> tuple[CheckOutcome, ...]:
        """Run only some of the tests, to learn about them; no verdict is made of it.

        Args:
            files: A project.
            tests: Their ids; all of them where there are none. A command that is not pytest runs whole.
            wall_s: The most seconds; the settings' `test_wall_s` where it is left out.

        Raises:
            SandboxError: The wall failed.
        """
        if not self.is_pytest:
            return await self._plain.run_some(files, tests, wall_s)
        result, report = await self._pytest.run(files, only=tests, wall_s=wall_s)
        return self._some(report, result, tests)

    async def run_together_and_isolated(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        apart: Collection[str],
        wall_s: float | None = None,
    ) -> tuple[tuple[CheckOutcome, ...], tuple[CheckOutcome, ...]]:
        """Some tests together, then some of them each as if it were the only one; no verdict is made of it.

        Args:
            files: A project.
            tests: Their ids. A command that is not pytest runs whole whatever is asked of it: once, for both.
            apart: Ids of those that run apart too.
            wall_s: The most seconds; the settings' `test_wall_s` where it is left out.

        Raises:
            SandboxError: The wall failed.
        """
        if not self.is_pytest:
            ended = await self.run_selected(files, tests, wall_s)
            return ended, tuple(outcome for outcome in ended if outcome.check_id in apart)
        result, report = await self._pytest.run(files, only=tests, apart=apart, wall_s=wall_s)
        if report.together is None:  # other processes run its tests, or one of them ended this one
            together = self._some(report, result, tests)
            over = report.uncollectable or result.status == "timeout"
            return together, () if over else await self.run_selected(files, apart, wall_s)
        return self._some(report.together, result, tests), self._some(report, result, apart)

    def _some(
        self, report: PytestReport, result: RunResult, tests: Collection[str]
    ) -> tuple[CheckOutcome, ...]:
        every = outcomes_of(report, result, self._collected)
        return tuple(outcome for outcome in every if not tests or outcome.check_id in tests)

    def copy_with_settings(self, settings: SandboxSettings) -> TestCommand:
        """The same command with other limits; what is known of its tests, and of their first run, is."""
        other = copy(self)
        other._line = replace(self._line, settings=settings)
        other._plain = self._plain.within(other._line)
        other._pytest = self._pytest.of(other._line)
        return other

    def copy_with_interpreter(self, interpreter: Interpreter) -> TestCommand:
        """The same command by an interpreter that sees more packages."""
        other = copy(self)
        other.interpreter = interpreter
        other._line = replace(self._line, interpreter=interpreter)
        other._plain = self._plain.within(other._line)
        other._pytest = self._pytest.of(other._line)
        return other

    def copy_with_files(self, files: Mapping[str, bytes]) -> TestCommand:
        """The same command for a task with other files; its tests are not collected yet."""
        task = replace(self._task, files=files)
        return TestCommand(task, self.sandbox, self._line.settings, self.interpreter)

    def open_with(
        self, plugin: str, own: Mapping[str, bytes], *, wall_s: float
    ) -> AbstractAsyncContextManager[Channel]:
        """Start pytest on the task's own files with another plugin of ours, to talk with it.

        No verdict is made of what it says.

        Args:
            plugin: The plugin's module. Pytest's own stdin and stdout are the line to it.
            own: Files in our own folder beside the project: name -> content, the plugin among them.
            wall_s: The most seconds that it lives.
        """
        return self._pytest.open_with(plugin, own, wall_s=wall_s)

    async def run_beside(
        self,
        argv: Callable[[str, str], tuple[str, ...]],
        files: Mapping[str, bytes],
        own: Mapping[str, bytes],
        *,
        collect: str,
        wall_s: float,
    ) -> bytes:
        """Start a program of ours on a project, behind the command's wall.

        No verdict is made of what it says.

        Args:
            argv: What starts it, by the interpreter's path and by our own folder's.
            files: The project.
            own: Files in our own folder: name -> content.
            collect: The name there of the file that is brought back.
            wall_s: The most seconds.

        Returns:
            What it left in that file; nothing where it left none.

        Raises:
            SandboxError: The wall failed.
        """
        laid = {**drop_private_files(files), **{f"{PRIVATE_FOLDER}/{name}": text for name, text in own.items()}}
        back = f"{PRIVATE_FOLDER}/{collect}"
        request = self._line.request(laid, wall_s=wall_s, collect=(back,))
        words = argv(self.interpreter.executable, f"{BOX}/{PRIVATE_FOLDER}")
        result = await self.sandbox.run(self._line.launched(replace(request, argv=words)))
        return result.files.get(back, b"")

    async def _base_report(self) -> PytestReport:
        """What the tests say on the task's own files: run once, and only where a verdict turns on it."""
        async with self._base_lock:
            if self._base is None:
                _, self._base = await self._pytest.run(self._task.files)
            return self._base
