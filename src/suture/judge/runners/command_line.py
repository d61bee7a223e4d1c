"""Building the sandbox request that runs a task's test command, whatever test runner it uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import PurePosixPath
from posixpath import basename, dirname, join, normpath, relpath
from typing import NoReturn

from suture.core.records import CheckOutcome, Task, VerdictNote
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.failures import get_error_line, render_run_ending
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import (
    LANGUAGES,
    Interpreter,
    find_working_folder,
    program_environment,
    resolve_command,
)
from suture.project.languages.package_scripts import find_workspace_packages
from suture.sandbox import BOX, RunRequest, RunResult, mounts_for_interpreter

LOCK_FILES = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml")
"""Lock files name every package by its path, whether or not the project itself uses such paths."""
LINK_PACKAGES = 'mkdir -p "$0" && ln -s "/$0"/* "$0"; [ -e "/$0/.bin" ] && ln -s "/$0/.bin" "$0"; exec "$@"'
"""A shell script that links the installed packages into the project's folder and then runs a command.

`$0` is the packages' folder name; `$@` is the command.
"""

LINK_FOLDERS = (
    'while [ "$1" != -- ]; do mkdir -p "$(dirname "$1")"; ln -s "$2" "$1"; shift 2; done; shift; exec "$@"'
)
"""A shell script that makes the project's own links and then runs a command.

Its arguments are a path and a target for each link, `--`, and the command.
"""


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """The result of one run of the test command.

    Attributes:
        outcomes: The outcomes of its tests, or one outcome of the whole command.
        output: What it printed, as a verdict keeps it.
        notes: What limits the evidence of the run.
    """

    outcomes: tuple[CheckOutcome, ...]
    output: str
    notes: tuple[VerdictNote, ...] = ()
    wall_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A task's test command with everything that a run needs except the files.

    Attributes:
        interpreter: The interpreter that `python` in the command stands for.
    """

    task: Task
    settings: SandboxSettings
    interpreter: Interpreter

    @property
    def shown(self) -> str:
        """The command as one line of text."""
        return " ".join(self.task.test_command)

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the command's processes."""
        return {**program_environment(self.interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1"}

    def request(
        self,
        files: Mapping[str, bytes],
        environment: Mapping[str, str] | None = None,
        *,
        stdin: bytes = b"",
        wall_s: float | None = None,
        preload: str = "",
        collect: tuple[str, ...] = (),
        watched: Collection[str] = (),
    ) -> RunRequest:
        """Return the sandbox request of one run of the command.

        Args:
            environment: The environment variables; `environment()` by default.
            wall_s: The time limit in seconds; the setting `test_timeout_s` by default.
            preload: Python code that a warm interpreter has already executed.
            collect: Paths of the files to bring back from the sandbox.
            watched: Paths whose changes the result names; those that are not files of the request are left out.
        """
        argv = resolve_command(self.task.test_command, self.interpreter)
        return RunRequest(
            argv=self._link_folders(argv) if LANGUAGES[self.task.language].parsed else argv,
            files=files,
            preload=preload,
            stdin=stdin,
            env=self.environment() if environment is None else environment,
            mounts=mounts_for_interpreter(self.interpreter),
            limits=make_test_limits(
                self.settings, wall_s or self.settings.test_timeout_s, self.task.language
            ),
            collect=collect,
            watched=tuple(sorted(files.keys() & {*watched})),
        )

    def link_packages(self, request: RunRequest) -> RunRequest:
        """Return the request with the project's links, and with the installed packages in its folder if it needs them.

        The packages are mounted at the root of the sandbox, which is the last place where programs look. A
        script such as `node node_modules/jest/bin/jest.js`, or a setting, may name a path in the project.
        """
        if not LANGUAGES[self.task.language].parsed:
            request = replace(request, argv=self._link_folders(request.argv))
        if not self._needs_links:
            return request
        return replace(request, argv=("/bin/sh", "-c", LINK_PACKAGES, self._packages, *request.argv))

    def _link_folders(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return a command that first makes the links to folders of the project."""
        links = {**self._workspace_links, **self.task.links}
        if not links:
            return tuple(argv)
        pairs = [(path, relpath(target, dirname(path) or ".")) for path, target in links.items()]
        return ("/bin/sh", "-c", LINK_FOLDERS, "sh", *chain.from_iterable(pairs), "--", *argv)

    @cached_property
    def _workspace_links(self) -> dict[str, str]:
        """Path in the packages' folder -> folder of the workspace's package with that name, as installing links them.

        What the user has installed is mounted elsewhere, where such links lead nowhere.
        """
        if self._packages != "node_modules":
            return {}
        packages = find_workspace_packages(self.task.files)
        return {f"{self._packages}/{name}": folder for name, folder in packages.items()}

    @property
    def _packages(self) -> str:
        """The name of the folder with the installed packages, such as `node_modules`."""
        return LANGUAGES[self.task.language].packages

    @cached_property
    def _needs_links(self) -> bool:
        """Whether the command, or a file at the project's root, names a path in the packages' folder."""
        toolchain = self.interpreter.toolchain
        if not self._packages or toolchain is None or f"/{self._packages}" not in toolchain.shown.values():
            return False
        # A glob pattern such as `node_modules/**` is not a path to a package.
        package_path = re.compile(rb"%b/[@.\w]" % self._packages.encode())
        root_files = (
            content for path, content in self.task.files.items() if "/" not in path and path not in LOCK_FILES
        )
        return any(package_path.search(text) for text in (self.shown.encode(), *root_files))

    def refuse_start(self, result: RunResult) -> NoReturn:
        """Raise the usage error for a command that cannot start.

        Raises:
            UsageError: Always; the message quotes what the command printed.
        """
        reason = get_error_line(result) or render_run_ending(result)
        toolchain = self.interpreter.toolchain
        program = toolchain.program if toolchain else self.interpreter.executable
        missing = re.search(r"No module named '?(\w+)'?$", reason)
        if missing and ("-m", missing[1]) in pairwise(self.task.test_command):
            remedy = f"install it there: {program} -m pip install {missing[1]}"
        else:
            remedy = f"run it yourself in the project first; `{PurePosixPath(program).name}` means {program}"
        raise UsageError(f"the test command {self.shown!r} cannot start: {reason[:300]}", remedy=remedy)

    def refuse_empty_collection(self) -> NoReturn:
        """Raise the usage error for a command that collects no tests.

        Raises:
            UsageError: Always; it names a path of the command that the project does not have.
        """
        if missing := self._find_missing_paths():
            raise UsageError(
                f"{self.shown!r} names {missing[0]!r}, which is not among the project's files",
                remedy="name a file or folder that exists; files that git ignores are not read",
            )
        raise UsageError(
            f"{self.shown!r} collects no tests",
            remedy="write a function `test_...` in a file `test_*.py`, or name its file in the command",
        )

    def _find_missing_paths(self) -> list[str]:
        """Return the files and folders that the command names and the project does not have."""
        argv = self.task.test_command
        folder = find_working_folder(argv)
        runner = (n for n, word in enumerate(argv) if basename(word) in ("pytest", "py.test"))
        missing = []
        for before, word in pairwise(argv[next(runner, 0) :]):
            path = word.partition("::")[0]
            # A folder after an option may be the option's value, such as that of a report.
            if word.startswith("-") or not (
                path.endswith(".py") or ("/" in path and not before.startswith("-"))
            ):
                continue
            name = normpath(join(folder, path))
            if not any(known == name or known.startswith(f"{name}/") for known in self.task.files):
                missing.append(path)
        return missing
