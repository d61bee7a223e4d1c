"""A pytest plugin that reports what each test does, in lines that are signed one by one.

It runs inside the sandbox, in the user's own interpreter and pytest and beside the code under test: Python
3.8 syntax, the standard library and pytest only, and no import of Suture. The key comes over stdin and is
never written to a file. A line that the code under test forges, repeats or removes does not verify. Code that
searches this process's memory for the key could still forge a report, and verdicts based on such a report say
so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator

# Bound before any test is loaded, because code under test may replace these functions in their modules.
from hmac import digest
from json import dumps
from os import write
from typing import Any

import pytest

from .bytecode import backdate, save_bytecode
from .failure_facts import MAX_TEXT_CHARS, FailureFacts, get_test_file, is_doctest
from .import_path import describe_imports
from .machinery import TestMachinery
from .time_limits import TestTimeout, TimeLimits
from .worker_processes import WORKER_PARAMETERS, derive_key, load_in_workers, take_worker_parameters


class Reporter:
    """Appends signed lines to the report.

    If tests run in other processes (pytest-xdist workers, forks), each process signs lines of its own.

    Args:
        parameters: The parameters from Suture, or from the reporter that starts this worker.
    """

    def __init__(self, parameters: dict[str, Any], config: Any) -> None:
        self._parameters = {**parameters, "key": ""}
        self._name = self._own_name = parameters.get("name", "")
        self._pid = os.getpid()
        path = parameters["report"]
        self._report_file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._key = bytes.fromhex(parameters["key"])
        self._only = frozenset(parameters["only"])
        self._isolated = frozenset(parameters["isolated"])
        self._bytecode_path = parameters["compiled"]
        self._sources = parameters["sources"]
        self._line_count = 0
        self._write_bytes = write  # tests with a fake file system replace the names in modules
        self._root = os.getcwd()
        self._machinery = TestMachinery(config, self._root)  # no test and no conftest.py is loaded yet
        self._changed_by_tests = {}  # type: dict[tuple[str, str], None]
        self._reported_here = set()  # type: set[tuple[str, str]]
        self._deselected = []  # type: list[str]
        self._limits = TimeLimits(parameters["wall_s"])
        config.pluginmanager.register(self._limits, "suture-time-limits")
        self._facts = FailureFacts(self._root, self._limits)
        self._start(config)

    def _start(self, config: Any) -> None:
        """Report that pytest started and what it would collect, in case it never gets that far."""
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._prefix = os.path.relpath(root, self._root)
        named = getattr(config.known_args_namespace, "file_or_dir", None) or []
        if not named and root == self._root:
            named = config.getini("testpaths")
        self._write(
            event="begin",
            named=[str(name) for name in named if os.path.exists(str(name).split("::")[0])],
            patterns=[str(pattern) for pattern in config.getini("python_files")],
            left_out=[str(name) for name in config.getini("norecursedirs")],
            rootdir=self._prefix,
            early=sorted(self._machinery.early.items()),
        )

    def _id(self, nodeid: str) -> str:
        """Return a test's id relative to the project's root, which may differ from pytest's rootdir."""
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    def _write(self, **event: Any) -> None:
        line = dumps(event, sort_keys=True)
        signed = f"{self._line_count} {line}".encode("ascii")
        self._line_count += 1
        signature = digest(self._key, signed, "sha256").hex().encode()
        prefix = f"{self._name} ".encode("ascii") if self._name else b""
        self._write_bytes(self._report_file, prefix + signature + b" " + signed + b"\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """Collect only the files of the requested tests."""
        paths = sorted({os.path.join(self._root, name.partition("::")[0]) for name in self._only})
        if paths and all(map(os.path.isfile, paths)):
            session.config.args = paths

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Any) -> None:
        """Keep only the requested tests."""
        if self._only:
            items[:] = [item for item in items if self._id(item.nodeid) in self._only]

    def pytest_collection_finish(self, session: Any) -> None:
        """Report the collected tests."""
        if self._bytecode_path:
            save_bytecode(self._sources, self._bytecode_path)
        examples = {}
        for item in session.items:
            doctest = getattr(item, "dtest", None)
            if doctest is not None:
                examples[self._id(item.nodeid)] = [[e.source, e.want] for e in doctest.examples]
        files = {
            os.path.relpath(get_test_file(item), self._root) for item in session.items if not is_doctest(item)
        }
        self._write(
            event="items",
            ids=[self._id(item.nodeid) for item in session.items],
            examples=examples,
            files=sorted(files),
            deselected=self._deselected,
            **describe_imports(self._root),
        )
        if getattr(session.config.option, "tbstyle", "") == "auto":
            # Pytest's own style parses a whole file for each frame of a failure, most of a failing run.
            session.config.option.tbstyle = "native"

    def pytest_deselected(self, items: Any) -> None:
        """Remember the tests that the command itself excludes."""
        self._deselected += [self._id(item.nodeid) for item in items]

    def pytest_collectreport(self, report: Any) -> None:
        """Report files that cannot be collected."""
        if report.failed:
            self._write(
                event="uncollectable", id=self._id(report.nodeid), text=str(report.longrepr)[-MAX_TEXT_CHARS:]
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> Any:
        """If isolation is requested, run all tests in one child, then some in one child each."""
        items = getattr(session, "items", None)  # absent if other processes run the tests
        if not self._isolated or not items or session.testsfailed:
            return None
        self._run_in_child(items)
        self._write(event="isolated")
        for item in items:
            if self._id(item.nodeid) in self._isolated:
                self._run_in_child([item])
        return True

    def _run_in_child(self, items: Any) -> None:
        """Run tests one after the other in a child process, so that they leave nothing behind in this one."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._pid = os.getpid()
            try:
                for number, item in enumerate(items):
                    next_item = items[number + 1] if number + 1 < len(items) else None
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
                os.write(write_end, b"%d" % self._line_count)
            finally:
                os._exit(0)
        os.close(write_end)
        os.waitpid(pid, 0)
        line_count = os.read(read_end, 64)
        os.close(read_end)
        # How many lines a dead child wrote is unknown. The number -1 makes all later lines fail to verify.
        self._line_count = int(line_count) if line_count.isdigit() else -1

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Report which test starts and how long it may run, in case it never ends."""
        used_s, limit_s = round(self._limits.used_s(), 3), round(self._limits.limit_s, 3)
        self._write(event="start", id=self._id(nodeid), used_s=used_s, limit_s=limit_s)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report the outcome of one phase of a test."""
        here = (report.nodeid, report.when) in self._reported_here
        self._reported_here.discard((report.nodeid, report.when))
        self._write_phase(report, here=here)

    def _write_phase(self, report: Any, *, here: bool) -> None:
        fact = dict(report.user_properties).get("suture") if not report.passed else None
        text = "" if report.passed else str(report.longrepr)[-MAX_TEXT_CHARS:]
        self._write(
            event="phase",
            id=self._id(report.nodeid),
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail") or text.startswith("[XPASS(strict)]"),
            text=text,
            fact=fact,
            here=here,
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Record where an exception came from while its traceback exists, and which process saw it."""
        self._record_fact(item, call)  # before pytest makes the report, which copies the properties
        outcome = yield
        self._reported_here.add((item.nodeid, call.when))
        if call.when == "teardown":  # by now a test has reverted what it patched for itself
            self._changed_by_tests.update(
                (pair, None) for pair in self._machinery.changed_meanwhile().items()
            )
        if os.getpid() != self._pid:
            self._report_from_fork(outcome.get_result())

    def _report_from_fork(self, report: Any) -> None:
        """In a process that was forked for a test, report what it saw in signed lines of its own."""
        if self._name == self._own_name:
            self._name = f"{self._own_name}.{os.getpid()}".lstrip(".")
            self._key, self._line_count = derive_key(self._key, str(os.getpid())), 0
        self._write_phase(report, here=True)
        if report.when == "teardown":
            self._write_end(0)

    def _record_fact(self, item: Any, call: Any) -> None:
        item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != "suture"]
        excinfo = call.excinfo
        for exception in getattr(item, "_excinfo", None) or []:  # pytest sets a unittest's exceptions later
            excinfo = exception if isinstance(exception.value, TestTimeout) else excinfo
        if excinfo is not None:
            try:
                item.user_properties.append(("suture", self._facts.extract(item, excinfo)))
            except Exception as fault:
                item.user_properties.append(("suture", {"exception": type(fault).__name__}))

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Report that pytest came to its end."""
        self._write_end(int(exitstatus))

    def _write_end(self, status: int) -> None:
        changes = {**self._machinery.added(), **self._machinery.changed()}
        self._write(
            event="end",
            exit=status,
            changed=sorted(changes.items()),
            meanwhile=list(self._changed_by_tests),
            **describe_imports(self._root),
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Make workers load this plugin before anything of the project."""
        load_in_workers(__name__, SEARCH_PATH)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker its parameters, with a key that is valid for its own lines only."""
        name = node.workerinput["workerid"]
        rest_s = self._parameters["wall_s"] - self._limits.used_s()
        node.workerinput[WORKER_PARAMETERS] = {
            "report": self._parameters["report"],
            "key": derive_key(self._key, name).hex(),
            "name": name,
            "only": sorted(self._only),
            "isolated": [],
            "compiled": "",
            "sources": [],
            "root": self._parameters["root"],
            "wall_s": rest_s,
        }


def _read_parameters() -> list[dict[str, Any]]:
    """Return the parameters that Suture sent as a line of JSON, such as the report's path and the key."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return take_worker_parameters(__name__)  # a worker's stdin belongs to xdist
    chunks = []
    while True:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    try:
        parameters = json.loads(b"".join(chunks))
    except ValueError:
        return []
    return [parameters] if isinstance(parameters, dict) and "key" in parameters else []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start to report if a key was sent, before any conftest.py can fail to load."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # a test that runs pytest itself must not load this plugin
    if PARAMETERS:
        early_config.pluginmanager.register(Reporter(PARAMETERS.pop(), early_config), "suture-reporter")


# Read at import time: pytest redirects stdin before it configures plugins, and no test file is loaded yet.
SEARCH_PATH = list(sys.path)
PARAMETERS = _read_parameters()
for _parameters in PARAMETERS:
    if _parameters["root"] == os.getcwd():  # bytecode contains the absolute paths of its sources
        backdate(_parameters["sources"])
        sys.dont_write_bytecode = not _parameters["compiled"]
    else:
        _parameters["compiled"] = ""
