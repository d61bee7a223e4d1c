"""Pytest behind the wall, with a plugin of ours in it that reports what it does."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from functools import cache
from importlib import resources
from itertools import chain, pairwise

from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.compiled import COMPILED, Compiled, compiled_from, sources_of
from suture.judge.runners.pytest_report import PytestReport, read_report
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.sandbox import BOX, Channel, RunResult, Sandbox

PLUGIN = "suture_report"
"""The module that reports what pytest does."""
REPORT = f"{PRIVATE_FOLDER}/report"
KEPT = f"{PRIVATE_FOLDER}/{COMPILED}"
PRELOAD = """
import os, sys
import pytest
sys.stdout = open(os.devnull, "w")
try:
    alone = "-q -s -p no:cacheprovider --rootdir=/etc -c /dev/null --collect-only /etc/hosts"
    pytest.main([*alone.split(), *OFF])
finally:
    sys.stdout = sys.__stdout__
"""
"""Import pytest and its plugins the way pytest itself does; nothing is collected. `OFF`: see `preload`."""
MISUSED = 4
"""Pytest's exit code where it refuses its options."""


def preload(command: Sequence[str], unwanted: str = "") -> str:
    """Python that imports pytest and its plugins, but those that a run of the command would not load.

    Of what a warm interpreter costs, plugins that nobody uses are often the most.

    Args:
        command: A pytest command; its `-p no:NAME` are heeded.
        unwanted: More of these options.
    """
    pairs = [pair for pair in pairwise(command) if pair[0] == "-p" and pair[1].startswith("no:")]
    off = [*chain.from_iterable(pairs), *unwanted.split()]
    return f"OFF = {off!r}\n{PRELOAD}"


class PytestRuns:
    """Runs of a pytest command, and what the first of them compiled.

    Args:
        line: The command.
        sandbox: The wall.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox) -> None:
        self._line = line
        self._sandbox = sandbox
        self._compiled = Compiled()

    def of(self, line: CommandLine) -> PytestRuns:
        """The same with other limits, or by another interpreter; what was compiled is known."""
        other = copy(self)
        other._line = line
        return other

    def dated(self) -> list[str]:
        """The files that must be as old as in the first run, for what they were compiled to be believed."""
        return self._compiled.dated(drop_private_files(self._line.task.files))

    def compile_anew(self, tests: Collection[str]) -> None:
        """Forget what some files were compiled to."""
        self._compiled = self._compiled.without(tests)

    async def run(
        self,
        files: Mapping[str, bytes],
        *,
        options: str = "",
        only: Collection[str] = (),
        apart: Collection[str] = (),
        compile_for_later: bool = False,
        wall_s: float | None = None,
    ) -> tuple[RunResult, PytestReport]:
        """One run, and its report.

        Args:
            files: A project.
            options: For pytest.
            only: Ids of the tests to run; all where there are none.
            apart: Ids of those that run apart too.
            compile_for_later: Whether what is compiled meanwhile is kept; the files are the task's own.
            wall_s: The most seconds; the settings' `test_wall_s` where it is left out.

        Raises:
            SandboxError: The wall failed.
        """
        key = secrets.token_bytes(32)
        own = drop_private_files(files)
        given = {
            **{"report": f"{BOX}/{REPORT}", "key": key.hex(), "only": sorted(only)},
            **{"apart": sorted(apart), "root": BOX, "compiled": f"{BOX}/{KEPT}" if compile_for_later else ""},
            "sources": sources_of(own) if compile_for_later else self._compiled.dated(own),
            "wall_s": wall_s or self._line.settings.test_wall_s,
        }
        result = await self._sandbox.run(
            self._line.request(
                {**own, **self._compiled.beside(own), **_plugin()},
                self._environment(f"{PLUGIN}.plugin", options),
                stdin=json.dumps(given).encode("ascii"),
                wall_s=wall_s,
                preload=self._preload(),
                collect=(REPORT, KEPT),
            )
        )
        if compile_for_later:
            self._compiled = compiled_from(result.files.get(KEPT, b""), own)
        return result, read_report(result.files.get(REPORT, b""), key)

    def open_with(
        self, plugin: str, own: Mapping[str, bytes], *, wall_s: float
    ) -> AbstractAsyncContextManager[Channel]:
        """Start pytest on the task's own files with another plugin; see `TestCommand.open_with`."""
        files = drop_private_files(self._line.task.files)
        beside = {f"{PRIVATE_FOLDER}/{name}": text for name, text in own.items()}
        return self._sandbox.open(
            self._line.request(
                {**files, **self._compiled.beside(files), **beside},
                self._environment(plugin),
                wall_s=wall_s,
                preload=self._preload(),
            )
        )

    def _environment(self, plugin: str, options: str = "") -> dict[str, str]:
        environment = self._line.environment()
        paths = (environment.get("PYTHONPATH"), f"{BOX}/{PRIVATE_FOLDER}")
        added = f"-p {plugin} -p no:cacheprovider {self._unwanted()} {options}"
        return {
            **environment,
            "PYTHONPATH": ":".join(path for path in paths if path),
            "PYTEST_ADDOPTS": added.strip(),
        }

    def _preload(self) -> str:
        return preload(self._line.task.test_command, self._unwanted())

    def _unwanted(self) -> str:
        """A plugin in Suture's own environment that costs seconds, and that no project asked for."""
        return "-p no:langsmith_plugin" if self._line.interpreter.prefix == sys.prefix else ""


def is_misused(result: RunResult, report: PytestReport) -> bool:
    """Whether pytest refused its options, or never came to an end; code that breaks it is no misuse."""
    if report.exit_code is not None or report.items or report.uncollectable:
        return False
    refused = result.exit_code == MISUSED and b"while loading conftest" not in result.stdout + result.stderr
    return refused or result.status == "timeout"


@cache
def _plugin() -> dict[str, bytes]:
    """The package of the reporting plugin, where it is looked for behind the wall."""
    folder = resources.files("suture.judge.runners").joinpath("report_plugin")
    files = [file for file in folder.iterdir() if file.name.endswith(".py")]
    return {f"{PRIVATE_FOLDER}/{PLUGIN}/{file.name}": file.read_bytes() for file in files}
