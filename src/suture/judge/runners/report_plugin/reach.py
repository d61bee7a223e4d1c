"""Recording which functions of the project each test runs, in a run on the task's own files.

The record later shows which tests a change of a function can affect. It is not part of a verdict: the records are not
signed, and a test that fails while it is recorded runs again without (see `TestCommand`).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Generator, Iterable
from inspect import CO_OPTIMIZED
from typing import Any

import pytest

PROCESS_EVENTS = frozenset((
    "subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.spawn", "os.posix_spawn", "os.system",
))  # fmt: skip
"""Audit events of starting a process, in which nothing is recorded."""


class ReachRecorder:
    """Appends a line of JSON for each test.

    `[process, "function", number, path, line]` introduces a function by the line on which its definition begins, with
    its decorators. `[process, "test", id, numbers, starts_process]` follows the end of a test, and
    `[process, "import", numbers]` the collection.

    Args:
        root: The project's folder.
        path: The file to append to.
        make_id: Returns a test's id as the report has it.
    """

    def __init__(self, root: str, path: str, make_id: Any) -> None:
        self._root = root + os.sep
        self._own_folder = os.path.dirname(os.path.dirname(__file__)) + os.sep
        self._make_id = make_id
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._numbers = {}  # type: dict[tuple[str, int], int]
        self._paths = {}  # type: dict[str, str]
        self._test_numbers = set()  # type: set[int]
        self._by_fixture = {}  # type: dict[int, tuple[set[int], bool]]
        self._starts_process = False
        self._tracer = MonitoringTracer() if hasattr(sys, "monitoring") else ProfilerTracer()  # type: Any
        sys.addaudithook(self._note_process)
        self._tracer.start()  # until all tests are collected

    def _note_process(self, event: str, arguments: Any) -> None:
        if event in PROCESS_EVENTS:
            self._starts_process = True

    def pause(self) -> None:
        """Stop following while pytest rewrites a test file, which takes several times as long when it is followed."""
        self._tracer.pause()

    def resume(self) -> None:
        """Follow again after `pause`."""
        self._tracer.resume()

    def pytest_collection_finish(self) -> None:
        """Record what ran while the tests were imported and their cases were made."""
        self._write("import", sorted(self._number_all(self._tracer.stop())))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, None]:
        """Record a test with what it uses of fixtures that another test may have set up."""
        self._test_numbers, self._starts_process = set(), False
        yield
        numbers, starts_process = self._test_numbers, self._starts_process
        fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for definitions in fixtures.values():
            for definition in definitions:
                fixture_numbers, fixture_starts = self._by_fixture.get(id(definition), (set(), False))
                numbers |= fixture_numbers
                starts_process = starts_process or fixture_starts
        self._write("test", self._make_id(item.nodeid), sorted(numbers), starts_process)

    # The wrappers below are the innermost, because following pytest itself takes longer than most tests.

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, Any, None]:
        """Follow a test."""
        self._tracer.start()
        yield
        self._test_numbers |= self._number_all(self._tracer.stop())

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, None]:
        """Follow what ends the fixtures."""
        self._tracer.start()
        yield
        self._test_numbers |= self._number_all(self._tracer.stop())

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, None]:
        """Follow the beginning of a fixture."""
        started_before, self._starts_process = self._starts_process, False
        self._tracer.start()
        yield
        numbers = self._number_all(self._tracer.stop())
        self._by_fixture[id(fixturedef)] = numbers, self._starts_process
        self._test_numbers |= numbers
        self._starts_process = self._starts_process or started_before

    def _number_all(self, codes: Iterable[Any]) -> set[int]:
        return {self._number(*place) for place in self._find_places(codes)}

    def _find_places(self, codes: Iterable[Any]) -> set[tuple[str, int]]:
        places = set()
        for code in codes:
            path = self._paths.get(code.co_filename)
            if path is None:
                path = self._paths[code.co_filename] = self._find_path(code.co_filename)
            if path and code.co_flags & CO_OPTIMIZED:  # unlike a module and the body of a class
                places.add((path, code.co_firstlineno))
        return places

    def _find_path(self, file: str) -> str:
        """Return the path of the project's code relative to its folder; empty for other code."""
        name = os.path.abspath(file)
        # Code without a file has a name such as `<string>` or `<frozen os>`, which is not a path.
        is_other = file.startswith("<") or name.startswith(self._own_folder) or "site-packages" in name
        return name[len(self._root) :] if name.startswith(self._root) and not is_other else ""

    def _number(self, path: str, line: int) -> int:
        place = (path, line)
        if place not in self._numbers:
            self._numbers[place] = len(self._numbers)
            self._write("function", self._numbers[place], path, line)
        return self._numbers[place]

    def _write(self, *values: Any) -> None:
        os.write(self._file, (json.dumps([os.getpid(), *values]) + "\n").encode("ascii"))


class ProfilerTracer:
    """Follows what is called with the profiler of CPython before 3.12, which is compiled."""

    def __init__(self) -> None:
        try:
            profiling = importlib.import_module("_lsprof")  # type: Any
        except ImportError:  # a Python other than CPython; nothing is recorded
            profiling = None
        self._make_profiler = getattr(profiling, "Profiler", None)
        self._active = []  # type: list[Any]
        self._thread_codes = {}  # type: dict[int, Any]

    def start(self) -> None:
        """Begin to follow; what is followed already is interrupted."""
        if self._make_profiler is None:
            return
        if self._active:
            self._active[-1].disable()
        else:
            threading.setprofile(self._note_thread)
        self._active.append(self._make_profiler(subcalls=False, builtins=False))
        self._active[-1].enable()

    def pause(self) -> None:
        """Stop following until `resume`."""
        if self._active:
            self._active[-1].disable()

    def resume(self) -> None:
        """Follow what was followed before `pause`."""
        if self._active:
            self._active[-1].enable()

    def stop(self) -> list[Any]:
        """Return the code that ran since the last start."""
        if not self._active:
            return []
        profiler = self._active.pop()
        profiler.disable()
        codes = [entry.code for entry in profiler.getstats() if not isinstance(entry.code, str)]
        if self._active:
            self._active[-1].enable()
        else:
            threading.setprofile(None)
            codes += self._thread_codes.values()
            self._thread_codes.clear()
        return codes

    def _note_thread(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            self._thread_codes[id(frame.f_code)] = frame.f_code


class MonitoringTracer:
    """Follows what is called with `sys.monitoring`, which reports each function once."""

    def __init__(self) -> None:
        self._monitoring = getattr(sys, "monitoring")  # type: Any  # noqa: B009 - older Pythons have none
        # The numbers 3 and 4 are free for any tool; Python names the others.
        self._tool = next((number for number in (4, 3) if self._monitoring.get_tool(number) is None), None)
        self._active = []  # type: list[dict[int, Any]]
        if self._tool is not None:
            event = self._monitoring.events.PY_START
            self._monitoring.use_tool_id(self._tool, "suture-reach")
            self._monitoring.register_callback(self._tool, event, self._note)

    def start(self) -> None:
        """Begin to follow; what is followed already is interrupted."""
        if self._tool is None:
            return
        if not self._active:
            self._monitoring.set_events(self._tool, self._monitoring.events.PY_START)
        self._monitoring.restart_events()
        self._active.append({})

    def pause(self) -> None:
        """Do nothing: a function that was reported once costs nothing more."""

    def resume(self) -> None:
        """Do nothing."""

    def stop(self) -> list[Any]:
        """Return the code that ran since the last start."""
        if not self._active:
            return []
        codes = self._active.pop()
        if not self._active:
            self._monitoring.set_events(self._tool, 0)
        return [*codes.values()]

    def _note(self, code: Any, offset: int) -> Any:
        if self._active:
            self._active[-1][id(code)] = code
        return self._monitoring.DISABLE
