"""A pytest plugin that writes down what each test said, signed line by line.

It runs behind the wall in the user's own interpreter and pytest, beside the code under test: Python 3.8
syntax, the standard library and pytest only, and nothing of Suture. The key comes over stdin and is never
written. A line that the code under test forges, repeats or removes does not verify; code that hunts through
this process's memory for the key could still forge a report, and verdicts made of it say so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator

# Taken before any test is loaded: code under test may put others in their place.
from hmac import digest
from json import dumps
from os import write
from typing import Any

import pytest

from .deciding import Deciding
from .facts import LONGEST, Facts, file_of, is_doctest
from .kept import date, keep_compiled
from .processes import GIVEN_TO_WORKER, key_of, let_workers_load, sent_to_worker
from .time_limits import NoEnd, TimeLimits


class Reporter:
    """Appends signed lines to the report.

    Where tests run in other processes (workers of pytest-xdist, forks), each signs lines of its own.

    Args:
        given: What Suture sent, or the reporter that starts this worker.
        config: Pytest's, while it starts.
    """

    def __init__(self, given: dict[str, Any], config: Any) -> None:
        self._given = {**given, "key": ""}
        self._name = self._own_name = given.get("name", "")
        self._pid = os.getpid()
        path = given["report"]
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._key = bytes.fromhex(given["key"])
        self._only = frozenset(given["only"])
        self._apart = frozenset(given["apart"])
        self._compiled = given["compiled"]
        self._sources = given["sources"]
        self._lines = 0
        self._put = write  # a module's names are exchanged by tests with a file system of their own
        self._root = os.getcwd()
        self._deciding = Deciding(config, self._root)  # no test is loaded yet, nor a conftest.py
        self._meanwhile = {}  # type: dict[tuple[str, str], None]
        self._made = set()  # type: set[tuple[str, str]]
        self._deselected = []  # type: list[str]
        self._limits = TimeLimits(given["wall_s"])
        config.pluginmanager.register(self._limits, "suture-time-limits")
        self._facts = Facts(self._root, self._limits)
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
            rootdir=self._prefix,
            early=sorted(self._deciding.early.items()),
        )

    def _id(self, nodeid: str) -> str:
        """A test's id seen from the project's root, which need not be pytest's own."""
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    def _write(self, **event: Any) -> None:
        line = dumps(event, sort_keys=True)
        signed = f"{self._lines} {line}".encode("ascii")
        self._lines += 1
        signature = digest(self._key, signed, "sha256").hex().encode()
        of = f"{self._name} ".encode("ascii") if self._name else b""
        self._put(self._file, of + signature + b" " + signed + b"\n")

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
            keep_compiled(self._sources, self._compiled)
        examples = {}
        for item in session.items:
            doctest = getattr(item, "dtest", None)
            if doctest is not None:
                examples[self._id(item.nodeid)] = [[e.source, e.want] for e in doctest.examples]
        files = {os.path.relpath(file_of(item), self._root) for item in session.items if not is_doctest(item)}
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
            self._pid = os.getpid()
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

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Which test runs, and how long it may, in case that it never ends."""
        used_s, limit_s = round(self._limits.used_s(), 3), round(self._limits.limit_s, 3)
        self._write(event="start", id=self._id(nodeid), used_s=used_s, limit_s=limit_s)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What one phase of a test said."""
        here = (report.nodeid, report.when) in self._made
        self._made.discard((report.nodeid, report.when))
        self._write_phase(report, here=here)

    def _write_phase(self, report: Any, *, here: bool) -> None:
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
            here=here,
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Note where an exception came from, while its traceback is there, and which process saw it."""
        self._note_fact(item, call)  # before pytest's own makes the report, which copies the properties
        outcome = yield
        self._made.add((item.nodeid, call.when))
        if call.when == "teardown":  # what a test changes for itself is put back by now
            self._meanwhile.update((pair, None) for pair in self._deciding.meanwhile().items())
        if os.getpid() != self._pid:
            self._vouch_in_fork(outcome.get_result())

    def _vouch_in_fork(self, report: Any) -> None:
        """A process that somebody forked for a test says what it saw there, in lines of its own."""
        if self._name == self._own_name:
            self._name = f"{self._own_name}.{os.getpid()}".lstrip(".")
            self._key, self._lines = key_of(self._key, str(os.getpid())), 0
        self._write_phase(report, here=True)
        if report.when == "teardown":
            self._write_end(0)

    def _note_fact(self, item: Any, call: Any) -> None:
        item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != "suture"]
        excinfo = call.excinfo
        for kept in getattr(item, "_excinfo", None) or []:  # of a unittest, which pytest puts in place later
            excinfo = kept if isinstance(kept.value, NoEnd) else excinfo
        if excinfo is not None:
            try:
                item.user_properties.append(("suture", self._facts.of(item, excinfo)))
            except Exception as fault:
                item.user_properties.append(("suture", {"exception": type(fault).__name__}))

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Pytest got to its end."""
        self._write_end(int(exitstatus))

    def _write_end(self, status: int) -> None:
        now = {**self._deciding.added(), **self._deciding.changed()}
        self._write(event="end", exit=status, changed=sorted(now.items()), meanwhile=list(self._meanwhile))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Workers will load this plugin before anything of the project."""
        let_workers_load(__name__, PATH)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """What a worker is given: a key that is good for its own lines alone."""
        name = node.workerinput["workerid"]
        rest_s = self._given["wall_s"] - self._limits.used_s()
        node.workerinput[GIVEN_TO_WORKER] = {
            **{"report": self._given["report"], "key": key_of(self._key, name).hex(), "name": name},
            **{"only": sorted(self._only), "apart": [], "compiled": "", "sources": []},
            **{"root": self._given["root"], "wall_s": rest_s},
        }


def _given() -> list[dict[str, Any]]:
    """What Suture sent, a line of JSON: where the report goes, its key, the tests to run, the sources."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return sent_to_worker(__name__)  # its stdin belongs to xdist
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


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start reporting, where a key was given: before a conftest.py can fail to load."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # a test may run pytest too, as it would without us
    if GIVEN:
        early_config.pluginmanager.register(Reporter(GIVEN.pop(), early_config), "suture-reporter")


# At import: pytest points stdin elsewhere before it configures plugins, and no test file is loaded yet.
PATH = list(sys.path)
GIVEN = _given()
for _one in GIVEN:
    if _one["root"] == os.getcwd():  # the places of sources stand in compiled code
        date(_one["sources"])
        sys.dont_write_bytecode = not _one["compiled"]
    else:
        _one["compiled"] = ""
