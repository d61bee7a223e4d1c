"""Running pytest in the sandbox with a plugin that reports what each test does.

The first run of a task compiles the project's Python files. Their bytecode is kept and placed next to the files of
later runs, which would otherwise compile them again.
"""

from __future__ import annotations

import json
import marshal
import posixpath
import secrets
import sys
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.util import MAGIC_NUMBER, source_hash
from itertools import chain, pairwise
from typing import Any

from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.pytest_report import PytestReport, list_failed_asserts, read_report
from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.judge.runners.test_imports import find_test_imports, select_libraries
from suture.judge.runners.unchanged_definitions import find_unchanged_definitions
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.project.languages.python import DJANGO_PLUGIN
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, is_test_file
from suture.sandbox import BOX, Channel, RunRequest, RunResult, Sandbox

PLUGIN = "suture_report"
"""The package name of the reporting plugin inside the sandbox."""
REPORT_PATH = f"{PRIVATE_FOLDER}/report"
REACH_PATH = f"{PRIVATE_FOLDER}/reach"
BYTECODE_FILE = "compiled"
"""The file in Suture's own folder in which the bytecode is collected."""
BYTECODE_PATH = f"{PRIVATE_FOLDER}/{BYTECODE_FILE}"
CACHE_FOLDER = "__pycache__"
UNCHECKED_FLAGS = 1
"""The flags of bytecode that Python does not compare with its source (PEP 552)."""
PRELOAD_CODE = """
import os, sys
import pytest
sys.stdout = open(os.devnull, "w")
try:
    options = "-q -s -p no:cacheprovider --rootdir=/etc -c /dev/null --collect-only /etc/hosts"
    pytest.main([*options.split(), *DISABLED_PLUGINS])
finally:
    sys.stdout = sys.__stdout__
"""
"""Imports pytest and its plugins as pytest itself does, and collects nothing.

The options keep it away from every project: `/dev/null` is an empty configuration, and `/etc/hosts` a file that
exists and holds no test. `preload` sets `DISABLED_PLUGINS` before it.
"""
OTHER_PLUGINS = frozenset({"conditions.py", "django_plugin.py"})
"""Files next to the reporting plugin that only some runs get: importing them changes the process."""
USAGE_ERROR_CODE = 4
"""The exit code of pytest when it refuses its options."""


def preload(command: Sequence[str], disabled: str = "") -> str:
    """Return Python code that imports pytest and the plugins that a run of the command loads.

    Plugins that the command turns off are skipped: they often take most of a warm interpreter's start-up
    time.

    Args:
        command: A pytest command; its `-p no:NAME` options are honoured.
        disabled: Further options of that kind.
    """
    pairs = [pair for pair in pairwise(command) if pair[0] == "-p" and pair[1].startswith("no:")]
    options = [*chain.from_iterable(pairs), *disabled.split()]
    return f"DISABLED_PLUGINS = {options!r}\n{PRELOAD_CODE}"


@dataclass(frozen=True, kw_only=True)
class RunAddition:
    """What a run of pytest has besides the reporting plugin.

    Attributes:
        options: Further options of pytest.
        files: Name -> content of files in Suture's own folder.
        variables: Environment variables.
        output: Name of a file in that folder that is collected; empty for none.
    """

    options: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    output: str = ""

    @property
    def private_files(self) -> dict[str, bytes]:
        """The files by their paths in the sandbox."""
        return {f"{PRIVATE_FOLDER}/{name}": content for name, content in self.files.items()}

    @property
    def collect(self) -> tuple[str, ...]:
        """The path in the sandbox of the file that is collected."""
        return (f"{PRIVATE_FOLDER}/{self.output}",) if self.output else ()


class PytestRunner:
    """Runs a pytest command, and keeps the bytecode that its first run compiled.

    Python accepts bytecode only if its source has the time stamp that the bytecode records. So the plugin gives
    one fixed time stamp to the sources that are compiled, and in later runs to those that are unchanged.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox) -> None:
        self._line = line
        self._sandbox = sandbox
        self._bytecode = CompiledFiles()

    def copy_with_line(self, line: CommandLine) -> PytestRunner:
        """Return the same runner for another command line; the bytecode stays known."""
        other = copy(self)
        other._line = line
        return other

    def list_unchanged_sources(self) -> list[str]:
        """Return the task's sources whose bytecode can be used."""
        return self._bytecode.list_unchanged_sources(drop_private_files(self._line.task.files))

    def forget_bytecode(self, sources: Collection[str]) -> None:
        """Drop the bytecode of some sources, so that later runs compile them again.

        Verdicts rest on the tests, and the user's own code, which ran where their bytecode was made, could have
        replaced it.
        """
        self._bytecode = self._bytecode.without(sources)

    async def run(
        self,
        files: Mapping[str, bytes],
        *,
        options: str = "",
        only: Collection[str] = (),
        isolated: Collection[str] = (),
        compile_for_later: bool = False,
        watched: Collection[str] = (),
        wall_s: float | None = None,
        records_reach: bool = False,
        recorded: BaseRunRecord | None = None,
        addition: RunAddition | None = None,
        before: PytestReport | None = None,
        checks_each_test: bool = False,
    ) -> tuple[RunResult, PytestReport]:
        """Run pytest once, and return how it ended and its report.

        Args:
            only: Ids of the tests to run, of test functions with all their parameters, and files; empty for all.
            isolated: Ids of the tests that also run in their own process.
            compile_for_later: Whether to keep the bytecode of this run. The files must be the task's own: a
                candidate could put other bytecode in its place, which runs of other candidates would load.
            watched: Paths whose changes the result names. The plugin itself gives time stamps to sources whose
                bytecode is kept, and to all sources if `compile_for_later` is set.
            records_reach: Whether to record which functions each test runs (see `report_plugin/reach.py`). A candidate
                may forge the record.
            recorded: The result of an earlier run on the same files, which takes the place of this one.
            addition: What the run has besides the reporting plugin.
            before: The report on the task's own files. The new one then names the tests that pass without the assertion
                at which they failed there.
            checks_each_test: Whether changes to the test machinery are looked for after each test, and not only at the
                end, as a verdict needs it. That takes half of the time that the plugin needs for a trivial test.
        """
        project_files = drop_private_files(files)
        run = recorded.load() if recorded is not None else None
        addition = addition or RunAddition()
        was_recorded = run is not None
        if run is None:
            key = secrets.token_bytes(32)
            parameters = {
                **self._describe_files(project_files, compile_for_later=compile_for_later),
                "report": f"{BOX}/{REPORT_PATH}",
                "reach": f"{BOX}/{REACH_PATH}" if records_reach else "",
                "key": key.hex(),
                "only": sorted(only),
                "isolated": sorted(isolated),
                "checks_each_test": checks_each_test,
                "failed_at": list_failed_asserts(before, self._test_files) if before is not None else [],
                "root": BOX,
                "wall_s": wall_s or self._line.settings.test_timeout_s,
            }
            request = self._line.request(
                {
                    **project_files,
                    **self._bytecode.select_unchanged(project_files),
                    **load_plugin(),
                    **self._load_django_plugin(),
                    **addition.private_files,
                },
                {
                    **self._environment(f"{PLUGIN}.plugin", f"{options} {addition.options}"),
                    **addition.variables,
                },
                stdin=json.dumps(parameters).encode("ascii"),
                wall_s=wall_s,
                preload=self._preload(),
                collect=(REPORT_PATH, BYTECODE_PATH, REACH_PATH, *addition.collect),
                watched=(*watched, *load_plugin()) if watched else (),
            )
            run = await self._sandbox.run(request), key
        result, key = run
        report = read_report(result.files.get(REPORT_PATH, b""), key)
        if recorded is not None and not was_recorded and report.exit_code is not None:
            recorded.save(result, key)
        if compile_for_later:
            self._bytecode = read_compiled_files(result.files.get(BYTECODE_PATH, b""), project_files)
        return result, report

    def _describe_files(self, files: Mapping[str, bytes], *, compile_for_later: bool) -> dict[str, Any]:
        """Return what the plugin must know about the files of a run."""
        unwatched_files = self._list_unwatched_files(files)
        python_files = [path for path in files if path.endswith(".py")]
        return {
            "compiled": f"{BOX}/{BYTECODE_PATH}" if compile_for_later else "",
            # The sources that get the fixed time stamp.
            "sources": python_files if compile_for_later else self._bytecode.list_unchanged_sources(files),
            "unchanged": unwatched_files,
            "unchanged_definitions": self._list_unchanged_definitions(files),
            "lists_opened": unwatched_files is self._protected_files,
            "tests": self._test_files,
            "libraries": sorted(select_libraries(self._test_imports)),
            "imported": sorted({name.partition(".")[0] for name in self._test_imports}),
        }

    def _list_unwatched_files(self, files: Mapping[str, bytes]) -> list[str]:
        """Return the files whose code is not watched.

        In a run of the task's own files these are only the tests, so that what their code does is known.
        """
        own_files = self._line.task.files
        unchanged = [path for path, content in files.items() if own_files.get(path) == content]
        return unchanged if len(unchanged) < len(files) else self._protected_files

    def _list_unchanged_definitions(self, files: Mapping[str, bytes]) -> list[tuple[str, int, int]]:
        """Return (path, first line, last line) of definitions that are the same as in the task, in changed files."""
        own_files = self._line.task.files
        return [
            (path, *span)
            for path, content in files.items()
            if path.endswith(".py") and path in own_files and own_files[path] != content
            for span in find_unchanged_definitions(own_files[path], content)
        ]

    @cached_property
    def _protected_files(self) -> list[str]:
        globs = self._line.task.protected or DEFAULT_PROTECTED
        return [path for path in self._line.task.files if is_protected(path, globs)]

    @cached_property
    def _test_files(self) -> list[str]:
        return [path for path in self._line.task.files if path.endswith(".py") and is_test_file(path)]

    @cached_property
    def _test_imports(self) -> frozenset[str]:
        return find_test_imports(self._line.task.files[path] for path in self._test_files)

    def early_request(self) -> RunRequest:
        """Return a request that needs the same process of pytest as the runs of the command, and has no files."""
        return self._line.request({}, preload=self._preload())

    def open_with(
        self, plugin: str, suture_files: Mapping[str, bytes], *, wall_s: float
    ) -> AbstractAsyncContextManager[Channel]:
        """Start pytest on the task's own files with another plugin; see `TestCommand.open_with_plugin`."""
        files = drop_private_files(self._line.task.files)
        private_files = {f"{PRIVATE_FOLDER}/{name}": text for name, text in suture_files.items()}
        return self._sandbox.open(
            self._line.request(
                {
                    **files,
                    **self._bytecode.select_unchanged(files),
                    **private_files,
                    **self._load_django_plugin(),
                },
                self._environment(plugin),
                wall_s=wall_s,
                preload=self._preload(),
            )
        )

    def _load_django_plugin(self) -> dict[str, bytes]:
        """Return the file of the plugin for Django's tests, if the command names it."""
        if DJANGO_PLUGIN not in self._line.task.test_command:
            return {}
        source = resources.files("suture.judge.runners.report_plugin").joinpath("django_plugin.py")
        return {f"{PRIVATE_FOLDER}/{DJANGO_PLUGIN}.py": source.read_bytes()}

    def _environment(self, plugin: str, options: str = "") -> dict[str, str]:
        environment = self._line.environment()
        paths = (environment.get("PYTHONPATH"), f"{BOX}/{PRIVATE_FOLDER}")
        # With `--doctest-modules`, for example, pytest would import every file of Suture's own.
        own = f"-p {plugin} -p no:cacheprovider --ignore={BOX}/{PRIVATE_FOLDER} {self._disable_own_plugin()}"
        pytest_options = f"{own} {options}"
        return {
            **environment,
            "PYTHONPATH": ":".join(path for path in paths if path),
            "PYTEST_ADDOPTS": pytest_options.strip(),
        }

    def _preload(self) -> str:
        return preload(self._line.task.test_command, self._disable_own_plugin())

    def _disable_own_plugin(self) -> str:
        """Return the option that turns off a plugin of Suture's own environment.

        The plugin takes seconds to load, and the project does not use it.
        """
        return "-p no:langsmith_plugin" if self._line.interpreter.prefix == sys.prefix else ""


def is_misused(result: RunResult, report: PytestReport) -> bool:
    """Whether the command itself is at fault: pytest refused its options, or never reached a test.

    A conftest.py that cannot be loaded is a fault of the code. A run that times out before the first test counts
    as misuse, because it cannot be told whether the command or the code hangs, and no test can be judged.
    """
    if report.exit_code is not None or report.items or report.uncollectable:
        return False
    refused_options = (
        result.exit_code == USAGE_ERROR_CODE
        and b"while loading conftest" not in result.stdout + result.stderr
    )
    return refused_options or result.status == "timeout"


@cache
def load_plugin() -> dict[str, bytes]:
    """Return the files of the reporting plugin at their paths inside the sandbox.

    Their bytecode is next to them, because compiling them takes a tenth of a short run. An interpreter of a version
    other than Suture's looks for other files, and compiles the sources.
    """
    folder = resources.files("suture.judge.runners").joinpath("report_plugin")
    files: dict[str, bytes] = {}
    for file in folder.iterdir():
        if file.name.endswith(".py") and file.name not in OTHER_PLUGINS:
            source, folder_path = file.read_bytes(), f"{PRIVATE_FOLDER}/{PLUGIN}"
            # Not `cache_from_source`: the settings of Suture's own process would choose the path.
            name = f"{file.name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
            files[f"{folder_path}/{file.name}"] = source
            files[f"{folder_path}/{CACHE_FOLDER}/{name}"] = compile_module(source)
    return files


def compile_module(source: bytes) -> bytes:
    """Return the bytecode of a module as Python stores it, in the form that no time stamp or hash can make stale."""
    code = compile(source, "", "exec", dont_inherit=True, optimize=0)
    return MAGIC_NUMBER + UNCHECKED_FLAGS.to_bytes(4, "little") + source_hash(source) + marshal.dumps(code)


@dataclass(frozen=True, kw_only=True)
class CompiledFiles:
    """Bytecode of a project's files.

    Attributes:
        by_source: Path of a source file -> path of its bytecode -> content.
        sources: The source files as they were when they were compiled.
    """

    by_source: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def select_unchanged(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the bytecode of sources that are unchanged; files of the project are never replaced."""
        return {
            path: content
            for source in self.list_unchanged_sources(files)
            for path, content in self.by_source[source].items()
            if path not in files
        }

    def list_unchanged_sources(self, files: Mapping[str, bytes]) -> list[str]:
        """Return the sources that are as they were when they were compiled."""
        return [path for path in self.by_source if files.get(path) == self.sources[path]]

    def without(self, paths: Container[str]) -> CompiledFiles:
        """Return the bytecode without that of some sources."""
        by_source = {path: bytecode for path, bytecode in self.by_source.items() if path not in paths}
        return CompiledFiles(by_source=by_source, sources={path: self.sources[path] for path in by_source})


def read_compiled_files(content: bytes, files: Mapping[str, bytes]) -> CompiledFiles:
    """Return the bytecode that was collected from a run on the project's own files; empty if it is malformed.

    Args:
        content: A line of JSON with `[source, name, size]` for each file, followed by their contents.
    """
    head, _, contents = content.partition(b"\n")
    try:
        index = json.loads(head)
    except (ValueError, RecursionError):
        return CompiledFiles()
    by_source: dict[str, dict[str, bytes]] = {}
    offset = 0
    for entry in index if isinstance(index, list) else ():
        if not (isinstance(entry, list) and tuple(map(type, entry)) == (str, str, int)):
            return CompiledFiles()
        source, name, size = entry
        stem = posixpath.basename(source).removesuffix("py")
        is_bytecode = name.startswith(stem) and name.endswith(".pyc") and "/" not in name
        is_known = source in files and source.endswith(".py")
        if not is_known or not is_bytecode or not 0 <= size <= len(contents) - offset:
            return CompiledFiles()
        path = posixpath.join(posixpath.dirname(source), CACHE_FOLDER, name)
        by_source.setdefault(source, {})[path] = contents[offset : offset + size]
        offset += size
    return CompiledFiles(by_source=by_source, sources={path: files[path] for path in by_source})
