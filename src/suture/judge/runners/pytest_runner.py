"""Running pytest in the sandbox with a plugin that reports what each test does."""

from __future__ import annotations

import json
import posixpath
import secrets
import sys
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import chain, pairwise

from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.pytest_report import PytestReport, read_report
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.sandbox import BOX, Channel, RunResult, Sandbox

PLUGIN = "suture_report"
"""The package name of the reporting plugin inside the sandbox."""
REPORT = f"{PRIVATE_FOLDER}/report"
BYTECODE_FILE = "compiled"
"""The file in Suture's own folder that brings the bytecode back."""
BYTECODE = f"{PRIVATE_FOLDER}/{BYTECODE_FILE}"
CACHE_FOLDER = "__pycache__"
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
"""Imports pytest and its plugins as pytest itself does, and collects nothing; `OFF` is set by `preload`."""
USAGE_ERROR_CODE = 4
"""The exit code of pytest when it refuses its options."""


def preload(command: Sequence[str], unwanted: str = "") -> str:
    """Return Python code that imports pytest and the plugins that a run of the command loads.

    Plugins that the command turns off are skipped: they often take most of a warm interpreter's start-up
    time.

    Args:
        command: A pytest command; its `-p no:NAME` options are honoured.
        unwanted: Further options of that kind.
    """
    pairs = [pair for pair in pairwise(command) if pair[0] == "-p" and pair[1].startswith("no:")]
    off = [*chain.from_iterable(pairs), *unwanted.split()]
    return f"OFF = {off!r}\n{PRELOAD}"


class PytestRunner:
    """Runs a pytest command, and keeps the bytecode that its first run compiled.

    Args:
        line: The test command.
        sandbox: Runs the command.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox) -> None:
        self._line = line
        self._sandbox = sandbox
        self._compiled = CompiledFiles()

    def copy_with_line(self, line: CommandLine) -> PytestRunner:
        """Return the same runner for another command line; the bytecode stays known."""
        other = copy(self)
        other._line = line
        return other

    def dated(self) -> list[str]:
        """Return the task's files that need their original time stamp for their bytecode to be used."""
        return self._compiled.dated(drop_private_files(self._line.task.files))

    def forget_bytecode(self, tests: Collection[str]) -> None:
        """Drop the bytecode of some files, so that later runs compile them again."""
        self._compiled = self._compiled.without(tests)

    async def run(
        self,
        files: Mapping[str, bytes],
        *,
        options: str = "",
        only: Collection[str] = (),
        isolated: Collection[str] = (),
        compile_for_later: bool = False,
        wall_s: float | None = None,
    ) -> tuple[RunResult, PytestReport]:
        """Run pytest once, and return how it ended and its report.

        Args:
            files: The project's files.
            options: Additional options for pytest.
            only: Ids of the tests to run; empty for all.
            isolated: Ids of the tests that also run in a process of their own.
            compile_for_later: Whether to keep the bytecode of this run; the files must be the task's own.
            wall_s: The time limit in seconds; the setting `test_timeout_s` by default.

        Raises:
            SandboxError: The sandbox failed.
        """
        key = secrets.token_bytes(32)
        own = drop_private_files(files)
        parameters = {
            "report": f"{BOX}/{REPORT}",
            "key": key.hex(),
            "only": sorted(only),
            "isolated": sorted(isolated),
            "root": BOX,
            "compiled": f"{BOX}/{BYTECODE}" if compile_for_later else "",
            "sources": list_python_files(own) if compile_for_later else self._compiled.dated(own),
            "wall_s": wall_s or self._line.settings.test_timeout_s,
        }
        result = await self._sandbox.run(
            self._line.request(
                {**own, **self._compiled.beside(own), **_plugin()},
                self._environment(f"{PLUGIN}.plugin", options),
                stdin=json.dumps(parameters).encode("ascii"),
                wall_s=wall_s,
                preload=self._preload(),
                collect=(REPORT, BYTECODE),
            )
        )
        if compile_for_later:
            self._compiled = read_compiled_files(result.files.get(BYTECODE, b""), own)
        return result, read_report(result.files.get(REPORT, b""), key)

    def open_with(
        self, plugin: str, own: Mapping[str, bytes], *, wall_s: float
    ) -> AbstractAsyncContextManager[Channel]:
        """Start pytest on the task's own files with another plugin; see `TestCommand.open_with_plugin`."""
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
        """Return the option that turns off a plugin of Suture's own environment.

        The plugin takes seconds to load, and no project asked for it.
        """
        return "-p no:langsmith_plugin" if self._line.interpreter.prefix == sys.prefix else ""


def is_misused(result: RunResult, report: PytestReport) -> bool:
    """Whether pytest refused its options or never ended; code that breaks pytest does not count."""
    if report.exit_code is not None or report.items or report.uncollectable:
        return False
    refused = (
        result.exit_code == USAGE_ERROR_CODE
        and b"while loading conftest" not in result.stdout + result.stderr
    )
    return refused or result.status == "timeout"


@cache
def _plugin() -> dict[str, bytes]:
    """Return the files of the reporting plugin at their paths inside the sandbox."""
    folder = resources.files("suture.judge.runners").joinpath("report_plugin")
    files = [file for file in folder.iterdir() if file.name.endswith(".py")]
    return {f"{PRIVATE_FOLDER}/{PLUGIN}/{file.name}": file.read_bytes() for file in files}


@dataclass(frozen=True, kw_only=True)
class CompiledFiles:
    """Bytecode of a project's files.

    Attributes:
        by_source: Path of a source file -> path of its bytecode -> content.
        sources: The source files as they were when they were compiled.
    """

    by_source: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def beside(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the bytecode of sources that are unchanged; files of the project are never replaced."""
        same = [path for path in self.by_source if files.get(path) == self.sources[path]]
        bytecode = {path: content for source in same for path, content in self.by_source[source].items()}
        return {path: content for path, content in bytecode.items() if path not in files}

    def dated(self, files: Mapping[str, bytes]) -> list[str]:
        """Return the sources whose time stamp must stay the same for Python to accept their bytecode."""
        return [path for path in self.by_source if files.get(path) == self.sources[path]]

    def without(self, paths: Container[str]) -> CompiledFiles:
        """Return the bytecode without that of some sources."""
        kept = {path: bytecode for path, bytecode in self.by_source.items() if path not in paths}
        return CompiledFiles(by_source=kept, sources={path: self.sources[path] for path in kept})


def list_python_files(files: Mapping[str, bytes]) -> list[str]:
    """Return the paths of a project's Python files."""
    return [path for path in files if path.endswith(".py")]


def read_compiled_files(content: bytes, files: Mapping[str, bytes]) -> CompiledFiles:
    """Return the bytecode that a run on the project's own files brought back; empty if it is malformed.

    Args:
        content: A line of JSON with `[source, name, size]` for each file, followed by their contents.
        files: The project's files.
    """
    head, _, rest = content.partition(b"\n")
    try:
        index = json.loads(head)
    except (ValueError, RecursionError):
        return CompiledFiles()
    found: dict[str, dict[str, bytes]] = {}
    at = 0
    for entry in index if isinstance(index, list) else ():
        if not (isinstance(entry, list) and tuple(map(type, entry)) == (str, str, int)):
            return CompiledFiles()
        source, name, size = entry
        stem = posixpath.basename(source).removesuffix("py")
        proper = name.startswith(stem) and name.endswith(".pyc") and "/" not in name
        if source not in files or not source.endswith(".py") or not proper or not 0 <= size <= len(rest) - at:
            return CompiledFiles()
        place = posixpath.join(posixpath.dirname(source), CACHE_FOLDER, name)
        found.setdefault(source, {})[place] = rest[at : at + size]
        at += size
    return CompiledFiles(by_source=found, sources={path: files[path] for path in found})
