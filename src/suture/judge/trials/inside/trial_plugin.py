"""A pytest plugin that serves trials with three processes, each of them a fork of the one before.

The first process has imported nothing of the project. The second one has configured pytest and loaded the outer
`conftest.py` files. A candidate that changes what an import does gets a fork of the second process, or of the first one
if the second one has imported its file. The third process has collected the tests. In its own forks, functions get
their new code in place. All use pytest's own hooks, including those of the project's plugins.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from .child_processes import (
    OWN_FOLDER,
    ROOT,
    Forks,
    HostChannel,
    LeftoverFiles,
    ProjectFiles,
    backdate,
    limit_cpu,
    monotonic_s,
    remove_paths,
)
from .collected_tests import CollectedTests, TestLimits, parse_outcomes, run_tests
from .function_calls import call_all
from .line_tracer import Tracer
from .pytest_items import Items, Outcomes, describe_error, get_traceback

DISABLED_OPTIONS = {
    "numprocesses": 0,  # this and the next three: pytest-xdist
    "dist": "no",
    "tx": [],
    "distload": False,
    "maxfail": 0,
    "tbstyle": "no",
    "showlocals": False,
    "verbose": 0,
    "xmlpath": None,
    "benchmark_disable": True,
    "instafail": False,
}
"""Options of pytest and of common plugins that only report, distribute, or end a run early."""
DISABLED_EARLY_OPTIONS = {"cov_source": None, "no_cov": True}
"""Options of pytest-cov, which reads them before any other hook."""


class TrialServer:
    """Serves the requests of the host."""

    def __init__(self, connection: HostChannel) -> None:
        self._connection = self._requests = connection
        job = connection.read() or {}
        self._compiled = backdate(job["dated"])
        self._files = ProjectFiles(job["texts"])
        self._tracer = Tracer(job["files"])
        self._limits = TestLimits()
        self._outcomes = Outcomes()
        self._leftovers = LeftoverFiles()
        self._forks = Forks(connection)
        self._next: HostChannel | None = None  # the process that is a fork of this one
        self._imported_by_next: set[str] = set()
        self._task: dict[str, Any] = {"op": "none"}
        self._write: Any = None
        self._errors: list[str] = []
        self._frames: list[tuple[str, int]] = []
        self._traceback: list[tuple[str, int]] = []
        self._error = ""
        self._began_s = 0.0

    def serve(self) -> None:
        """Answer requests until the connection ends. This returns only in a fork, which continues as pytest."""
        while True:
            command = self._requests.read()
            if command is None:
                os._exit(0)
            if self._answer(command):
                return
            if self._requests is not self._connection:
                self._requests.write({})  # the process before forwards the next request after this

    def _answer(self, command: dict[str, Any]) -> bool:
        """Answer a request; return true in a fork that continues as pytest."""
        if command["op"] in ("collect", "configure"):
            return self._start_next(command)
        if command["op"] == "set_files":
            self._files, self._tracer = ProjectFiles(command["texts"]), Tracer(command["files"])
            if self._next is None:
                self._connection.write({})
                return False
        if command["op"] == "limits":
            self._limits.by_test = command["limits"]
        if command.get("reimports"):
            is_first = self._requests is self._connection
            if not is_first or self._next is None or command.get("path") in self._imported_by_next:
                return self._try_reimporting(command)
        self._forward(command)
        return False

    def _start_next(self, command: dict[str, Any]) -> bool:
        """Start the next process; return true in that process, which continues as pytest does."""
        if self._next is not None:  # the process before ended with the one after it
            self._forks.connections.remove(self._next)
            self._next.close()
            self._next = None
        parent_end, child_end = socket.socketpair()
        if os.fork():
            child_end.close()
            self._next = HostChannel(parent_end.fileno(), parent_end.detach())
            self._forks.connections.append(self._next)
            self._imported_by_next = set(self._wait().get("imported", ()))
            return False
        os.setsid()
        parent_end.close()
        if self._requests is not self._connection:
            self._requests.close()
        fd = child_end.detach()
        self._task = {**command, "requests": HostChannel(fd, fd)}
        return True

    def _forward(self, command: dict[str, Any]) -> None:
        if self._next is None:
            self._connection.write({"lost": True})
            return
        with suppress(OSError):
            self._next.write(command)
        self._wait()

    def _wait(self) -> dict[str, Any]:
        """Wait until the next process has answered, and return what it says; forget it if it died."""
        assert self._next is not None
        try:
            answer = self._next.read()
        except OSError:
            answer = None
        if answer is None:
            self._next = None
            self._connection.write({"lost": True})
        return answer or {}

    def _try_reimporting(self, command: dict[str, Any]) -> bool:
        """Try a candidate, including its import; return true in the fork, which continues as pytest does."""
        write_in_child: list[Any] = []

        def act(write: Any) -> None:
            write_in_child.append(write)
            raise ContinueAsPytest

        path, before = command.get("path"), self._leftovers.list_files()
        if path is not None:
            self._files.write(path, self._files.apply_edits(command), command["number"])
        end_s = monotonic_s() + command["timeout_s"]
        try:
            output, finished = self._forks.run(
                act, command["silence_s"], end_s=end_s, propagates=ContinueAsPytest
            )
        except ContinueAsPytest:
            self._write = write_in_child[0]
            self._task = command
            limit_cpu(command["import_cpu_s"])
            return True
        remove_paths(self._leftovers.find_new(before))
        if path is not None:
            self._files.restore(path)
        if command["op"] == "call":
            answers = [line.decode("ascii") for line in output.split(b"\n") if line]
            self._connection.write({"number": command["number"], "answers": answers})
        else:
            self._connection.write({**parse_outcomes(output), "finished": finished, "unsupported": False})
        return False

    def prepare(self, early_config: Any) -> None:
        """Set up a fork that continues as pytest: nothing is imported yet, and its output is discarded."""
        null_fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_fd, 2)
        os.close(null_fd)
        arguments = early_config.known_args_namespace
        for name, value in DISABLED_EARLY_OPTIONS.items():
            if hasattr(arguments, name):
                setattr(arguments, name, value)
        if not self._compiled:
            sys.pycache_prefix = os.path.join(OWN_FOLDER, "compiled")  # used by this process only
        if self._task["op"] == "collect":
            self._began_s = monotonic_s()
            sys.dont_write_bytecode = False  # forks that import again find compiled tests
            if self._task["trace"]:
                self._tracer.start()
        early_config.pluginmanager.register(self, "suture-trials")
        early_config.pluginmanager.register(self._outcomes, "suture-outcomes")

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: Any) -> None:
        """Disable reports and other processes, so that every test runs here."""
        for name, value in DISABLED_OPTIONS.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """Collect only the files of a candidate's tests; calls of functions need no tests.

        The process that has configured pytest stays here and serves requests.
        """
        if self._task["op"] in ("collect", "configure"):
            self._requests = self._task["requests"]
            self._forks.connections.append(self._requests)
            if self._task["op"] == "configure":
                self._connection.write({})
            if self._task["op"] == "configure" or not self._start_next(self._task):
                self._tracer.stop()
                sys.dont_write_bytecode = True
                self._requests.write({"imported": find_imported_files()})
                self.serve()
        if self._task["op"] == "call":
            call_all(self._task["calls"], self._task["call_cpu_s"], self._write)
            os._exit(0)
        if self._task.get("test_files"):
            session.config.args = [os.path.join(ROOT, file) for file in self._task["test_files"]]

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """Record where the import of a file failed."""
        if not self._frames and call.excinfo is not None and report.when == "collect":
            self._tracer.stop()
            fault = call.excinfo.value
            while fault is not None and not self._frames:
                self._frames, self._error = self._tracer.get_error_frames(fault), describe_error(fault)
                self._traceback = self._traceback or get_traceback(fault, ROOT + os.sep, OWN_FOLDER)
                fault = fault.__cause__ or fault.__context__

    def pytest_collectreport(self, report: Any) -> None:
        """Record collection errors; a candidate fails if one of its test files cannot be collected."""
        if report.failed:
            self._errors.append(report.nodeid)
            if self._task.get("test_files"):  # pytest would import the other files first
                failure = json.dumps(self._describe_import_failure(report.nodeid))
                self._write(b"f\n" + failure.encode("ascii") + b"\n")
                os._exit(0)

    def _describe_import_failure(self, node_id: str) -> dict[str, Any]:
        """Return how far the import of a test file got, as the failure of its first test."""
        tests = [str(test) for test in self._task["tests"]]
        tests_of_file = (test for test in tests if test.partition("::")[0].endswith(node_id))
        return {"test": next(tests_of_file, tests[0]), "error": self._error, "traceback": self._traceback}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> None:
        """Serve requests instead of running pytest's own loop."""
        self._tracer.stop()
        sys.pycache_prefix, sys.dont_write_bytecode = None, True
        _silence(session.config)
        items = Items(session, ROOT)
        items.drop_failure_texts()
        if self._task["op"] == "collect":
            self._serve_collected(items)
        else:
            self._run_after_import(items)
        os._exit(0)

    def _serve_collected(self, items: Items) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        report = {
            "collected": items.ids,
            "errors": len(self._errors),
            "seconds": used.ru_utime + used.ru_stime,
            "wall_s": monotonic_s() - self._began_s,
            "frames": self._frames,
            "error": self._error,
            "traceback": self._traceback,
        }
        self._connection.write({**report, **self._tracer.take()})
        # A new one: what the collection called is no state in which a test begins.
        tracer = Tracer([*self._tracer.lines])
        requests = self._task["requests"]
        requests.write({})
        forks = Forks(self._connection, requests)
        collected = CollectedTests(items, self._outcomes, self._files, self._limits, tracer, forks)
        collected.serve(requests, self._connection)

    def _run_after_import(self, items: Items) -> None:
        tests = self._task["tests"]
        limited_tests = self._limits.by_test or items.ids  # if nothing was collected before, all tests
        chosen = items.select_in_order(limited_tests) if tests is None else items.select(tests)
        missing = [name for name in tests or () if not items.select([name])]
        for _ in missing:  # a test that the candidate made disappear has failed
            self._write(b"f")
        if not missing and chosen:
            run_tests(chosen, self._outcomes, self._limits, self._task, self._write)


def find_imported_files() -> list[str]:
    """Return the paths of the project's files that this process has imported."""
    root = os.path.realpath(ROOT)
    # A lazy module imports something when an attribute that it lacks is read.
    files = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    paths = [os.path.realpath(file) for file in files if isinstance(file, str)]
    return [os.path.relpath(path, root) for path in paths if path.startswith(root + os.sep)]


class ContinueAsPytest(BaseException):
    """Unwinds the frames of the request in a fork, which then continues as pytest."""


def _silence(config: Any) -> None:
    """Discard the output of the terminal reporter."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    writer: Any = getattr(reporter, "_tw", None)
    if hasattr(writer, "_file"):
        writer._file = open(os.devnull, "w")  # noqa: SIM115 (it lives as long as the process)


def _take_connection() -> HostChannel:
    """Return the connection to the host, which was stdin and stdout, and replace those by the null device."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    null_fd = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_fd, 0)
    os.dup2(null_fd, 1)
    os.close(null_fd)
    return HostChannel(read_fd, write_fd)


# At import time, because pytest redirects stdin and stdout before it calls plugins.
CONNECTION = _take_connection()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Iterator[None]:
    """Begin before any file of the project is imported, and before any plugin reads its options."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # a test may run pytest itself, without trials
    server = TrialServer(CONNECTION)
    server.serve()
    server.prepare(early_config)
    yield
