"""A pytest plugin that runs the tests many times: once with eyes open, then on each candidate."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from suture.repair.inside.suture_swap import Swapper
    from suture.repair.inside.suture_trial import (
        Report,
        Tracer,
        call_all,
        in_fork,
        limit_cpu,
        load_job,
        mutate_file,
        quiet_of,
        restore_file,
        try_candidate,
        verdict_line,
    )
else:  # behind the wall these files stand alone
    from suture_swap import Swapper
    from suture_trial import (
        Report,
        Tracer,
        call_all,
        in_fork,
        limit_cpu,
        load_job,
        mutate_file,
        quiet_of,
        restore_file,
        try_candidate,
        verdict_line,
    )


class Trials:
    """What is asked for in the job."""

    def __init__(self) -> None:
        self.job = load_job()
        self.report = Report()
        self.tracer = Tracer(self.job["files"])
        self.frames: list[tuple[str, int]] = []
        self.errors = 0
        self._write: Any = None
        if self.job["mode"] == "locate":
            self.tracer.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """Candidates that change what an import does are tried before anything is imported."""
        if self.job["mode"] == "compare":
            self._compare()
            os._exit(0)
        if self.job["mode"] != "screen":
            return
        for number, mutant in enumerate(self.job["mutants"]):
            if mutant["swap"] or self._is_late():
                continue
            result = self._forked_collection(mutant)
            if result is None:
                return  # this is the child: go on and collect
            self.report.write(verdict_line(number, *result))
        if not any(mutant["swap"] for mutant in self.job["mutants"]):
            os._exit(0)

    def _forked_collection(self, mutant: dict[str, Any]) -> tuple[bytes, bool] | None:
        """Try a candidate from its collection on; `None` in the child, which goes on as pytest does."""
        became_child: list[Any] = []

        def act(write: Any) -> None:
            became_child.append(write)
            raise Child

        try:
            mutate_file(self.job["texts"], mutant)
            # Its own forks watch the tests; here nothing may be said until they are done.
            answer = in_fork(act, 60 + 10 * quiet_of(self.job), through=Child)
        except Child:
            self._write = became_child[0]
            limit_cpu(max(2.0, 10 * self.job["collect_s"]))  # for the collection; forks set their own
            for name, module in list(sys.modules.items()):
                if self.tracer.path_of(getattr(module, "__file__", None) or "") is not None:
                    del sys.modules[name]
            return None
        restore_file(self.job["texts"], mutant["path"])
        return answer

    def pytest_collectreport(self, report: Any) -> None:
        """Count what cannot be collected."""
        self.errors += report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> None:
        """In place of pytest's own loop."""
        items = {item.nodeid: item for item in session.items}
        if self.job["mode"] == "locate":
            self._locate(items)
        elif self._write is not None:
            self._try_here(items)
        else:
            self._screen(items)
        os._exit(0)

    def _run(self, item: Any) -> bool | None:
        """Whether a test passes; `None` where it is skipped. No report is made of it: that takes longer."""
        passes: bool | None = True
        try:
            item.ihook.pytest_runtest_setup(item=item)
            item.ihook.pytest_runtest_call(item=item)
        except pytest.skip.Exception:
            passes = None
        except BaseException as fault:
            passes = False
            self._note_frames(fault)
        for told in getattr(item, "_excinfo", None) or ():  # where unittest's tests leave their exceptions
            passes = None if told.errisinstance(pytest.skip.Exception) else False
            self._note_frames(told.value)
        try:
            item.ihook.pytest_runtest_teardown(item=item, nextitem=None)
        except BaseException:
            passes = False
        return passes

    def _note_frames(self, fault: BaseException) -> None:
        """Where an exception went through the project's code."""
        if self.job["mode"] == "locate":
            self.tracer.stop()
            trace = fault.__traceback__
            while trace is not None:
                path = self.tracer.path_of(trace.tb_frame.f_code.co_filename)
                if path is not None:
                    self.frames.append((path, trace.tb_lineno))
                trace = trace.tb_next

    def _try_here(self, items: dict[str, Any]) -> None:
        """Try the candidate that this process has collected."""
        words, ended = b"f", True
        if not self.errors:
            if not self.job["failing"]:  # the project could not be collected before
                self.job["failing"] = self.job["all"] = list(items)
            words, ended = try_candidate(self.job, lambda write: True, partial(self._run_named, items))
        self._write(words if ended else words + b"L")

    def _run_named(self, items: dict[str, Any], test: str) -> bool | None:
        return self._run(items[test]) if test in items else False

    def _screen(self, items: dict[str, Any]) -> None:
        texts = self.job["texts"]
        swapper = Swapper(texts)
        gc.collect()
        gc.freeze()

        def prepare(path: str, text: str, write: Any) -> bool:
            try:
                swapped = swapper.swap(path, text)
            except (SyntaxError, ValueError):
                return False
            if not swapped:
                write(b"u")
            return swapped

        for number, mutant in enumerate(self.job["mutants"]):
            if not mutant["swap"]:
                continue
            if self._is_late():
                return
            text = mutate_file(texts, mutant)
            ready = partial(prepare, mutant["path"], text)
            result = try_candidate(self.job, ready, partial(self._run_named, items))
            self.report.write(verdict_line(number, *result))
            restore_file(texts, mutant["path"])

    def _compare(self) -> None:
        """What each candidate answers to the same calls."""
        for number, mutant in enumerate(self.job["mutants"]):
            if self._is_late():
                return
            mutate_file(self.job["texts"], mutant)
            words, _ = in_fork(partial(call_all, self.job), quiet_of(self.job))
            restore_file(self.job["texts"], mutant["path"])
            answers = [line.decode("ascii") for line in words.split(b"\n") if line]
            self.report.write({"mutant": number, "answers": answers})

    def _is_late(self) -> bool:
        deadline: float = self.job["deadline"]
        return time.monotonic() > deadline

    def _locate(self, items: dict[str, Any]) -> None:
        self.tracer.stop()
        own = self.tracer.take()
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.report.write({"collected": list(items), "errors": self.errors, "seconds": used.ru_utime, **own})
        gc.collect()
        gc.freeze()
        wanted = self.job["failing"]
        ordered = [items[t] for t in wanted if t in items] + [i for t, i in items.items() if t not in wanted]
        for item in ordered:
            if self._is_late():
                return
            in_fork(partial(self._look, item), 4 * self.job["trace_s"] + 5)

    def _look(self, item: Any, _: Any) -> None:
        def tell(outcome: str) -> None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            told = {"test": item.nodeid, "outcome": outcome, "seconds": used.ru_utime - before.ru_utime}
            self.report.write({**told, "frames": self.frames, **self.tracer.take()})

        def late(signal: int, frame: Any) -> None:
            self.tracer.stop()
            while frame is not None:
                path = self.tracer.path_of(frame.f_code.co_filename)
                if path is not None:
                    self.frames.insert(0, (path, frame.f_lineno))
                frame = frame.f_back
            tell("timeout")
            os._exit(0)

        before = resource.getrusage(resource.RUSAGE_SELF)
        limit_cpu(self.job["trace_s"], late)
        self.tracer.start()
        fine = self._run(item)
        self.tracer.stop()
        tell("skipped" if fine is None else "passed" if fine else "failed")


class Child(BaseException):
    """Leaves the fork's own frames: what follows is pytest's."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Begin before any file of the project is imported."""
    early_config.pluginmanager.register(Trials(), "suture-trials")
