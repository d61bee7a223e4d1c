"""A pytest plugin that writes down what each test said, signed line by line.

It runs behind the wall in the user's own interpreter and pytest, beside the code under test: Python 3.8
syntax, the standard library and pytest only, and nothing of Suture. The key comes over stdin and is never
written. A line that the code under test forges, repeats or removes does not verify; code that hunts through
this process's memory for the key could still forge a report, and verdicts made of it say so.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
import linecache
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

LONGEST = 4000
WRITTEN_S = 946684800
"""When each source says that it was written, so that code compiled in an earlier run is believed."""
MOST_COMPILED, MOST_COMPILED_BYTES = 4000, 16 << 20
FIRST_SHARE, LATER_SHARE = 6, 16
"""A test may take this part of the time that is left: before and after one had to be stopped."""
SLOWER = 5
"""A test may always take this many times as long as the longest one that came to its end."""
LEAST_S = 1.0


class NoEnd(BaseException):
    """A test is stopped, so that those behind it are run too."""


class Reporter:
    """Appends signed lines to the report.

    Args:
        given: What Suture sent.
        config: Pytest's, while it starts.
    """

    def __init__(self, given: dict[str, Any], config: Any) -> None:
        path = given["report"]
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._key = bytes.fromhex(given["key"])
        self._only = frozenset(given["only"])
        self._apart = frozenset(given["apart"])
        self._compiled = given["compiled"]
        self._sources = given["sources"]
        self._lines = 0
        self._root = os.getcwd()
        self._deselected = []  # type: list[str]
        self._statements = Statements()
        self._ends_s = time.monotonic() + given["wall_s"]
        self._longest_s = 0.0
        self._stopped = 0
        self._limit_s = 0.0
        self._start(config)

    def _start(self, config: Any) -> None:
        """Pytest is there; what it would collect, should it not get to that."""
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
        )

    def _id(self, nodeid: str) -> str:
        """A test's id seen from the project's root, which need not be pytest's own."""
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    def _write(self, **event: Any) -> None:
        line = json.dumps(event, sort_keys=True)
        signed = f"{self._lines} {line}".encode("ascii")
        self._lines += 1
        os.write(
            self._file,
            hmac.new(self._key, signed, hashlib.sha256).hexdigest().encode() + b" " + signed + b"\n",
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """Look for the tests that were asked for in their own files only."""
        places = sorted({os.path.join(self._root, name.partition("::")[0]) for name in self._only})
        if places and all(map(os.path.isfile, places)):
            session.config.args = places

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Any) -> None:
        """Keep to the tests that were asked for."""
        if self._only:
            items[:] = [item for item in items if self._id(item.nodeid) in self._only]

    def pytest_collection_finish(self, session: Any) -> None:
        """Which tests there are."""
        if self._compiled:
            _keep_compiled(self._sources, self._compiled)
        examples = {}
        for item in session.items:
            doctest = getattr(item, "dtest", None)
            if doctest is not None:
                examples[self._id(item.nodeid)] = [[e.source, e.want] for e in doctest.examples]
        files = {
            os.path.relpath(_file_of(item), self._root) for item in session.items if not _is_doctest(item)
        }
        self._write(
            event="items",
            ids=[self._id(item.nodeid) for item in session.items],
            examples=examples,
            files=sorted(files),
            deselected=self._deselected,
        )
        if getattr(session.config.option, "tbstyle", "") == "auto":
            # Pytest's own style parses a whole file for each frame of a failure: most of a red run's time.
            session.config.option.tbstyle = "native"

    def pytest_deselected(self, items: Any) -> None:
        """Which tests the command itself leaves out."""
        self._deselected += [self._id(item.nodeid) for item in items]

    def pytest_collectreport(self, report: Any) -> None:
        """Which files cannot be collected."""
        if report.failed:
            self._write(
                event="uncollectable", id=self._id(report.nodeid), text=str(report.longrepr)[-LONGEST:]
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> Any:
        """Where some tests are to run apart too: all of them in a child first, then those in one each."""
        items = getattr(session, "items", None)  # where other processes run the tests, there are none here
        if not self._apart or not items or session.testsfailed:
            return None
        self._in_child(items)
        self._write(event="apart")
        for item in items:
            if self._id(item.nodeid) in self._apart:
                self._in_child([item])
        return True

    def _in_child(self, items: Any) -> None:
        """Run tests one after the other, and leave nothing of it in this process."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for number, item in enumerate(items):
                    following = items[number + 1] if number + 1 < len(items) else None
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                os.write(theirs, b"%d" % self._lines)
            finally:
                os._exit(0)
        os.close(theirs)
        os.waitpid(pid, 0)
        reported = os.read(ours, 64)
        os.close(ours)
        # What a child that died had written is not known, and so nothing after it is signed as it should be.
        self._lines = int(reported) if reported.isdigit() else -1

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Stop a test that takes most of the time there is, as a loop without an end would."""
        started_s, stopped = time.monotonic(), self._stopped
        self._limit_s = self._most_s(len(item.session.items), started_s)
        is_ours = (
            signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )  # or a test, or a plugin, has a use for it
        if is_ours:
            signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, self._limit_s, self._limit_s)
        yield
        if is_ours and signal.getsignal(signal.SIGALRM) == self._stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._stopped == stopped:
            self._longest_s = max(self._longest_s, time.monotonic() - started_s)

    def _most_s(self, tests: int, now_s: float) -> float:
        share = 1 if tests == 1 else LATER_SHARE if self._stopped else FIRST_SHARE
        fair_s: float = (self._ends_s - now_s) / share
        return max(fair_s, SLOWER * self._longest_s, LEAST_S)

    def _stop(self, _signal: int, _frame: Any) -> None:
        self._stopped += 1
        raise NoEnd

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Which test runs, in case that it never ends."""
        self._write(event="start", id=self._id(nodeid))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What one phase of a test said."""
        fact = dict(report.user_properties).get("suture") if not report.passed else None
        text = "" if report.passed else str(report.longrepr)[-LONGEST:]
        self._write(
            event="phase",
            id=self._id(report.nodeid),
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail") or text.startswith("[XPASS(strict)]"),
            text=text,
            fact=fact,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Note where an exception came from, while its traceback is there."""
        # Runs before pytest's own makes the report, which copies the properties.
        item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != "suture"]
        excinfo = call.excinfo
        for kept in getattr(item, "_excinfo", None) or []:  # of a unittest, which pytest puts in place later
            excinfo = kept if isinstance(kept.value, NoEnd) else excinfo
        if excinfo is not None:
            try:
                item.user_properties.append(("suture", self._fact(item, excinfo)))
            except Exception as fault:
                item.user_properties.append(("suture", {"exception": type(fault).__name__}))

    def _fact(self, item: Any, excinfo: Any) -> dict[str, Any]:
        test_file = _file_of(item)
        text = str(excinfo.value)[:LONGEST]
        fact = {"type": excinfo.type.__name__, "text": text, "file": "", "line": None}
        if _is_doctest(item):
            fact.update(self._example(excinfo.value))
        for entry in excinfo.traceback:
            path = str(entry.path)
            if path == test_file:
                fact["statement"] = self._statements.at(test_file, entry.lineno + 1)[:LONGEST]
            elif self._is_projects(path):
                fact["file"], fact["line"] = os.path.relpath(path, self._root), entry.lineno + 1
        if isinstance(excinfo.value, NoEnd):
            fact["no_end_s"] = self._limit_s
        if isinstance(excinfo.value, SyntaxError) and self._is_projects(str(excinfo.value.filename)):
            fact["file"] = os.path.relpath(str(excinfo.value.filename), self._root)
            fact["line"] = excinfo.value.lineno
        return fact

    def _example(self, fault: Any) -> dict[str, Any]:
        """The example of a docstring that failed: what it runs, what it wants, what came."""
        wrong = (getattr(fault, "failures", None) or [fault])[0]
        if not hasattr(wrong, "example"):
            return {}
        reported: dict[str, Any] = {
            "example": [wrong.example.source, wrong.example.want, str(getattr(wrong, "got", ""))[:LONGEST]]
        }
        if hasattr(wrong, "exc_info"):
            kind, value, trace = wrong.exc_info
            reported.update(type=kind.__name__, text=str(value)[:LONGEST])
            while trace is not None:
                path = trace.tb_frame.f_code.co_filename
                if self._is_projects(path):
                    reported.update(file=os.path.relpath(path, self._root), line=trace.tb_lineno)
                trace = trace.tb_next
        return reported

    def _is_projects(self, path: str) -> bool:
        inside = path.startswith(self._root + os.sep) and "site-packages" not in path
        name = os.path.basename(path)
        return (
            inside
            and path != __file__
            and not name.startswith(("test_", "conftest"))
            and not name.endswith("_test.py")
        )

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Pytest got to its end."""
        self._write(event="end", exit=int(exitstatus))


class Statements:
    """The statements of files; each file is parsed once."""

    def __init__(self) -> None:
        self._spans = {}  # type: dict[str, list[tuple[int, int]]]

    def at(self, path: str, line: int) -> str:
        """The statement that holds a line; of one with a body, its head."""
        if path not in self._spans:
            self._spans[path] = _spans_of("".join(linecache.getlines(path)))
        around = [span for span in self._spans[path] if span[0] <= line <= span[1]]
        first, last = max(around, default=(line, line))
        return "".join(linecache.getlines(path)[first - 1 : last])


def _spans_of(source: str) -> list[tuple[int, int]]:
    """First and last line of each statement; of one with a body, of its head."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            spans.append((node.lineno, last))
    return spans


def _file_of(item: Any) -> str:
    return str(getattr(item, "path", None) or item.fspath)


def _is_doctest(item: Any) -> bool:
    return hasattr(item, "dtest")


def _given() -> list[dict[str, Any]]:
    """What Suture sent, a line of JSON: where the report goes, its key, the tests to run, the sources."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return []  # its stdin belongs to xdist, and its reports reach the main process
    parts = []
    while True:
        part = os.read(0, 1 << 16)
        if not part:
            break
        parts.append(part)
    try:
        given = json.loads(b"".join(parts))
    except ValueError:
        return []
    return [given] if isinstance(given, dict) and "key" in given else []


def _date(sources: list[str]) -> None:
    """Give each source the same age in every run: Python believes compiled code by that, and by the size."""
    for path in sources:
        with suppress(OSError):
            os.utime(path, (WRITTEN_S, WRITTEN_S))


def _keep_compiled(sources: list[str], place: str) -> None:
    """What Python and pytest compiled of some sources, as one file: a line of JSON, then their contents."""
    sys.dont_write_bytecode = True
    tag = "." + str(sys.implementation.cache_tag)
    names = {}  # type: dict[str, list[str]]
    index, contents, size = [], [], 0
    for path in sources:
        folder, name = os.path.split(path)
        cache = os.path.join(folder, "__pycache__")
        if cache not in names:
            names[cache] = os.listdir(cache) if os.path.isdir(cache) else []
        for own in names[cache]:
            if own.startswith(name[: -len(".py")] + tag) and own.endswith(".pyc"):
                with open(os.path.join(cache, own), "rb") as file:
                    contents.append(file.read(MOST_COMPILED_BYTES))
                index.append([path, own, len(contents[-1])])
                size += len(contents[-1])
        if size > MOST_COMPILED_BYTES or len(index) > MOST_COMPILED:
            return
    with open(place, "wb") as file:
        file.write(json.dumps(index).encode("ascii") + b"\n" + b"".join(contents))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start reporting, where a key was given: before a conftest.py can fail to load."""
    if GIVEN:
        early_config.pluginmanager.register(Reporter(GIVEN.pop(), early_config), "suture-reporter")


# At import: pytest points stdin elsewhere before it configures plugins, and no test file is loaded yet.
GIVEN = _given()
for _one in GIVEN:
    if _one["root"] == os.getcwd():  # the places of sources stand in compiled code
        _date(_one["sources"])
        sys.dont_write_bytecode = not _one["compiled"]
    else:
        _one["compiled"] = ""
