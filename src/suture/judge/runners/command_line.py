"""How a test command is put to the wall, whatever runs its tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import NoReturn

from suture.core.records import CheckOutcome, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.failures import render_run_ending, get_last_line
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import LANGUAGES, Interpreter, program_environment, resolve_command
from suture.sandbox import BOX, RunRequest, RunResult, interpreter_mounts

LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml")
"""Files that name every package by its path, whatever the project does with it."""
BESIDE = 'mkdir -p "$0" && ln -s "/$0"/* "$0"; [ -e "/$0/.bin" ] && ln -s "/$0/.bin" "$0"; exec "$@"'
"""For a shell: starts a command with links to the packages in the project's folder; `$0` is theirs."""


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """What one run of the test command said, and the wall-clock seconds that it took."""

    outcomes: tuple[CheckOutcome, ...]
    output: str
    notes: tuple[str, ...] = ()
    wall_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A task's test command, and all that a run of it needs but the files.

    Attributes:
        task: A task with a test command.
        settings: The wall's limits.
        interpreter: What `python` means in the command.
    """

    task: Task
    settings: SandboxSettings
    interpreter: Interpreter

    @property
    def shown(self) -> str:
        """The command, for people."""
        return " ".join(self.task.test_command)

    def environment(self) -> dict[str, str]:
        """The variables that its processes see."""
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
    ) -> RunRequest:
        """One run of the command.

        Args:
            files: A project: path -> content.
            environment: The variables; `environment()` where left out.
            stdin: What it reads.
            wall_s: The most seconds; the settings' `test_wall_s` where left out.
            preload: Python that a warm interpreter has run before.
            collect: Paths of files that are brought back.
        """
        return RunRequest(
            argv=resolve_command(self.task.test_command, self.interpreter),
            files=files,
            preload=preload,
            stdin=stdin,
            env=self.environment() if environment is None else environment,
            mounts=interpreter_mounts(self.interpreter),
            limits=make_test_limits(self.settings, wall_s or self.settings.test_wall_s, self.task.language),
            collect=collect,
        )

    def launched(self, request: RunRequest) -> RunRequest:
        """A run with the project's packages in its folder too, where the project names them by such a path.

        They lie at the root of the wall, where programs look last: a script such as
        `node node_modules/jest/bin/jest.js`, or a setting, says where they lie.
        """
        if not self._names_packages:
            return request
        return replace(request, argv=("/bin/sh", "-c", BESIDE, self._packages, *request.argv))

    @property
    def _packages(self) -> str:
        return LANGUAGES[self.task.language].packages

    @cached_property
    def _names_packages(self) -> bool:
        """Whether the command, or a file at the project's root, names a path in its packages' folder."""
        toolchain = self.interpreter.toolchain
        if not self._packages or toolchain is None or f"/{self._packages}" not in toolchain.shown.values():
            return False
        inside = re.compile(
            rb"%b/[@.\w]" % self._packages.encode()
        )  # and no pattern, such as `node_modules/**`
        root = (text for path, text in self.task.files.items() if "/" not in path and path not in LOCKS)
        return any(inside.search(text) for text in (self.shown.encode(), *root))

    def refuse_start(self, result: RunResult) -> NoReturn:
        """Raise: the command cannot start.

        Raises:
            UsageError: Always; it quotes what the command said.
        """
        said = get_last_line(result) or render_run_ending(result)
        toolchain = self.interpreter.toolchain
        program = toolchain.program if toolchain else self.interpreter.executable
        raise UsageError(
            f"the test command {self.shown!r} cannot start: {said[:300]}",
            remedy=f"run it yourself in the project first; `{PurePosixPath(program).name}` means {program}",
        )
