"""A task's checks as one suite, which every candidate of the task must pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from suture.core.records import Candidate, Task, Verdict, VerdictNote
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.extraction.program_plans import find_stated_classes, find_stated_functions
from suture.judge.runners.command_line import CommandRun
from suture.judge.runners.diagnostics import DiagnosticsRunner
from suture.judge.runners.go_build_cache import add_go_build_cache
from suture.judge.runners.installed_modules import list_importable_modules, list_node_packages
from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.judge.runners.test_command import TestCommand
from suture.judge.smoke.smoke_plan import SmokeChecks
from suture.judge.split.call_runner import CallRunner
from suture.project.languages import LANGUAGES, Interpreter, ModuleLookup, find_runner
from suture.project.mixed_files import find_mixed_files
from suture.project.workspace import DEFAULT_PROTECTED, decode_text, is_protected, overlay_candidate
from suture.sandbox import Sandbox
from suture.sandbox.packages import AddedPackages, NewProjectPackages, with_packages_shown

RunT = TypeVar("RunT", CommandRun, Verdict)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What every candidate of a task must pass.

    Attributes:
        task: The task.
        sandbox: Runs programs.
        settings: The sandbox limits.
        command: The task's test command, if it has one; its tests are collected.
        functions: Names that the statement shows to be functions.
        classes: Names that the statement or the task's own code shows to be classes.
        test_files: The project's files that hold the command's tests, under any name.
        vet: Returns the verdict on a candidate that must not be run, and `None` for any other candidate.
        smoke: Starts the project that the task asks for, if it asks for one.
        calls: Judges the task's checks if they are calls in a language other than Python.
        packages: Installs packages that a candidate asks for, if that is allowed.
        diagnostics: Runs the task's linters, type checkers and compilers, if it has some.
        guard_run: The run of tests that only guard a change, on the task's own files. Tests that fail there do not
            decide.
        flaky_tests: Ids of tests that fail now and then on the task's own files, and so do not decide.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    command: TestCommand | None = None
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    test_files: tuple[str, ...] = ()
    vet: Callable[[Candidate], Verdict | None] | None = None
    smoke: SmokeChecks | None = None
    calls: CallRunner | None = None
    packages: NewProjectPackages | AddedPackages | None = None
    diagnostics: DiagnosticsRunner | None = None
    guard_run: CommandRun | None = None
    flaky_tests: frozenset[str] = frozenset()

    @cached_property
    def mixed_files(self) -> frozenset[str]:
        """The files that contain code as well as tests of the command."""
        return find_mixed_files(self.task.files)

    @property
    def interpreter(self) -> Interpreter | None:
        """The interpreter of the project; `None` if the suite starts no program of it."""
        runner = self.smoke or self.command
        return runner.interpreter if runner is not None else None

    async def run_command(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the test command on a project's files, without the tests that do not decide."""
        return self.leave_out_flaky_tests(await self._run_with_guards(files))

    def leave_out_flaky_tests(self, run: RunT) -> RunT:
        """Return a run or a verdict without the flaky tests, and with a note that names them."""
        if not self.flaky_tests:
            return run
        outcomes = tuple(each for each in run.outcomes if each.check_id not in self.flaky_tests)
        note = VerdictNote(code="flaky_tests", subjects=tuple(sorted(self.flaky_tests)))
        return replace(run, outcomes=outcomes, notes=(*run.notes, note))

    async def _run_with_guards(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the test command without the tests that only guard a change and failed before."""
        assert self.command is not None
        guard_run = self.guard_run
        if guard_run is not None and dict(files) == dict(self.task.files):
            run = guard_run
        else:
            run = await self._run_own_tests(self.command, files)
        if guard_run is None:
            return run
        passing = {outcome.check_id for outcome in guard_run.outcomes if outcome.passed}
        failing = tuple(
            outcome.check_id for outcome in guard_run.outcomes if outcome.status not in ("passed", "skipped")
        )
        known = {outcome.check_id for outcome in guard_run.outcomes}
        outcomes = tuple(o for o in run.outcomes if o.check_id in passing or o.check_id not in known)
        notes = (VerdictNote(code="guard_tests_failing", subjects=failing),) if failing else ()
        return replace(run, outcomes=outcomes, notes=(*run.notes, *notes))

    async def _run_own_tests(self, command: TestCommand, files: Mapping[str, bytes]) -> CommandRun:
        """Run the user's own tests on a project, and again with those in which a tool changed layout or imports.

        The first run decides: while tests run, nothing of them may differ from the user's. A test that passes there and
        not after the change has failed.
        """
        reported = self.diagnostics.reported_files if self.diagnostics is not None else ()
        tidied = {
            path: self.task.files[path]
            for path in reported
            if path in files and files[path] != self.task.files[path] and self._decides(path)
        }
        run = await command.run({**files, **tidied})
        if not tidied:
            return run
        changed = command.copy_with_files(files)
        try:
            await changed.collect(run=True)
            passing = {outcome.check_id for outcome in (await changed.run(files)).outcomes if outcome.passed}
        except UsageError:
            passing = set()
        outcomes = tuple(
            replace(outcome, status="failed")
            if outcome.passed and outcome.check_id not in passing
            else outcome
            for outcome in run.outcomes
        )
        return replace(run, outcomes=outcomes)

    def _decides(self, path: str) -> bool:
        return path in self.test_files or is_protected(path, self.task.protected or DEFAULT_PROTECTED)

    @property
    def module_lookup(self) -> ModuleLookup:
        """What imports of the test command find in the project and outside of it, before any candidate."""
        task, command = self.task, self.command
        if command is None:  # no other program loads modules of the project next to what decides
            return ModuleLookup(files=task.files, modules=list_importable_modules(None))
        interpreter = command.interpreter
        return ModuleLookup(
            files=task.files,
            command=task.test_command,
            test_files=self.test_files,
            runner=find_runner(task.test_command, task.files, task.language),
            source_roots=interpreter.source_roots,
            search_path=command.search_path,
            loaded=command.loaded_modules,
            modules=list_importable_modules(interpreter, command.search_path),
            packages=list_node_packages(interpreter.toolchain),
        )

    def restrict(self, only: Collection[str]) -> Suite:
        """Return the suite with its test command restricted to some test functions and test files."""
        assert self.command is not None
        return replace(self, command=self.command.restrict(only))

    async def install_packages(self, files: Mapping[str, bytes]) -> tuple[Suite, dict[str, bytes]]:
        """Install the packages that a project's files ask for.

        Returns:
            (suite, files): the suite with an interpreter that sees the packages, and the files with a lock file.

        Raises:
            PackagesRefused: The packages cannot be installed.
            PrerequisiteError: The package index cannot be reached, or its client is missing.
        """
        interpreter = self.interpreter
        if self.packages is None or interpreter is None:
            return self, dict(files)
        installed = await self.packages.install_for(files, interpreter)
        if installed is None:
            return self, dict(files)
        interpreter = with_packages_shown(installed, interpreter)
        command = self.command.copy_with_interpreter(interpreter) if self.command is not None else None
        smoke = replace(self.smoke, interpreter=interpreter) if self.smoke is not None else None
        return replace(self, command=command, smoke=smoke), overlay_candidate(files, installed.files)


async def prepare_suite(
    task: Task,
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None = None,
    *,
    run: bool = False,
    packages: NewProjectPackages | AddedPackages | None = None,
    recorded: BaseRunRecord | None = None,
    records_reach: bool = False,
    only: Collection[str] = (),
) -> Suite:
    """Prepare a task's checks. The tests of its command are collected before any candidate exists.

    Args:
        task: The task.
        sandbox: Runs programs.
        settings: The sandbox limits.
        interpreter: The interpreter that `python` in the test command stands for; needed only to start the
            project.
        run: Whether to run the command now, because its verdict on the task's own files will be needed.
        packages: Installs packages for candidates; those of the task's own files are installed now.
        recorded: Where the results of runs on the task's own files are kept, if they may be used again.
        records_reach: Whether to record which functions each test runs.
        only: Ids of test functions, and test files, to which the command is restricted; empty for all.

    Raises:
        PrerequisiteError: Packages are needed and their index cannot be reached.
        ValueError: The task holds a check of provenance `oracle`, which must not be part of a run.
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The sandbox failed, or no sandbox is available on this machine.
    """
    if any(check.provenance == "oracle" for check in task.checks):
        raise ValueError("a run received an oracle check; only the evaluator may hold one")
    if packages is not None and interpreter is not None:
        installed = await packages.install_for(task.files, interpreter)
        interpreter = with_packages_shown(installed, interpreter) if installed is not None else interpreter
    has_smoke_checks = task.project is not None and task.project.kind is not None
    has_calls = bool(task.checks) and LANGUAGES[task.language].calls is not None
    command = None
    smoke = None
    calls = None
    diagnostics = None
    guard_run = None
    if task.test_command or task.tools or has_smoke_checks or has_calls:
        if interpreter is None:
            raise ValueError("a test command, a project and calls in another language need an interpreter")
        if (task.test_command or task.tools) and interpreter.toolchain is not None:
            interpreter = await add_go_build_cache(interpreter, task.files, sandbox, settings)
        if task.tools:
            diagnostics = await DiagnosticsRunner.prepare(task, sandbox, settings, interpreter)
        if task.test_command:
            command = TestCommand(
                task,
                sandbox,
                settings,
                interpreter,
                recorded=recorded,
                records_reach=records_reach,
                only=only,
            )
            if task.tests_only_guard:
                command, guard_run = await _run_guard(command)
            else:
                await command.collect(run=run)
        if has_smoke_checks:
            smoke = SmokeChecks(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
        if has_calls:
            calls = CallRunner(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
    python_sources = [decode_text(content) for path, content in task.files.items() if path.endswith(".py")]
    return Suite(
        task=task,
        sandbox=sandbox,
        settings=settings,
        command=command,
        functions=find_stated_functions(task.statement),
        classes=find_stated_classes(task.statement, *python_sources),
        test_files=command.test_files if command else (),
        smoke=smoke,
        calls=calls,
        packages=packages,
        diagnostics=diagnostics,
        guard_run=guard_run,
    )


async def _run_guard(command: TestCommand) -> tuple[TestCommand | None, CommandRun | None]:
    """Return a command that only guards a change, with its run on the task's own files; `None` if it does not start."""
    try:
        await command.collect(run=True)
        return command, await command.run(command.task_files)
    except UsageError:
        return None, None
