"""A task's checks as one suite: what every candidate of a task must pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import promised_classes, promised_functions
from suture.judge.runners.go_build_cache import with_library
from suture.judge.runners.test_command import TestCommand
from suture.judge.runners.test_dependencies import libraries_of
from suture.judge.smoke.smoke_checks import Smoke
from suture.judge.split.call_runner import Calls
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.workspace import overlay, text_of
from suture.sandbox import Sandbox
from suture.sandbox.packages import AddedPackages, Packages, showing


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What every candidate of a task must pass.

    Attributes:
        task: The task.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        command: The task's test command, where it has one; its tests are known.
        functions: Names that the statement shows to be functions.
        classes: Names that the statement or the task's own code shows to be classes.
        test_files: The project's files that hold the command's tests, whatever they are called.
        libraries: What these import of the environment.
        vet: Says of a candidate that must not be run what its verdict is; `None` for all others.
        smoke: Starts the project that the task asks for, where it asks for one.
        calls: Judges the checks where they are calls in another language than Python.
        packages: Installs what a candidate asks for, where it may ask.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    command: TestCommand | None = None
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    test_files: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()
    vet: Callable[[Candidate], Verdict | None] | None = None
    smoke: Smoke | None = None
    calls: Calls | None = None
    packages: Packages | AddedPackages | None = None

    @property
    def interpreter(self) -> Interpreter | None:
        """What the project runs on; `None` where nothing of it is started."""
        started = self.smoke or self.command
        return started.interpreter if started is not None else None

    async def with_packages(self, files: Mapping[str, bytes]) -> tuple[Suite, dict[str, bytes]]:
        """The same, started with the packages that a project's files ask for; and the files, with their lock.

        Raises:
            PackagesRefused: They cannot be had.
            PrerequisiteError: The index cannot be reached, or its client is not there.
        """
        interpreter = self.interpreter
        if self.packages is None or interpreter is None:
            return self, dict(files)
        installed = await self.packages.for_files(files, interpreter)
        if installed is None:
            return self, dict(files)
        interpreter = showing(installed, interpreter)
        command = self.command.copy_with_interpreter(interpreter) if self.command is not None else None
        smoke = replace(self.smoke, interpreter=interpreter) if self.smoke is not None else None
        return replace(self, command=command, smoke=smoke), overlay(files, installed.files)


async def prepare_suite(
    task: Task,
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None = None,
    *,
    run: bool = False,
    packages: Packages | AddedPackages | None = None,
) -> Suite:
    """Make a task's checks ready; the tests of its command are collected before any candidate is there.

    Args:
        task: What is wanted.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        interpreter: What `python` means in the task's test command; not needed where there is none.
        run: Whether the command is run at once, as its verdict on the task's own files will be asked for.
        packages: Installs what candidates ask for; what the task's own files need, at once.

    Raises:
        PrerequisiteError: Packages are needed, and their index cannot be reached.
        ValueError: The task holds a check of provenance `oracle`, which has no place inside a run.
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The wall failed, or none can be built here.
    """
    if any(check.provenance == "oracle" for check in task.checks):
        raise ValueError("an oracle check was handed to a run; only the evaluator may hold one")
    if packages is not None and interpreter is not None:
        installed = await packages.for_files(task.files, interpreter)
        interpreter = showing(installed, interpreter) if installed is not None else interpreter
    command = None
    if task.test_command:
        if interpreter is None:
            raise ValueError("a task with a test command needs an interpreter")
        if interpreter.toolchain is not None:
            interpreter = await with_library(interpreter, task.files, sandbox, settings)
        command = TestCommand(task, sandbox, settings, interpreter)
        await command.collect(run=run)
    smoke = None
    if task.project is not None and task.project.kind is not None:
        if interpreter is None:
            raise ValueError("a task with a project needs an interpreter")
        smoke = Smoke(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
    calls = None
    if task.checks and LANGUAGES[task.language].calls is not None:
        if interpreter is None:
            raise ValueError("a task with calls in another language needs an interpreter")
        calls = Calls(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
    return Suite(
        task=task,
        sandbox=sandbox,
        settings=settings,
        command=command,
        functions=promised_functions(task.statement),
        classes=promised_classes(task.statement, *_own_sources(task)),
        test_files=command.test_files if command else (),
        libraries=libraries_of(task.files, command.test_files, command.interpreter)
        if command
        else frozenset(),
        smoke=smoke,
        calls=calls,
        packages=packages,
    )


def _own_sources(task: Task) -> list[str]:
    return [text_of(content) for path, content in task.files.items() if path.endswith(".py")]
