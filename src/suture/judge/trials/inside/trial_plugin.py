"""A pytest plugin that serves trials: it keeps a process with nothing imported, and one that has collected.

The first makes a fork for each candidate that changes what an import does; in the second, functions receive
their new code in place. Both go through pytest's own hooks, of the project's plugins too.
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

from .child_processes import HERE, ROOT, Files, Forks, Leftovers, Line, date, limit_cpu, now_s, take_away
from .collected_tests import CollectedTests, TestLimits, read_words, run_on
from .function_calls import call_all
from .line_tracer import Tracer
from .pytest_items import Items, Outcomes, way_of, words_of

UNWANTED = {
    **{"numprocesses": 0, "dist": "no", "tx": [], "distload": False},  # xdist
    **{"maxfail": 0, "tbstyle": "no", "showlocals": False, "verbose": 0, "xmlpath": None},
    **{"benchmark_disable": True, "instafail": False},
}
"""Options of pytest and of common plugins that only report, distribute, or end a run early."""
COVERAGE = {"cov_source": None, "no_cov": True}


class Trials:
    """Serves what is asked over a line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        job = line.read() or {}
        self._compiled = date(job["dated"])
        self._files = Files(job["texts"])
        self._tracer = Tracer(job["files"])
        self._limits = TestLimits()
        self._outcomes = Outcomes()
        self._leftovers = Leftovers()
        self._forks = Forks(line)
        self._collected: Line | None = None
        self._task: dict[str, Any] = {"op": "none"}
        self._write: Any = None
        self._errors: list[str] = []
        self._frames: list[tuple[str, int]] = []
        self._reached: list[tuple[str, int]] = []
        self._fault = ""
        self._began_s = 0.0

    def serve(self) -> None:
        """Answer until the end; returns in a fork that is to go on as pytest does."""
        while True:
            command = self._line.read()
            if command is None:
                os._exit(0)
            if command["op"] == "collect":
                if self._start_collected(command):
                    return
                continue
            if command["op"] == "know":
                self._files, self._tracer = Files(command["texts"]), Tracer(command["files"])
                if self._collected is None:
                    self._line.write({})
                    continue
            if command["op"] == "limits":
                self._limits.by_test = command["limits"]
            if command.get("anew"):
                if self._try_anew(command):
                    return
                continue
            self._pass_on(command)

    def _start_collected(self, command: dict[str, Any]) -> bool:
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            self._collected = Line(ours.fileno(), ours.detach())
            self._wait()
            return False
        os.setsid()
        ours.close()
        handle = theirs.detach()
        self._task = {**command, "asked": Line(handle, handle)}
        return True

    def _pass_on(self, command: dict[str, Any]) -> None:
        if self._collected is None:
            self._line.write({"lost": True})
            return
        with suppress(OSError):
            self._collected.write(command)
        self._wait()

    def _wait(self) -> None:
        """Until the process that has collected has answered; it is forgotten where it died."""
        assert self._collected is not None
        try:
            said = self._collected.read()
        except OSError:
            said = None
        if said is None:
            self._collected = None
            self._line.write({"lost": True})

    def _try_anew(self, command: dict[str, Any]) -> bool:
        """Try a candidate from its import on; true in the fork, which goes on as pytest does."""
        became_child: list[Any] = []

        def act(write: Any) -> None:
            became_child.append(write)
            raise Child

        path, there = command.get("path"), self._leftovers.look()
        if path is not None:
            self._files.change(path, self._files.changed(command), command["number"])
        end_s = now_s() + command["seconds"]
        try:
            words, ended = self._forks.run(act, command["quiet_s"], end_s=end_s, through=Child)
        except Child:
            self._write = became_child[0]
            self._task = command
            limit_cpu(command["import_s"])
            return True
        take_away(self._leftovers.since(there))
        if path is not None:
            self._files.restore(path)
        if command["op"] == "call":
            answers = [line.decode("ascii") for line in words.split(b"\n") if line]
            self._line.write({"mutant": command["number"], "answers": answers})
        else:
            self._line.write({**read_words(words), "ended": ended, "unsupported": False})
        return False

    def prepare(self, early_config: Any) -> None:
        """In a fork that goes on: nothing is imported yet, and nobody reads what it prints."""
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, 2)
        os.close(nobody)
        known = early_config.known_args_namespace
        for name, value in COVERAGE.items():
            if hasattr(known, name):
                setattr(known, name, value)
        if not self._compiled:
            sys.pycache_prefix = os.path.join(HERE, "compiled")  # of this process alone, and for it only
        if self._task["op"] == "collect":
            self._began_s = now_s()
            sys.dont_write_bytecode = False  # what is imported anew later finds the tests compiled
            if self._task["trace"]:
                self._tracer.start()
        early_config.pluginmanager.register(self, "suture-trials")
        early_config.pluginmanager.register(self._outcomes, "suture-outcomes")

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: Any) -> None:
        """No reports, no other processes; every test is run here."""
        for name, value in UNWANTED.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """A candidate's own tests come from few files, and its calls need none."""
        if self._task["op"] == "call":
            call_all(self._task["calls"], self._task["call_s"], self._write)
            os._exit(0)
        if self._task.get("places"):
            session.config.args = self._task["places"]

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """Where the import of a file went wrong."""
        if not self._frames and call.excinfo is not None and report.when == "collect":
            self._tracer.stop()
            fault = call.excinfo.value
            while fault is not None and not self._frames:
                self._frames, self._fault = self._tracer.frames_of(fault), words_of(fault)
                self._reached = self._reached or way_of(fault, ROOT + os.sep, HERE)
                fault = fault.__cause__ or fault.__context__

    def pytest_collectreport(self, report: Any) -> None:
        """Count what cannot be collected; a candidate with which a file of its tests cannot be has failed."""
        if report.failed:
            self._errors.append(report.nodeid)
            if self._task.get("places"):  # to go on takes pytest as long for each file as to import it
                self._write(b"f\n" + json.dumps(self._mark_of(report.nodeid)).encode("ascii") + b"\n")
                os._exit(0)

    def _mark_of(self, place: str) -> dict[str, Any]:
        """How far the import of a candidate's tests got, as of the first test of the file."""
        tests = [str(test) for test in self._task["tests"]]
        own = (test for test in tests if test.partition("::")[0].endswith(place))
        return {"test": next(own, tests[0]), "fault": self._fault, "reached": self._reached}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> None:
        """In place of pytest's own loop."""
        self._tracer.stop()
        sys.pycache_prefix, sys.dont_write_bytecode = None, True
        _silence(session.config)
        items = Items(session, ROOT)
        if self._task["op"] == "collect":
            self._serve_collected(items)
        else:
            self._run_anew(items)
        os._exit(0)

    def _serve_collected(self, items: Items) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        summary = {
            "collected": items.ids,
            "errors": len(self._errors),
            "seconds": used.ru_utime + used.ru_stime,
        }
        frames = {"frames": self._frames, "fault": self._fault, "reached": self._reached}
        wall_s = now_s() - self._began_s
        self._line.write({**summary, **frames, "wall_s": wall_s, **self._tracer.take()})
        asked = self._task["asked"]
        asked.write({})
        forks = Forks(self._line, asked)
        parts = (items, self._outcomes, self._files, self._limits, self._tracer, forks)
        CollectedTests(*parts).serve(asked, self._line)

    def _run_anew(self, items: Items) -> None:
        tests = self._task["tests"]
        known = self._limits.by_test or items.ids  # where nothing could be collected, all there is now
        chosen = items.sorted(known) if tests is None else items.named(tests)
        missing = [name for name in tests or () if not items.named([name])]
        for _ in missing:
            self._write(b"f")
        if not missing and chosen:
            run_on(chosen, self._outcomes, self._limits, self._task, self._write)


class Child(BaseException):
    """Leaves the fork's own frames: what follows is pytest's."""


def _silence(config: Any) -> None:
    """The terminal's reporter writes for nobody."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    writer: Any = getattr(reporter, "_tw", None)
    if hasattr(writer, "_file"):
        writer._file = open(os.devnull, "w")  # noqa: SIM115 (it lives as long as the process)


def _take_line() -> Line:
    """The host's line, which was stdin and stdout; whoever reads or prints from now on meets nobody."""
    take, give = os.dup(0), os.dup(1)
    nobody = os.open(os.devnull, os.O_RDWR)
    os.dup2(nobody, 0)
    os.dup2(nobody, 1)
    os.close(nobody)
    return Line(take, give)


# At import: pytest points stdin and stdout elsewhere before it asks plugins, and no test file is loaded yet.
LINE = _take_line()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Iterator[None]:
    """Begin before any file of the project is imported, and before any plugin looks at its options."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # a test may run pytest too, and that one is not to be served
    trials = Trials(LINE)
    trials.serve()
    trials.prepare(early_config)
    yield
