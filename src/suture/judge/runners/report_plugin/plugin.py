"""A pytest plugin that reports what each test does, in lines that are signed one by one.

It runs inside the sandbox, in the user's own interpreter and pytest and together with the code under test: Python
3.8 syntax, the standard library and pytest only, and no import of Suture. The key comes over stdin and is
never written to a file. The reporter below does not have it: an audit hook does, which signs what the reporter
sends to it (see watch.py).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

from .assert_watch import FailedAsserts
from .bytecode import backdate, save_bytecode
from .failure_facts import MAX_TEXT_CHARS, FailureFacts, get_test_file, is_doctest
from .import_path import PRIVATE_FOLDER, describe_imports
from .machinery import TestMachinery
from .origins import Origins
from .reach import ReachRecorder
from .signing import SignedReport
from .time_limits import TestTimeout, TimeLimits
from .watch import OWN_REPORT, TEST_TEXT, Watch, install_watch
from .worker_processes import WORKER_PARAMETERS, load_in_workers, take_worker_parameters

ROOT = os.path.dirname(PRIVATE_FOLDER)
"""The project's folder. The command may run in a folder below it."""
MAX_SECTION_CHARS = 1 << 20
"""Characters of captured output of one test that its report keeps. Chosen by judgement; not measured."""


class Reporter:
    """Reports what pytest does.

    If tests run in other processes (pytest-xdist workers, forks), each process signs its own lines.

    Args:
        parameters: The parameters from Suture, or from the reporter that starts this worker, without the key.
        send: Sends a request to the audit hook; see `install_watch`.
    """

    def __init__(
        self, parameters: dict[str, Any], config: Any, send: Callable[..., None], early: Any
    ) -> None:
        self._parameters = parameters
        self._send = send
        self._pid = os.getpid()
        self._only = frozenset(parameters["only"])
        self._isolated = frozenset(parameters["isolated"])
        self._bytecode_path = parameters["compiled"]
        self._sources = parameters["sources"]
        self._checks_each_test = parameters["checks_each_test"]
        self._root = ROOT
        self._early = early
        self._may_rerun = config.pluginmanager.hasplugin("rerunfailures")
        self._reported_here = set()  # type: set[tuple[str, str]]
        self._deselected = []  # type: list[str]
        self._limits = TimeLimits(parameters["wall_s"])
        config.pluginmanager.register(self._limits, "suture-time-limits")
        self._facts = FailureFacts(self._root, self._limits)
        self._start(config)
        self.recorder = None  # type: ReachRecorder | None
        if parameters["reach"]:
            self.recorder = ReachRecorder(self._root, parameters["reach"], self._id)
            config.pluginmanager.register(self.recorder, "suture-reach")

    def _start(self, config: Any) -> None:
        """Report that pytest started and what it would collect, in case it never gets that far."""
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._prefix = os.path.relpath(root, self._root)
        named = getattr(config.known_args_namespace, "file_or_dir", None) or []
        if not named and root == self._root:
            named = config.getini("testpaths")
        if not named and os.getcwd() != self._root:
            named = ["."]
        self._write(
            event="begin",
            named=[self._from_root(str(name)) for name in named if os.path.exists(str(name).split("::")[0])],
            patterns=[str(pattern) for pattern in config.getini("python_files")],
            left_out=[str(name) for name in config.getini("norecursedirs")],
            rootdir=self._prefix,
            early=sorted(self._early.items()),
            may_rerun=self._may_rerun,
        )

    def _id(self, nodeid: str) -> str:
        """Return a test's id relative to the project's root, which may differ from pytest's rootdir."""
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    def _from_root(self, name: str) -> str:
        """Return a path or test id of the command, whose working folder may be below the project's."""
        path, separator, test = name.partition("::")
        if os.getcwd() == self._root or os.path.isabs(path):
            return name
        return os.path.relpath(path, self._root) + separator + test

    def _write(self, **event: Any) -> None:
        self._send("write", event)

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
            items[:] = [item for item in items if self._is_requested(self._id(item.nodeid))]

    def _is_requested(self, name: str) -> bool:
        return not self._only.isdisjoint((name, name.partition("[")[0], name.partition("::")[0]))

    def pytest_collection_finish(self, session: Any) -> None:
        """Report the collected tests."""
        if self._bytecode_path:
            save_bytecode(self._sources, self._bytecode_path)
        examples = {}
        for item in session.items:
            doctest = getattr(item, "dtest", None)
            if doctest is not None:
                examples[self._id(item.nodeid)] = [[e.source, e.want] for e in doctest.examples]
        paths = {get_test_file(item) for item in session.items if not is_doctest(item)}
        self._write(
            event="items",
            ids=[self._id(item.nodeid) for item in session.items],
            examples=examples,
            files=sorted(os.path.relpath(path, self._root) for path in paths),
            deselected=self._deselected,
            **describe_imports(self._root),
        )
        modules = {id(item.module): item.module for item in session.items if getattr(item, "module", None)}
        self._send("collected", list(modules.values()))
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
            self._send("isolate")
            try:
                for number, item in enumerate(items):
                    next_item = items[number + 1] if number + 1 < len(items) else None
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
                count = []  # type: list[int]
                self._send("count", count)
                os.write(write_end, b"%d" % count[0])
            finally:
                os._exit(0)
        os.close(write_end)
        os.waitpid(pid, 0)
        line_count = os.read(read_end, 64)
        os.close(read_end)
        self._send("skip_to", int(line_count) if line_count.isdigit() else -1)

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Report which test starts and how long it may run, in case it never ends."""
        self._facts.forget_comparison()
        used_s, limit_s = round(self._limits.used_s(), 3), round(self._limits.limit_s, 3)
        self._write(event="start", id=self._id(nodeid), used_s=used_s, limit_s=limit_s)

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self, op: str, left: Any, right: Any) -> None:
        """Remember the values of a failed comparison; pytest's own explanation cuts long ones."""
        if op == "==":
            self._facts.note_comparison(left, right)
        else:
            self._facts.forget_comparison()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report the outcome of one phase of a test."""
        here = (report.nodeid, report.when) in self._reported_here
        self._reported_here.discard((report.nodeid, report.when))
        self._write_phase(report, here=here)

    def _write_phase(self, report: Any, *, here: bool) -> None:
        if report.when == "setup" and report.outcome == "passed":
            return  # it decides nothing, and a line takes as long as a tenth of a trivial test
        details = {} if here else {"here": False}  # type: dict[str, Any]
        if hasattr(report, "wasxfail"):
            details["xfail"] = True
        if not report.passed:
            text = str(report.longrepr)[-MAX_TEXT_CHARS:]
            details.update(text=text, fact=dict(report.user_properties).get("suture"))
            if text.startswith("[XPASS(strict)]"):
                details["xfail"] = True
        self._write(
            event="phase", id=self._id(report.nodeid), when=report.when, outcome=report.outcome, **details
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Record where an exception came from while its traceback exists, and which process saw it."""
        if self._checks_each_test and call.when != "setup":
            self._send(
                "look",
                call.when,
                find_test_function(item),
                getattr(item, "module", None),
                find_test_object(item),
            )
        self._record_fact(item, call)  # before pytest makes the report, which copies the properties
        cut_sections(getattr(item, "_report_sections", []))
        outcome = yield
        self._reported_here.add((item.nodeid, call.when))
        if os.getpid() != self._pid:  # a process that was forked for a test
            self._write_phase(outcome.get_result(), here=True)
            if call.when == "teardown":
                self._write_end(0)

    def _record_fact(self, item: Any, call: Any) -> None:
        item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != "suture"]
        excinfo = call.excinfo
        for exception in getattr(item, "_excinfo", None) or []:  # pytest sets a unittest's exceptions later
            if excinfo is None and not isinstance(exception.value, pytest.skip.Exception):
                excinfo = exception
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
        self._write(event="end", exit=status, **describe_imports(self._root))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Make workers load this plugin before anything of the project."""
        load_in_workers(__name__, SEARCH_PATH)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker its parameters, with a key that is valid for its own lines only."""
        derived = []  # type: list[Any]
        self._send("derive", node.workerinput["workerid"], derived)
        node.workerinput[WORKER_PARAMETERS] = {
            **self._parameters,
            "key": derived[1].hex(),
            "name": derived[0],
            "isolated": [],
            "compiled": "",
            "sources": [],
            "wall_s": self._parameters["wall_s"] - self._limits.used_s(),
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Forget the key of a worker that has received it."""
        node.workerinput.pop(WORKER_PARAMETERS, None)


def cut_sections(sections: list[Any]) -> None:
    """Keep the beginning and the end of long captured output, which pytest holds for each test until its own end.

    Args:
        sections: (phase, stream, text) of a test's output.
    """
    for number, (when, stream, text) in enumerate(sections):
        omitted = len(text) - MAX_SECTION_CHARS
        if omitted > 0:
            half = MAX_SECTION_CHARS // 2
            gap = f"\n[... {omitted} characters omitted ...]\n"
            sections[number] = (when, stream, text[:half] + gap + text[-half:])


def find_test_function(item: Any) -> Any:
    """Return the function that a test runs, as its class or module has it now; `None` if it is not a function."""
    owner = getattr(item, "cls", None) or getattr(item, "module", None)
    name = getattr(item, "originalname", None) or str(getattr(item, "name", ""))
    return getattr(owner, name, None) if owner is not None else None


def find_test_object(item: Any) -> Any:
    """Return the object of a `unittest.TestCase` whose method a test runs; `None` for other tests, or if it is gone."""
    attributes = getattr(item, "__dict__", {})
    return attributes.get(
        "_instance", attributes.get("_testcase")
    )  # the second one is that of pytest before 8.2


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
        reporter = start_reporter(PARAMETERS.pop(), early_config)
        early_config.pluginmanager.register(reporter, "suture-reporter")


def start_reporter(parameters: dict[str, Any], config: Any) -> Reporter:
    """Start to watch this process and to report; no test and no conftest.py is loaded yet."""
    root = parameters["root"]
    failed_at = {test: (os.path.join(root, path), line) for test, path, line in parameters["failed_at"]}
    failed_asserts = FailedAsserts({*failed_at.values()})
    machinery = TestMachinery(config, ROOT, parameters["libraries"], parameters["imported"])
    report = SignedReport(parameters["report"], bytes.fromhex(parameters["key"]), parameters.get("name", ""))
    secret_files = {parameters["report"]: OWN_REPORT}
    secret_files.update((os.path.join(root, path), TEST_TEXT) for path in parameters["tests"])
    origins = Origins(root, parameters["unchanged"], os.path.dirname(__file__))
    watch = Watch(report, machinery, origins, secret_files, lists_opened=parameters["lists_opened"])
    watch.asserts.failed_at, watch.asserts.noted_places = failed_at, failed_asserts.noted_places
    watch.asserts.unchanged_definitions = [
        (os.path.join(root, path), first, last) for path, first, last in parameters["unchanged_definitions"]
    ]
    send = install_watch(watch)
    for name in [name for name in sys.modules if name.startswith(__name__.rpartition(".")[0])]:
        del sys.modules[name]  # code under test must not find these modules by name
    failed_asserts.send = send
    reporter = Reporter({**parameters, "key": ""}, config, send, machinery.early)
    failed_asserts.recorder = reporter.recorder
    return reporter


# Read at import time: pytest redirects stdin before it configures plugins, and no test file is loaded yet.
SEARCH_PATH = list(sys.path)
PARAMETERS = _read_parameters()
for _parameters in PARAMETERS:
    if _parameters["root"] == os.getcwd() == ROOT:  # bytecode contains the absolute paths of its sources
        backdate(_parameters["sources"])
        sys.dont_write_bytecode = not _parameters["compiled"]
    else:
        _parameters["compiled"] = ""
